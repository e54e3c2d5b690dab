// Package tracecontext decides which trace a request belongs to.
//
// A client says so in two places: in HTTP headers, as W3C Trace Context and W3C
// Baggage have it, and in the members `traceparent`, `tracestate` and `baggage` of
// `_meta`, which MCP reserves for the same values (basic, "OpenTelemetry trace
// context"). MCP does not say which of the two counts. `_meta` is written by who makes
// the request and arrives as it was written; headers are also written by the proxies
// between. So:
//
//   - One that is there counts.
//   - Where both name the same trace, the header's span is the newer one, made on the
//     way here, and is the parent.
//   - Where they name different traces, `_meta` counts, and the header's span is linked.
//
// What is malformed is as good as absent and never makes a request fail: the
// specifications of W3C say so, and a trace is not what the client asked for.
//
// The limit: a trace state beyond maxStateBytes and a baggage beyond the 8192 bytes or
// 64 members that W3C demands are left out, because they travel to handler services as
// gRPC metadata, which is small. What is lost is what other vendors' tools had put there.
package tracecontext

import (
	"context"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// maxStateBytes is how long a trace state may be: as much as W3C Trace Context demands
// to be passed on ("tracestate Limits").
const maxStateBytes = 512

// Fields are the values that a client sends, as they came. Empty is absent.
type Fields struct {
	// Parent is the traceparent.
	Parent string
	// State is the tracestate.
	State string
	// Baggage is the baggage.
	Baggage string
}

// FromHeader returns the fields in HTTP headers.
func FromHeader(header http.Header) Fields {
	fields := Fields{State: joined(header["Tracestate"]), Baggage: joined(header["Baggage"])}
	// More than one parent is none (Trace Context, "traceparent Header").
	if parents := header["Traceparent"]; len(parents) == 1 {
		fields.Parent = parents[0]
	}
	return fields
}

// joined puts the values of a header that may be given several times into one.
func joined(values []string) string {
	if len(values) == 1 {
		return values[0]
	}
	return strings.Join(values, ",")
}

// Join returns ctx with the span that is the request's parent and with its baggage, as
// far as there are any, and a span of another trace to link with.
func Join(ctx context.Context, header, meta Fields) (context.Context, trace.SpanContext) {
	if header == (Fields{}) && meta == (Fields{}) {
		return ctx, trace.SpanContext{}
	}
	first, second := header.parse(), meta.parse()
	var linked trace.SpanContext
	switch {
	case !first.span.IsValid():
		first, second = second, first
	case second.span.IsValid() && first.span.TraceID() != second.span.TraceID():
		linked = first.span
		// The header's baggage belongs to the header's trace.
		first, second = second, parsed{}
	}
	if first.span.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, first.span)
	}
	carried := first.baggage
	if carried.Len() == 0 {
		carried = second.baggage
	}
	if carried.Len() > 0 {
		ctx = baggage.ContextWithBaggage(ctx, carried)
	}
	return ctx, linked
}

// parsed is what Fields say.
type parsed struct {
	// span is the caller's; not valid where there is none.
	span    trace.SpanContext
	baggage baggage.Baggage
}

func (f Fields) parse() parsed {
	var p parsed
	if f.Parent != "" {
		p.span = trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier(f)))
	}
	// The error is left aside: it quotes the client, and the members without a fault
	// are good. The propagator for baggage would report it.
	p.baggage, _ = baggage.Parse(f.Baggage)
	return p
}

// carrier lets the propagator for traces read Fields.
type carrier Fields

// Get returns a field by its name.
func (c carrier) Get(name string) string {
	switch {
	case name == "traceparent":
		return c.Parent
	case name == "tracestate" && len(c.State) <= maxStateBytes:
		return c.State
	default:
		return ""
	}
}

// Set does nothing: what a client has sent is only read.
func (carrier) Set(string, string) {}

// Keys returns the names of the fields.
func (carrier) Keys() []string { return []string{"traceparent", "tracestate"} }
