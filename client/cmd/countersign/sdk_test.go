package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// official starts a server of the official Go SDK with a tool that asks twice, and
// returns its URL.
func official(t *testing.T) string {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "official", Version: "1"}, &mcp.ServerOptions{
		CompletionHandler: func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{"python"}}}, nil
		},
	})
	type refund struct {
		Order string `json:"order"`
		Cents int64  `json:"cents"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "refund", Description: "Refunds an order"},
		func(ctx context.Context, call *mcp.CallToolRequest, in refund) (*mcp.CallToolResult, any, error) {
			if token := call.Params.GetProgressToken(); token != nil {
				err := call.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: 1, Total: 2, Message: "looking up " + in.Order})
				if err != nil {
					return nil, nil, err
				}
			}
			switch call.Params.RequestState {
			case "":
				return &mcp.CallToolResult{RequestState: "asked which", InputRequests: mcp.InputRequestMap{"which": &mcp.ElicitParams{
					Message: "Which item?",
					RequestedSchema: map[string]any{"type": "object", "required": []string{"item"}, "properties": map[string]any{
						"item": map[string]any{"type": "string", "enum": []string{"cup", "plate"}},
					}},
				}}}, nil, nil
			case "asked which":
				which, ok := call.Params.InputResponses["which"].(*mcp.ElicitResult)
				if !ok || which.Action != "accept" {
					return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "nothing refunded"}}}, nil, nil
				}
				item, _ := which.Content["item"].(string)
				return &mcp.CallToolResult{RequestState: item, InputRequests: mcp.InputRequestMap{"sure": &mcp.ElicitParams{Message: "Sure?"}}}, nil, nil
			default:
				sure, ok := call.Params.InputResponses["sure"].(*mcp.ElicitResult)
				if !ok || sure.Action != "accept" {
					return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "kept the " + call.Params.RequestState}}}, nil, nil
				}
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "refunded the " + call.Params.RequestState}}}, nil, nil
			}
		})
	server.AddPrompt(&mcp.Prompt{Name: "greet", Arguments: []*mcp.PromptArgument{{Name: "name", Required: true}}},
		func(_ context.Context, got *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "Hello " + got.Params.Arguments["name"]}}}}, nil
		})
	server.AddResource(&mcp.Resource{Name: "note", URI: "note://1", MIMEType: "text/plain"},
		func(_ context.Context, read *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: read.Params.URI, Text: "the note"}}}, nil
		})
	started := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(started.Close)
	return started.URL
}

func TestTheOfficialServerIsUnderstood(t *testing.T) {
	url := official(t)
	for _, test := range []struct {
		arguments []string
		want      string
	}{
		{[]string{"discover"}, "2026-07-28"},
		{[]string{"list"}, "refund"},
		{[]string{"list", "prompts"}, "name*"},
		{[]string{"prompt", "greet", "name=Ada"}, "Hello Ada"},
		{[]string{"read", "note://1"}, "the note"},
		{[]string{"complete", "--prompt", "greet", "name", "p"}, "python"},
		{[]string{"--answer", `which={"item":"cup"}`, "--answer", "sure=accept", "call", "refund", "order=7", "cents=1"}, "refunded the cup"},
		{[]string{"--answer", `which={"item":"cup"}`, "--answer", "sure=decline", "call", "refund", "order=7", "cents=1"}, "kept the cup"},
		{[]string{"--answer", "which=cancel", "call", "refund", "order=7", "cents=1"}, "nothing refunded"},
	} {
		t.Run(strings.Join(test.arguments, " "), func(t *testing.T) {
			got := countersign(t, url, test.arguments...).expect(t, exitOK)
			if !strings.Contains(got.out, test.want) {
				t.Errorf("got %q, want %q in it", got.out, test.want)
			}
		})
	}
	countersign(t, url, "--answer", "which=decline", "call", "refund", "order=7", "cents=1").mentions(t, "progress 1/2 looking up 7")
	countersign(t, url, "call", "nothing").expect(t, exitRPCError)
	countersign(t, url, "read", "note://2").expect(t, exitRPCError)
}

func TestTheOfficialServersSubscriptionIsListenedTo(t *testing.T) {
	ctx, interrupt := context.WithTimeout(t.Context(), time.Minute)
	defer interrupt()
	var errors watchedBuffer
	errors.until, errors.reached = "listening", interrupt
	code := run(ctx, []string{"--url", official(t), "listen", "--tools"}, console{in: strings.NewReader(""), out: &strings.Builder{}, err: &errors})
	if code != exitOK || ctx.Err() != context.Canceled {
		t.Errorf("exit code %d (%v): %s", code, ctx.Err(), errors.String())
	}
}
