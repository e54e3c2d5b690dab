package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign-mcp/countersign/client/arguments"
	"github.com/countersign-mcp/countersign/client/wire"
)

// callCommand is `call`.
type callCommand struct {
	Name   string   `arg:"" help:"The tool's name."`
	Pairs  []string `arg:"" help:"The tool's arguments. Each becomes what the tool's schema says: a text, a number, true or false, JSON." name:"argument=value" optional:"" sep:"none"`
	Object string   `help:"The arguments as a JSON object, from a file with @, from the input with -. Pairs are set in it." name:"arguments" placeholder:"JSON|@FILE|-"`
}

func (c *callCommand) run(ctx context.Context, s *session) error {
	var object jsontext.Value
	if c.Object != "" {
		var err error
		if object, err = arguments.Read(c.Object, s.console.in); err != nil {
			return err
		}
	}
	schema, err := s.toolSchema(ctx, c.Name)
	if err != nil {
		return err
	}
	typed, err := arguments.Typed(object, c.Pairs, schema)
	if err != nil {
		return err
	}
	mirrored, err := mirror(schema, typed)
	if err != nil {
		return fmt.Errorf("the tool %q: %w", c.Name, err)
	}
	params, err := named("name", c.Name)
	if err != nil {
		return err
	}
	params["arguments"] = typed
	request := wire.Request{Method: "tools/call", Name: c.Name, Params: params, Mirrored: mirrored}
	result, err := s.carry(ctx, &mirroringCaller{session: s, tool: c.Name, arguments: typed}, request)
	if err != nil {
		return err
	}
	return s.showToolResult(result)
}

// showToolResult prints a tool's result and turns a failure of the tool's into an
// error.
func (s *session) showToolResult(result jsontext.Value) error {
	var called struct {
		IsError bool `json:"isError"`
	}
	if err := json.Unmarshal(result, &called); err != nil {
		return fmt.Errorf("read the tool's result: %w", err)
	}
	if called.IsError {
		s.notef("the tool failed:")
	}
	if err := s.show(result, s.printer.ToolResult); err != nil {
		return err
	}
	if called.IsError {
		return errToolFailed
	}
	return nil
}

// toolSchema finds a tool's input schema. A tool that the server does not list has
// none: whether it exists is the server's to say.
func (s *session) toolSchema(ctx context.Context, name string) (jsontext.Value, error) {
	var schema jsontext.Value
	found := false
	err := s.pages(ctx, "tools/list", func(page jsontext.Value) (bool, error) {
		var listed struct {
			Tools []struct {
				Name        string         `json:"name"`
				InputSchema jsontext.Value `json:"inputSchema"`
			} `json:"tools"`
		}
		if err := json.Unmarshal(page, &listed); err != nil {
			return false, fmt.Errorf("read the list of tools: %w", err)
		}
		for _, tool := range listed.Tools {
			if tool.Name == name {
				schema, found = tool.InputSchema, true
			}
		}
		return !found, nil
	})
	return schema, err
}

// mirror finds the arguments that the tool wants as headers.
func mirror(schema, typed jsontext.Value) ([]wire.MirroredArgument, error) {
	if len(schema) == 0 {
		return nil, nil
	}
	parameters, err := wire.HeaderParameters(schema)
	if err != nil {
		return nil, fmt.Errorf("its definition is not valid: %w", err)
	}
	return wire.Mirror(parameters, typed)
}

// mirroringCaller calls a tool, and once more with the headers of a fresh
// definition where the server says that they do not mirror the arguments
// (basic/transports/streamable-http, "Client Behavior").
type mirroringCaller struct {
	session   *session
	tool      string
	arguments jsontext.Value
}

// Call sends the request.
func (m *mirroringCaller) Call(ctx context.Context, request wire.Request) (wire.Result, error) {
	result, err := m.session.client.Call(ctx, request)
	var rpcError *wire.RPCError
	if !errors.As(err, &rpcError) || rpcError.Code != wire.CodeHeaderMismatch {
		return result, err
	}
	schema, listErr := m.session.toolSchema(ctx, m.tool)
	if listErr != nil {
		return result, errors.Join(err, listErr)
	}
	mirrored, mirrorErr := mirror(schema, m.arguments)
	if mirrorErr != nil {
		return result, errors.Join(err, mirrorErr)
	}
	request.Mirrored = mirrored
	return m.session.client.Call(ctx, request)
}
