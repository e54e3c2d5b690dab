// Package modern serves the stateless revisions of MCP, 2026-07-28 and later.
//
// Every request stands alone: its `_meta` says which revision it speaks and what
// the client can do, and nothing is remembered from one request to the next. A
// question of a handler ends the request: the reply says `input_required` and
// carries the questions and a sealed request state; the client sends the same
// request again with the answers, and the handler runs again from the start. What
// must survive until then travels in the request state, see exchange.go.
//
// Serve is told nothing of transports: a request comes decoded, with its HTTP
// headers where there are any, and notifications leave through a Sink.
//
// The limit: a chain of rounds ends when it is too old or has had too many rounds,
// both by configuration. What is lost then are the user's answers.
package modern

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/countersign-mcp/countersign/services/internal/tracing"
	"github.com/countersign-mcp/countersign/services/mcpedge/catalog"
	"github.com/countersign-mcp/countersign/services/mcpedge/failure"
	"github.com/countersign-mcp/countersign/services/mcpedge/identity"
	"github.com/countersign-mcp/countersign/services/mcpedge/jsonrpc"
	"github.com/countersign-mcp/countersign/services/mcpedge/render"
	"github.com/countersign-mcp/countersign/services/mcpedge/state"
	"github.com/countersign-mcp/countersign/services/mcpedge/subscription"
	"github.com/countersign-mcp/countersign/services/mcpedge/telemetry"
)

// Revision is the protocol version that this package serves.
const Revision = "2026-07-28"

// Sink takes the notifications that belong to one request.
type Sink interface {
	// Notify sends a notification; params is the exact text of an object.
	Notify(method string, params []byte) error
	// KeepAlive sends something that says nothing, so that whoever stands between
	// does not take the connection for dead.
	KeepAlive() error
}

// Request is a request of a client.
type Request struct {
	// Message is the decoded message.
	Message jsonrpc.Message
	// Header holds the HTTP headers; nil where the transport has none.
	Header http.Header
	// Principal is on whose behalf the request is made.
	Principal identity.Principal
}

// Options are what a Server needs.
type Options struct {
	Catalog       *catalog.Catalog
	Sealer        *state.Sealer
	Subscriptions *subscription.Hub
	Renderer      *render.Renderer
	Metrics       *telemetry.Metrics
	Logger        *slog.Logger
	// Tracing makes the spans of requests; nil for none.
	Tracing *tracing.Tracing
	// Now is the clock.
	Now func() time.Time
	// RequestTimeout bounds one request.
	RequestTimeout time.Duration
	// ChainLifetime bounds a chain, from its first request on.
	ChainLifetime time.Duration
	// KeepAlive is how often a silent stream is kept alive.
	KeepAlive time.Duration
	// PageSize is how many entries a page of a list has at most; 0 is no bound.
	PageSize int
}

// Server serves requests. It is safe for concurrent use.
type Server struct {
	Options
}

// NewServer returns a Server.
func NewServer(options Options) *Server { return &Server{Options: options} }

// method is one method of the protocol.
type method struct {
	serve func(s *Server, ctx context.Context, c *call, sink Sink) ([]byte, error)
	// lasting: the request lasts until the client ends it, and has no timeout.
	lasting bool
}

// methods are the methods of the protocol that are served.
var methods = map[string]method{
	"server/discover":          {serve: (*Server).discover},
	"tools/list":               {serve: (*Server).listTools},
	"tools/call":               {serve: (*Server).callTool},
	"prompts/list":             {serve: (*Server).listPrompts},
	"prompts/get":              {serve: (*Server).getPrompt},
	"resources/list":           {serve: (*Server).listResources},
	"resources/templates/list": {serve: (*Server).listResourceTemplates},
	"resources/read":           {serve: (*Server).readResource},
	"completion/complete":      {serve: (*Server).complete},
	"subscriptions/listen":     {serve: (*Server).listen, lasting: true},
}

// Serve serves a request and returns the exact text of its result, an object. It
// fails with a *failure.Error.
func (s *Server) Serve(ctx context.Context, request Request, sink Sink) ([]byte, error) {
	began := s.Now()
	defer s.Metrics.Started()()
	name := telemetry.OtherMethod
	if _, served := methods[request.Message.Method]; served {
		name = request.Message.Method
	}
	c, err := newCall(request)
	ctx, span := s.startSpan(ctx, c, name, began)
	var result []byte
	if err == nil {
		result, err = s.serve(ctx, c, sink)
	}
	ended := s.Now()
	took := ended.Sub(began)
	if err != nil {
		failed := failure.Of(err)
		endSpan(span, c.outcome, failed, ended)
		s.failed(ctx, c, name, failed, took)
		return nil, err
	}
	endSpan(span, c.outcome, nil, ended)
	switch c.outcome {
	case inputRequired:
		s.Metrics.InputRequired(name, took)
	default:
		s.Metrics.Completed(name, took)
	}
	return result, nil
}

// outcome is how a request was served.
type outcome int

const (
	complete outcome = iota
	inputRequired
)

func (s *Server) serve(ctx context.Context, c *call, sink Sink) ([]byte, error) {
	method, served := methods[c.Message.Method]
	if !served {
		return nil, failure.New(failure.UnknownMethod, nil)
	}
	if !method.lasting {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.RequestTimeout)
		defer cancel()
	}
	return method.serve(s, ctx, c, sink)
}

// failed counts and logs a request that was not served. What the client reads may
// quote what it sent, so the log has the reason and the cause alone.
func (s *Server) failed(ctx context.Context, c *call, name string, e *failure.Error, took time.Duration) {
	s.Metrics.Failed(name, string(e.Reason), took)
	if e.Reason == failure.RequestStateRefused {
		s.Metrics.StateRefused(e.Detail)
	}
	if e.Reason == failure.CursorRefused {
		s.Metrics.CursorRefused(e.Detail)
	}
	level := slog.LevelInfo
	if e.Alarming() {
		level = slog.LevelWarn
	}
	attributes := []slog.Attr{slog.String("method", name), slog.String("reason", string(e.Reason))}
	if e.Detail != "" {
		attributes = append(attributes, slog.String("detail", e.Detail))
	}
	if i := c.invocation; i != nil {
		attributes = append(attributes, i.logAttributes()...)
	}
	if e.Cause != nil {
		attributes = append(attributes, slog.Any("cause", e.Cause))
	}
	s.Logger.LogAttrs(ctx, level, "request not served", attributes...)
}

// snapshot returns the catalog, or a failure while there is none.
func (s *Server) snapshot() (*catalog.Snapshot, error) {
	if snapshot := s.Catalog.Snapshot(); snapshot != nil {
		return snapshot, nil
	}
	return nil, failure.New(failure.HandlerUnavailable, nil)
}

func (s *Server) discover(context.Context, *call, Sink) ([]byte, error) {
	discovery := render.Discovery{Revisions: []string{Revision}}
	if snapshot := s.Catalog.Snapshot(); snapshot != nil {
		discovery.Instructions = snapshot.Instructions
	}
	return s.Renderer.Discover(discovery)
}
