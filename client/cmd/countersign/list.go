package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign-mcp/countersign/client/wire"
)

// listCommand is `list`.
type listCommand struct {
	Kind string `arg:"" default:"all" enum:"all,tools,prompts,resources,templates" help:"What to list: tools, prompts, resources, templates, or all of them."`
}

// kinds are what can be listed: the method, the member of its result that holds
// the entries, and the capability of a server that has it.
var kinds = []struct{ name, method, member, capability string }{
	{"tools", "tools/list", "tools", "tools"},
	{"prompts", "prompts/list", "prompts", "prompts"},
	{"resources", "resources/list", "resources", "resources"},
	{"templates", "resources/templates/list", "resourceTemplates", "resources"},
}

func (c *listCommand) run(ctx context.Context, s *session) error {
	offered := map[string]jsontext.Value{}
	if c.Kind == "all" {
		var err error
		if offered, err = s.capabilities(ctx); err != nil {
			return err
		}
	}
	shown := 0
	for _, kind := range kinds {
		if c.Kind != kind.name && (c.Kind != "all" || offered[kind.capability] == nil) {
			continue
		}
		entries, err := s.entries(ctx, kind.method, kind.member)
		if err != nil {
			return fmt.Errorf("list the %s: %w", kind.name, err)
		}
		if s.flags.JSON {
			continue
		}
		if shown > 0 {
			s.printer.Linef("")
		}
		shown++
		if kind.name == "tools" {
			entries = s.usable(entries)
		}
		if err := s.printer.List(kind.name, entries); err != nil {
			return err
		}
	}
	return nil
}

// capabilities are what the server says it has.
func (s *session) capabilities(ctx context.Context) (map[string]jsontext.Value, error) {
	result, err := s.call(ctx, wire.Request{Method: "server/discover"})
	if err != nil {
		return nil, err
	}
	var discovered struct {
		Capabilities map[string]jsontext.Value `json:"capabilities"`
	}
	if err := json.Unmarshal(result, &discovered); err != nil {
		return nil, fmt.Errorf("read what the server says about itself: %w", err)
	}
	return discovered.Capabilities, nil
}

// entries collects the entries of all pages. With --json each page is printed as
// it comes.
func (s *session) entries(ctx context.Context, method, member string) ([]jsontext.Value, error) {
	var entries []jsontext.Value
	err := s.pages(ctx, method, func(page jsontext.Value) (bool, error) {
		if s.flags.JSON {
			s.printJSON(page)
			return true, nil
		}
		var listed map[string]jsontext.Value
		if err := json.Unmarshal(page, &listed); err != nil {
			return false, err
		}
		var some []jsontext.Value
		if err := json.Unmarshal(listed[member], &some); err != nil {
			return false, err
		}
		entries = append(entries, some...)
		return true, nil
	})
	return entries, err
}

// maxPages is how many pages of a list are read. A server may give a new cursor with
// each page for ever.
const maxPages = 1000

// pages gets one page after the other until there is no more, or visit says that
// it has seen enough, and fails after maxPages.
func (s *session) pages(ctx context.Context, method string, visit func(page jsontext.Value) (more bool, err error)) error {
	params := map[string]jsontext.Value{}
	seen := map[string]bool{}
	for range maxPages {
		page, err := s.call(ctx, wire.Request{Method: method, Params: params})
		if err != nil {
			return err
		}
		more, err := visit(page)
		if err != nil || !more {
			return err
		}
		var next struct {
			Cursor jsontext.Value `json:"nextCursor"`
		}
		if err := json.Unmarshal(page, &next); err != nil {
			return fmt.Errorf("read the next page's cursor: %w", err)
		}
		switch {
		case len(next.Cursor) == 0 || next.Cursor.Kind() == 'n':
			return nil
		case seen[string(next.Cursor)]:
			return errors.New("the server's pages go in a circle: it gave the same cursor twice")
		}
		seen[string(next.Cursor)] = true
		params = map[string]jsontext.Value{"cursor": next.Cursor}
	}
	return fmt.Errorf("the server's list does not end: more follows after %d pages", maxPages)
}

// usable leaves out the tools that must not be used, with a note on each.
func (s *session) usable(tools []jsontext.Value) []jsontext.Value {
	var kept []jsontext.Value
	for _, text := range tools {
		var tool struct {
			Name        string         `json:"name"`
			InputSchema jsontext.Value `json:"inputSchema"`
		}
		err := json.Unmarshal(text, &tool)
		if err == nil {
			_, err = wire.HeaderParameters(tool.InputSchema)
		}
		if err != nil {
			s.notef("the tool %q is left out: its definition is not valid: %v", tool.Name, err)
			continue
		}
		kept = append(kept, text)
	}
	return kept
}
