package tracing

import (
	"context"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// wordless exports spans without the words in them: the description of a status is,
// for a gRPC call, what the handler's author wrote about a failure, and an event of an
// exception holds its text.
type wordless struct {
	sdktrace.SpanExporter

	// awaited ends when nobody waits for the export any more.
	awaited context.Context //nolint:containedctx // it is the exporter's end, not a call's
}

// ExportSpans implements sdktrace.SpanExporter.
func (w wordless) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	stripped := make([]sdktrace.ReadOnlySpan, len(spans))
	for position, span := range spans {
		stripped[position] = wordlessSpan{span}
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.awaited, cancel)() //nolint:contextcheck // the export ends with either

	return w.SpanExporter.ExportSpans(ctx, stripped)
}

type wordlessSpan struct {
	sdktrace.ReadOnlySpan
}

// Status implements sdktrace.ReadOnlySpan. A call that its caller has cancelled is no
// error: it is how an attempt ends that has asked a question.
func (s wordlessSpan) Status() sdktrace.Status {
	status := sdktrace.Status{Code: s.ReadOnlySpan.Status().Code}

	for _, attribute := range s.Attributes() {
		if attribute.Key == "rpc.response.status_code" && attribute.Value.AsString() == "CANCELLED" {
			status.Code = codes.Unset
		}
	}

	return status
}

// Events implements sdktrace.ReadOnlySpan.
func (wordlessSpan) Events() []sdktrace.Event { return nil }
