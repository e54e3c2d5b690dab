package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign-mcp/countersign/client/wire"
)

// listenCommand is `listen`.
type listenCommand struct {
	Tools     bool     `help:"Changes of the list of tools."`
	Prompts   bool     `help:"Changes of the list of prompts."`
	Resources bool     `help:"Changes of the list of resources."`
	Resource  []string `help:"Changes of what this resource holds. Repeat it for more." placeholder:"URI" sep:"none"`
}

// filter says which changes are wanted (basic/patterns/subscriptions).
type filter struct {
	Tools     bool     `json:"toolsListChanged,omitzero"`
	Prompts   bool     `json:"promptsListChanged,omitzero"`
	Resources bool     `json:"resourcesListChanged,omitzero"`
	Resource  []string `json:"resourceSubscriptions,omitempty"`
}

func (c *listenCommand) run(ctx context.Context, s *session) error {
	wanted := filter{Tools: c.Tools, Prompts: c.Prompts, Resources: c.Resources, Resource: c.Resource}
	if !c.Tools && !c.Prompts && !c.Resources && len(c.Resource) == 0 {
		wanted = filter{Tools: true, Prompts: true, Resources: true}
	}
	params, err := encoded(map[string]any{"notifications": wanted})
	if err != nil {
		return err
	}
	var writeErr error
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	result, err := s.call(ctx, wire.Request{
		Method:    "subscriptions/listen",
		Params:    params,
		Unbounded: true,
		Notify: func(notification wire.Notification) {
			if writeErr = s.change(notification, wanted); writeErr != nil {
				stop(writeErr)
			}
		},
	})
	switch {
	case writeErr != nil:
		return writeErr
	case errors.Is(err, context.Canceled): // Ctrl-C is how listening ends
		return nil
	case err != nil:
		return err
	}
	s.notef("the server ended the subscription")
	if s.flags.JSON {
		s.printJSON(result)
	}
	return nil
}

// change prints one change, at once.
func (s *session) change(notification wire.Notification, wanted filter) error {
	var params struct {
		URI    string `json:"uri"`
		Agreed filter `json:"notifications"`
	}
	if len(notification.Params) > 0 {
		if err := json.Unmarshal(notification.Params, &params); err != nil {
			return fmt.Errorf("read a change: %w", err)
		}
	}
	if notification.Method == "notifications/subscriptions/acknowledged" {
		s.acknowledged(params.Agreed, wanted)
	}
	if s.flags.JSON {
		method, err := jsontext.AppendQuote(nil, notification.Method)
		if err != nil {
			return fmt.Errorf("encode a change: %w", err)
		}
		text := `{"method":` + string(method)
		if len(notification.Params) > 0 {
			text += `,"params":` + string(notification.Params)
		}
		s.printJSON(jsontext.Value(text + "}"))
		return s.printer.Flush()
	}
	switch notification.Method {
	case "notifications/subscriptions/acknowledged":
		return nil
	case "notifications/tools/list_changed":
		s.printer.Linef("the list of tools changed")
	case "notifications/prompts/list_changed":
		s.printer.Linef("the list of prompts changed")
	case "notifications/resources/list_changed":
		s.printer.Linef("the list of resources changed")
	case "notifications/resources/updated":
		s.printer.Linef("%s changed", params.URI)
	default:
		s.printer.Linef("%s", notification.Method)
	}
	return s.printer.Flush()
}

// acknowledged says what the server will not tell.
func (s *session) acknowledged(agreed, wanted filter) {
	s.notef("listening; Ctrl-C ends it")
	for _, one := range []struct {
		what           string
		wanted, agreed bool
	}{
		{"changes of the list of tools", wanted.Tools, agreed.Tools},
		{"changes of the list of prompts", wanted.Prompts, agreed.Prompts},
		{"changes of the list of resources", wanted.Resources, agreed.Resources},
	} {
		if one.wanted && !one.agreed {
			s.notef("the server does not tell %s", one.what)
		}
	}
	told := map[string]bool{}
	for _, uri := range agreed.Resource {
		told[uri] = true
	}
	for _, uri := range wanted.Resource {
		if !told[uri] {
			s.notef("the server does not tell changes of %s", uri)
		}
	}
}
