package main

import (
	"context"
	"slices"
	"testing"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	"github.com/countersign-mcp/countersign/services/handlers/go/handlertest"
)

// watching is a service with somebody who hears of its changes.
type watching struct {
	client handlerv1.HandlerServiceClient
	stream handlerv1.HandlerService_WatchClient
}

func watch(t *testing.T) watching {
	t.Helper()
	client := handlertest.Serve(t, newServer())
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	stream, err := client.Watch(ctx, new(handlerv1.WatchRequest))
	if err != nil {
		t.Fatal(err)
	}
	w := watching{client, stream}
	w.change(t) // the present revision
	return w
}

// change waits for the next change.
func (w watching) change(t *testing.T) *handlerv1.WatchResponse {
	t.Helper()
	change, err := w.stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return change
}

// invoke runs one request that asks nothing.
func (w watching) invoke(t *testing.T, request handlertest.Request) *handlerv1.Finish {
	t.Helper()
	stream, err := w.client.Invoke(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	begin := new(handlerv1.Begin)
	request(begin)
	if err := stream.Send(&handlerv1.InvokeRequest{Message: &handlerv1.InvokeRequest_Begin{Begin: begin}}); err != nil {
		t.Fatal(err)
	}
	response, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	return response.GetFinish()
}

func (w watching) has(t *testing.T) (tool, prompt bool) {
	t.Helper()
	offered := catalog(t, w.client)
	tool = slices.ContainsFunc(offered.GetTools(), func(tool *handlerv1.Tool) bool {
		return tool.GetName() == "test_transient_tool"
	})
	prompt = slices.ContainsFunc(offered.GetPrompts(), func(prompt *handlerv1.Prompt) bool {
		return prompt.GetName() == "test_transient_prompt"
	})
	return tool, prompt
}

func TestToolAndPromptComeAndGo(t *testing.T) {
	w := watch(t)
	for _, step := range []struct {
		tool               string
		hasTool, hasPrompt bool
	}{
		{"test_trigger_tool_change", true, false},
		{"test_trigger_prompt_change", true, true},
		{"test_trigger_tool_change", false, true},
		{"test_trigger_prompt_change", false, false},
	} {
		result := w.invoke(t, handlertest.CallTool(step.tool, nil)).GetCallTool()
		if result == nil || result.GetIsError() {
			t.Fatalf("%s ended with %v", step.tool, result)
		}
		if change := w.change(t); change.GetCatalogChanged() == nil {
			t.Fatalf("after %s heard of %v, want another catalog", step.tool, change)
		}
		if tool, prompt := w.has(t); tool != step.hasTool || prompt != step.hasPrompt {
			t.Errorf("after %s the tool is there: %v, the prompt: %v", step.tool, tool, prompt)
		}
	}
}

func TestTransientEntriesCanBeUsed(t *testing.T) {
	w := watch(t)
	w.invoke(t, handlertest.CallTool("test_trigger_tool_change", nil))
	w.invoke(t, handlertest.CallTool("test_trigger_prompt_change", nil))
	if result := w.invoke(t, handlertest.CallTool("test_transient_tool", nil)).GetCallTool(); len(result.GetContent()) != 1 {
		t.Errorf("the tool says %v", result)
	}
	if result := w.invoke(t, handlertest.GetPrompt("test_transient_prompt", nil)).GetGetPrompt(); len(result.GetMessages()) != 1 {
		t.Errorf("the prompt says %v", result)
	}
}

func TestResourceChangesAndSaysSo(t *testing.T) {
	const uri = "test://watched-resource"
	w := watch(t)
	before := w.invoke(t, handlertest.ReadResource(uri)).GetReadResource().GetContents()
	w.invoke(t, handlertest.CallTool("test_trigger_resource_update", nil))
	if change := w.change(t); change.GetResourceUpdated().GetUri() != uri {
		t.Errorf("heard of %v, want an update of %s", change, uri)
	}
	after := w.invoke(t, handlertest.ReadResource(uri)).GetReadResource().GetContents()
	if before[0].GetText() != "This resource has changed 0 times." || after[0].GetText() != "This resource has changed 1 times." {
		t.Errorf("read %v and then %v", before, after)
	}
}
