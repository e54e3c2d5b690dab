package main

import (
	"encoding/json"
	"fmt"

	handler "github.com/countersign-mcp/countersign/services/handlers/go"
)

// registerResources adds the resources that never change and the template of more
// of them.
func registerResources(server *handler.Server) {
	handler.Resource(server, "test://static-text", "static_text",
		func(*handler.Context) (*handler.ReadResult, error) {
			return handler.Read(handler.TextContents("text/plain", "This is the content of the static text resource.")), nil
		},
		handler.Description("A text that never changes."), handler.MIMEType("text/plain"))
	handler.Resource(server, "test://static-binary", "static_binary",
		func(*handler.Context) (*handler.ReadResult, error) {
			return handler.Read(handler.BlobContents("image/png", redPixelFile())), nil
		},
		handler.Description("A picture that never changes."), handler.MIMEType("image/png"))
	handler.ResourceTemplate(server, "test://template/{id}/data", "template_data", readTemplated,
		handler.Description("The record of an id."), handler.MIMEType("application/json"))
}

type templateVariables struct {
	ID string `json:"id"`
}

func readTemplated(_ *handler.Context, vars templateVariables) (*handler.ReadResult, error) {
	record, err := json.Marshal(map[string]any{
		"id": vars.ID, "templateTest": true, "data": "Data for ID: " + vars.ID,
	})
	if err != nil {
		return nil, fmt.Errorf("write a record: %w", err)
	}
	return handler.Read(handler.TextContents("application/json", string(record))), nil
}
