package question

import (
	"errors"
	"fmt"

	"github.com/countersign-mcp/countersign/services/mcpedge/jsonrpc"
	"github.com/countersign-mcp/countersign/services/mcpedge/schema"
)

// compileForm compiles the schema of a form. MCP lets a form have one level of
// named fields: strings, numbers, booleans, a choice of one string, and a choice
// of several ("Requested Schema").
func compileForm(text []byte) (*schema.Schema, error) {
	if !jsonrpc.Valid(text, '{') {
		return nil, errors.New("the requested schema is not a strict JSON object")
	}
	var isObject, hasProperties bool
	err := jsonrpc.EachMember(text, func(name string, value []byte) error {
		switch name {
		case "type":
			isObject = string(value) == `"object"`
		case "properties":
			if value[0] != '{' {
				return errors.New("properties is not an object")
			}
			hasProperties = true
			return jsonrpc.EachMember(value, checkField)
		case "$ref", "$defs", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "patternProperties", "dependentSchemas":
			return fmt.Errorf("a form has no %q", name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("the requested schema: %w", err)
	}
	if !isObject || !hasProperties {
		return nil, errors.New(`the requested schema must have the type "object" and properties`)
	}
	form, err := schema.Compile(text, schema.AssertFormats())
	if err != nil {
		return nil, fmt.Errorf("the requested schema: %w", err)
	}
	return form, nil
}

// checkField checks that a field is one a client can show.
func checkField(name string, field []byte) error {
	if field[0] != '{' {
		return fmt.Errorf("the field %q is not an object", name)
	}
	var kind string
	var items []byte
	err := jsonrpc.EachMember(field, func(keyword string, value []byte) error {
		switch keyword {
		case "type":
			kind = string(value)
		case "items":
			items = value
		case "properties", "$ref", "allOf", "anyOf", "not", "if":
			return fmt.Errorf("the field %q has %q, which a form cannot show", name, keyword)
		}
		return nil
	})
	if err != nil {
		return err
	}
	switch kind {
	case `"string"`, `"number"`, `"integer"`, `"boolean"`:
		return nil
	case `"array"`:
		return checkChoices(name, items)
	default:
		return fmt.Errorf("the field %q is not a string, number, integer, boolean or array of choices", name)
	}
}

// checkChoices checks that the items of an array are a choice of strings.
func checkChoices(name string, items []byte) error {
	choices := false
	if len(items) > 0 && items[0] == '{' {
		err := jsonrpc.EachMember(items, func(keyword string, value []byte) error {
			choices = choices || (keyword == "enum" || keyword == "anyOf") && value[0] == '['
			return nil
		})
		if err != nil {
			return fmt.Errorf("read the items of %q: %w", name, err)
		}
	}
	if !choices {
		return fmt.Errorf("the items of the field %q are not a choice: they need enum or anyOf", name)
	}
	return nil
}
