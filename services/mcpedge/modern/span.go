package modern

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/countersign-mcp/countersign/services/mcpedge/failure"
	"github.com/countersign-mcp/countersign/services/mcpedge/tracecontext"
)

// Attributes of a request's span. The first three are OpenTelemetry's (semantic
// conventions for MCP), the others ours. None holds anything that a client chose: a
// name is one that the catalog has, and the URI of a resource is in none, because it
// may have arguments in it.
const (
	attributeMethod  = "mcp.method.name"
	attributeTool    = "gen_ai.tool.name"
	attributePrompt  = "gen_ai.prompt.name"
	attributeError   = "error.type"
	attributeOutcome = "countersign.outcome"
	attributeHandler = "countersign.handler"
	attributeAttempt = "countersign.attempt"
	// attributeChain is the same for all rounds of one original request, which are
	// requests, and mostly traces, of their own.
	attributeChain = "countersign.chain_id"
)

// startSpan begins a request's span in the trace that the client names, or in a new
// one. Where no spans are made, ctx hands on the client's.
func (s *Server) startSpan(ctx context.Context, c *call, method string, began time.Time) (context.Context, trace.Span) {
	ctx, linked := tracecontext.Join(ctx, tracecontext.FromHeader(c.Header), c.meta.trace)
	if !s.Tracing.Records() {
		return ctx, trace.SpanFromContext(ctx)
	}
	options := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(began), trace.WithAttributes(attribute.String(attributeMethod, method)),
	}
	if linked.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: linked}))
	}
	return s.Tracing.Start(ctx, "mcp "+method, options...)
}

// endSpan ends a request's span; failed is nil for one that was served.
func endSpan(span trace.Span, outcome outcome, failed *failure.Error, ended time.Time) {
	if !span.IsRecording() {
		return
	}
	switch {
	case failed != nil:
		span.SetAttributes(attribute.String(attributeOutcome, "error"), attribute.String(attributeError, string(failed.Reason)))
		if failed.Reason != failure.Cancelled {
			span.SetStatus(codes.Error, "")
		}
	case outcome == inputRequired:
		span.SetAttributes(attribute.String(attributeOutcome, "input_required"))
	default:
		span.SetAttributes(attribute.String(attributeOutcome, "complete"))
	}
	span.End(trace.WithTimestamp(ended))
}

// logAttributes says which attempt of what it is, in words of the catalog: they are
// those that the handler's own log has, and hold nothing that a client chose.
func (i *invocation) logAttributes() []slog.Attr {
	attributes := []slog.Attr{
		slog.String("handler", i.entry.Handler.Name),
		slog.String("invocation", i.begin.GetInvocationId()),
		slog.String("chain", i.begin.GetChainId()),
		slog.Int64("attempt", int64(i.begin.GetAttempt())),
	}
	switch {
	case i.begin.GetCallTool() != nil:
		attributes = append(attributes, slog.String("tool", i.target))
	case i.begin.GetGetPrompt() != nil:
		attributes = append(attributes, slog.String("prompt", i.target))
	}
	return attributes
}

// describe tells the request's span which attempt of what it is.
func (i *invocation) describe(span trace.Span) {
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(
		attribute.String(attributeHandler, i.entry.Handler.Name),
		attribute.String(attributeChain, i.begin.GetChainId()),
		attribute.Int64(attributeAttempt, int64(i.begin.GetAttempt())),
	)
	switch {
	case i.begin.GetCallTool() != nil:
		span.SetAttributes(attribute.String(attributeTool, i.target))
	case i.begin.GetGetPrompt() != nil:
		span.SetAttributes(attribute.String(attributePrompt, i.target))
	}
}
