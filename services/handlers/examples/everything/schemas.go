package main

import (
	"encoding/json"
	"fmt"

	handler "github.com/countersign-mcp/countersign/services/handlers/go"
)

// registerSchemas adds the tools whose input schemas are written by hand, because
// they say what a Go type cannot.
func registerSchemas(server *handler.Server) {
	handler.Tool(server, "json_schema_2020_12_tool", describeContact,
		handler.Description("Takes a contact, described with the keywords of JSON Schema 2020-12."),
		handler.InputSchema(json.RawMessage(contactSchema)), handler.ReadOnly())
	handler.Tool(server, "test_x_mcp_header", describeRegion,
		handler.Description("Takes a region that the client repeats in a header."),
		handler.InputSchema(json.RawMessage(regionSchema)), handler.ReadOnly())
}

// contactSchema has one of each keyword that gets lost where a schema is read into
// a type and written again.
const contactSchema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "$defs": {
    "address": {
      "$anchor": "addressDef",
      "type": "object",
      "properties": {
        "street": {"type": "string"},
        "city": {"type": "string"}
      }
    }
  },
  "properties": {
    "name": {"type": "string"},
    "address": {"$ref": "#/$defs/address"},
    "contactMethod": {"type": "string", "enum": ["phone", "email"]},
    "phone": {"type": "string"},
    "email": {"type": "string"}
  },
  "allOf": [
    {"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}
  ],
  "if": {
    "properties": {"contactMethod": {"const": "phone"}},
    "required": ["contactMethod"]
  },
  "then": {"required": ["phone"]},
  "else": {"required": ["email"]},
  "additionalProperties": false
}`

type contact struct {
	Name          string  `json:"name,omitempty"`
	Address       address `json:"address,omitzero"`
	ContactMethod string  `json:"contactMethod,omitempty"`
	Phone         string  `json:"phone,omitempty"`
	Email         string  `json:"email,omitempty"`
}

type address struct {
	Street string `json:"street,omitempty"`
	City   string `json:"city,omitempty"`
}

func describeContact(_ *handler.Context, in contact) (string, error) {
	reachedAt := in.Email
	if in.ContactMethod == "phone" {
		reachedAt = in.Phone
	}
	return fmt.Sprintf("%q of %q is reached at %q.", in.Name, in.Address.City, reachedAt), nil
}

const regionSchema = `{
  "type": "object",
  "properties": {
    "region": {"type": "string", "description": "Where to look.", "x-mcp-header": "Region"},
    "level": {"type": "integer", "description": "How closely to look."}
  },
  "required": ["region"]
}`

type regionInput struct {
	Region string `json:"region"`
	Level  int64  `json:"level,omitempty"`
}

func describeRegion(_ *handler.Context, in regionInput) (string, error) {
	return fmt.Sprintf("The region is %q and the level %d.", in.Region, in.Level), nil
}
