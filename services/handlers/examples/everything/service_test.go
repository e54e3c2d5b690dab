package main

import (
	"testing"

	"go.uber.org/goleak"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	"github.com/countersign-mcp/countersign/services/handlers/go/handlertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// catalog is what the service offers.
func catalog(t *testing.T, client handlerv1.HandlerServiceClient) *handlerv1.Catalog {
	t.Helper()
	response, err := client.Describe(t.Context(), new(handlerv1.DescribeRequest))
	if err != nil {
		t.Fatal(err)
	}
	return response.GetCatalog()
}

func TestEveryEntryIsDescribed(t *testing.T) {
	offered := catalog(t, handlertest.Serve(t, newServer()))
	if len(offered.GetTools()) != 28 || len(offered.GetPrompts()) != 5 ||
		len(offered.GetResources()) != 3 || len(offered.GetResourceTemplates()) != 1 {
		t.Errorf("there are %d tools, %d prompts, %d resources and %d resource templates",
			len(offered.GetTools()), len(offered.GetPrompts()),
			len(offered.GetResources()), len(offered.GetResourceTemplates()))
	}
	for _, tool := range offered.GetTools() {
		if tool.GetDescription() == "" || len(tool.GetInputSchema()) == 0 {
			t.Errorf("the tool %q has no description or no schema", tool.GetName())
		}
	}
	for _, prompt := range offered.GetPrompts() {
		if prompt.GetDescription() == "" {
			t.Errorf("the prompt %q has no description", prompt.GetName())
		}
	}
	for _, resource := range offered.GetResources() {
		if resource.GetDescription() == "" || resource.GetMimeType() == "" {
			t.Errorf("the resource %q has no description or no media type", resource.GetUri())
		}
	}
}
