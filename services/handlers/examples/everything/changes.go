package main

import (
	"fmt"
	"sync"
	"sync/atomic"

	handler "github.com/countersign-mcp/countersign/services/handlers/go"
)

// registerChanges adds the tools that change what the service offers while it
// serves, and the resource that changes with one of them.
func registerChanges(server *handler.Server) {
	const watched = "test://watched-resource"

	toggleTool := toggle(
		func() bool { return server.RemoveTool("test_transient_tool") },
		func() {
			handler.Tool(server, "test_transient_tool", simpleText,
				handler.Description("Is there until test_trigger_tool_change is called again."), handler.ReadOnly())
		})
	handler.Tool(server, "test_trigger_tool_change",
		func(*handler.Context, none) (string, error) { return toggleTool("The tool test_transient_tool"), nil },
		handler.Description("Adds a tool to the list, or takes it out again."))

	togglePrompt := toggle(
		func() bool { return server.RemovePrompt("test_transient_prompt") },
		func() {
			handler.Prompt(server, "test_transient_prompt", simplePrompt,
				handler.Description("Is there until test_trigger_prompt_change is called again."))
		})
	handler.Tool(server, "test_trigger_prompt_change",
		func(*handler.Context, none) (string, error) {
			return togglePrompt("The prompt test_transient_prompt"), nil
		},
		handler.Description("Adds a prompt to the list, or takes it out again."))

	var changes atomic.Int64
	handler.Resource(server, watched, "watched_resource",
		func(*handler.Context) (*handler.ReadResult, error) {
			text := fmt.Sprintf("This resource has changed %d times.", changes.Load())
			return handler.Read(handler.TextContents("text/plain", text)), nil
		},
		handler.Description("A text that test_trigger_resource_update changes."), handler.MIMEType("text/plain"))
	handler.Tool(server, "test_trigger_resource_update",
		func(*handler.Context, none) (string, error) {
			changes.Add(1)
			server.ResourceUpdated(watched)
			return "The resource " + watched + " has changed.", nil
		},
		handler.Description("Changes the resource "+watched+"."))
}

// toggle returns a function that removes an entry where it is there and adds it
// where it is not: a list changes with every call and never grows. The function
// says what it did.
func toggle(remove func() bool, add func()) func(entry string) string {
	var mutex sync.Mutex // between looking and adding
	return func(entry string) string {
		mutex.Lock()
		defer mutex.Unlock()
		if remove() {
			return entry + " is gone."
		}
		add()
		return entry + " is there."
	}
}
