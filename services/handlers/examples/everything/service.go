package main

import (
	handler "github.com/countersign-mcp/countersign/services/handlers/go"
)

// none is the input of a tool or prompt that takes nothing.
type none struct{}

func newServer() *handler.Server {
	server := handler.NewServer("everything",
		handler.WithInstructions("Small tools that each show one thing a handler can do."))
	registerTools(server)
	registerSchemas(server)
	registerPrompts(server)
	registerResources(server)
	registerAsks(server)
	registerForms(server)
	registerChanges(server)
	return server
}
