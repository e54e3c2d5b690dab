package modern

import (
	"context"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	"github.com/countersign-mcp/countersign/services/mcpedge/catalog"
	"github.com/countersign-mcp/countersign/services/mcpedge/identity"
	"github.com/countersign-mcp/countersign/services/mcpedge/jsonrpc"
	"github.com/countersign-mcp/countersign/services/mcpedge/state"
)

func (s *Server) listTools(ctx context.Context, c *call, _ Sink) ([]byte, error) {
	return s.list(ctx, c, "tools", func(lists *catalog.Lists) *catalog.List { return &lists.Tools })
}

func (s *Server) listPrompts(ctx context.Context, c *call, _ Sink) ([]byte, error) {
	return s.list(ctx, c, "prompts", func(lists *catalog.Lists) *catalog.List { return &lists.Prompts })
}

func (s *Server) listResources(ctx context.Context, c *call, _ Sink) ([]byte, error) {
	return s.list(ctx, c, "resources", func(lists *catalog.Lists) *catalog.List { return &lists.Resources })
}

func (s *Server) listResourceTemplates(ctx context.Context, c *call, _ Sink) ([]byte, error) {
	return s.list(ctx, c, "resourceTemplates", func(lists *catalog.Lists) *catalog.List { return &lists.ResourceTemplates })
}

// list returns a page. The cursor to the next one names the page's last entry: what
// stayed in the list meanwhile comes once, whatever else came or went, and any edge
// can serve the page. A list of one page needs no sealer.
func (s *Server) list(ctx context.Context, c *call, member string, pick func(*catalog.Lists) *catalog.List) ([]byte, error) {
	snapshot, err := s.snapshot()
	if err != nil {
		return nil, err
	}
	list := pick(&snapshot.Lists)
	binding := state.CursorBinding{Method: c.Message.Method, Principal: reader(c.Principal, list.Cache)}
	after := ""
	if c.cursor != nil {
		if after, err = s.openCursor(ctx, c.cursor, binding); err != nil {
			return nil, err
		}
	}
	elements, last := list.Page(after, s.PageSize)
	next := ""
	if last != "" {
		if next, err = s.Sealer.SealCursor(ctx, binding, last); err != nil {
			return nil, err
		}
	}
	return s.Renderer.List(member, elements, next, list.Cache, snapshot.Missing)
}

// openCursor returns the name that a client's cursor holds. Even the empty string is
// a cursor, and refused as one.
func (s *Server) openCursor(ctx context.Context, value []byte, binding state.CursorBinding) (string, error) {
	cursor, err := jsonrpc.Unquote(value)
	if err != nil {
		return "", state.CursorRefused()
	}
	return s.Sealer.OpenCursor(ctx, cursor, binding)
}

// everybody is whom a page is for that anybody may be shown. No principal is like it:
// each has an issuer.
var everybody = identity.Principal{}

// reader is whom the cursors of a list are for. A public page may be kept and shown
// to anybody (MCP, "Cache Scope Field"), who then must be able to go on from it; a
// private one is the caller's own. Since all pages must have the same scope, this
// also ends a list whose scope has changed: the cursor is refused.
func reader(caller identity.Principal, hint *handlerv1.CacheHint) identity.Principal {
	if hint.GetScope() == handlerv1.CacheScope_CACHE_SCOPE_PUBLIC {
		return everybody
	}
	return caller
}
