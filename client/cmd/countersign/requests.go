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

// discoverCommand is `discover`.
type discoverCommand struct{}

func (*discoverCommand) run(ctx context.Context, s *session) error {
	result, err := s.call(ctx, wire.Request{Method: "server/discover"})
	if err != nil {
		return err
	}
	return s.show(result, s.printer.Discovery)
}

// promptCommand is `prompt`.
type promptCommand struct {
	Name      string   `arg:"" help:"The prompt's name."`
	Arguments []string `arg:"" help:"The prompt's arguments." name:"argument=value" optional:"" sep:"none"`
}

func (c *promptCommand) run(ctx context.Context, s *session) error {
	texts, err := arguments.Texts(nil, c.Arguments)
	if err != nil {
		return err
	}
	params, err := named("name", c.Name)
	if err != nil {
		return err
	}
	params["arguments"] = texts
	result, err := s.carry(ctx, s.client, wire.Request{Method: "prompts/get", Name: c.Name, Params: params})
	if err != nil {
		return err
	}
	return s.show(result, s.printer.PromptResult)
}

// readCommand is `read`.
type readCommand struct {
	URI string `arg:"" help:"The resource's URI." name:"uri"`
}

func (c *readCommand) run(ctx context.Context, s *session) error {
	params, err := named("uri", c.URI)
	if err != nil {
		return err
	}
	result, err := s.carry(ctx, s.client, wire.Request{Method: "resources/read", Name: c.URI, Params: params})
	if err != nil {
		return err
	}
	return s.show(result, s.printer.ResourceResult)
}

// completeCommand is `complete`.
type completeCommand struct {
	Prompt   string   `help:"The prompt that the argument belongs to." placeholder:"NAME" xor:"reference"`
	Template string   `help:"The resource template that the argument belongs to." placeholder:"URI" xor:"reference"`
	With     []string `help:"An argument that is known already. Repeat it for more." placeholder:"NAME=VALUE" sep:"none"`
	Argument string   `arg:"" help:"The argument's name."`
	Value    string   `arg:"" help:"What is typed so far." optional:""`
}

func (c *completeCommand) run(ctx context.Context, s *session) error {
	reference := map[string]string{"type": "ref/prompt", "name": c.Prompt}
	switch {
	case c.Template != "":
		reference = map[string]string{"type": "ref/resource", "uri": c.Template}
	case c.Prompt == "":
		return errors.New("complete wants --prompt NAME or --template URI")
	}
	params, err := encoded(map[string]any{
		"ref":      reference,
		"argument": map[string]string{"name": c.Argument, "value": c.Value},
	})
	if err != nil {
		return err
	}
	if len(c.With) > 0 {
		known, err := arguments.Texts(nil, c.With)
		if err != nil {
			return err
		}
		params["context"] = jsontext.Value(`{"arguments":` + string(known) + `}`)
	}
	result, err := s.call(ctx, wire.Request{Method: "completion/complete", Params: params})
	if err != nil {
		return err
	}
	return s.show(result, s.printer.Completion)
}

// named is the parameters of a request for something with a name.
func named(member, name string) (map[string]jsontext.Value, error) {
	return encoded(map[string]any{member: name})
}

// encoded encodes parameters that come from the command line. A text that is not
// UTF-8 cannot be sent.
func encoded(members map[string]any) (map[string]jsontext.Value, error) {
	params := map[string]jsontext.Value{}
	for name, value := range members {
		text, err := json.Marshal(value, json.Deterministic(true))
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", name, err)
		}
		params[name] = text
	}
	return params, nil
}
