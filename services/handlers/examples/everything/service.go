package main

import (
	handler "github.com/countersign-mcp/countersign/services/handlers/go"
)

// none is the input of a tool or prompt that takes nothing.
type none struct{}

func newServer() *handler.Server {
	server := handler.NewServer("everything",
		handler.WithInstructions("Small tools that each show one thing a handler can do."))
	handler.Tool(server, "test_simple_text",
		func(*handler.Context, none) (string, error) {
			return "This is a simple text response for testing.", nil
		},
		handler.Description("Returns a text."), handler.ReadOnly())
	handler.Prompt(server, "test_simple_prompt",
		func(*handler.Context, none) ([]handler.Message, error) {
			return []handler.Message{handler.User(handler.Text("This is a simple prompt for testing."))}, nil
		},
		handler.Description("A prompt of one message."))
	handler.Resource(server, "test://static-text", "static_text",
		func(*handler.Context) (*handler.ReadResult, error) {
			return handler.Read(handler.TextContents("text/plain", "This is the content of the static text resource.")), nil
		},
		handler.Description("A text that never changes."), handler.MIMEType("text/plain"))
	registerAsks(server)
	return server
}
