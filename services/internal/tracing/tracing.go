// Package tracing makes a process a part of distributed traces.
//
// The problem: one request of a client runs through an edge, a sealer and a handler
// service of somebody else, and who looks for the slow part needs the three in one
// picture. The mechanism is OpenTelemetry: every process makes spans, sends them to a
// collector over OTLP, and tells the next one over gRPC metadata, in the formats of
// W3C Trace Context and W3C Baggage, which span called it. A process without a
// collector makes no spans and hands on the context it was given, so that the
// services on both sides of it still meet in one trace.
//
// Spans hold names: of methods, tools, services and reasons. What a status of gRPC
// says in words, and the text of a panic, may quote arguments and answers, and never
// leaves the process; see exporter.go.
//
// The limit: a client that sends a trace context decides whether its requests are
// recorded. Spans wait for the collector in a queue of fixed length. What is lost
// when it is slow or away are spans, never requests.
package tracing

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/countersign-mcp/countersign/services/internal/certificates"
)

const (
	// scope names this instrumentation in spans.
	scope = "github.com/countersign-mcp/countersign/services/internal/tracing"
	// closeTimeout is how long Close waits for a collector to take the last spans.
	closeTimeout = 3 * time.Second
)

// Tracing is a process's part in traces. The zero value makes no spans.
type Tracing struct {
	provider trace.TracerProvider
	tracer   trace.Tracer
	// release ends the export; nil where there is none.
	release func()
}

// Process is what makes the spans.
type Process struct {
	// Service is the name of the service, such as `mcpedge`.
	Service string
	// Version is its version.
	Version string
}

// Open connects a process to its collector, when there is one; the connection is made
// with the first spans, and a collector that is away is no error. The caller closes the
// Tracing. What goes wrong with the export is logged.
func Open(
	ctx context.Context, configuration Configuration, process Process, registerer prometheus.Registerer, logger *slog.Logger,
) (*Tracing, error) {
	if configuration.Endpoint == "" {
		return &Tracing{}, nil
	}

	described, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(
			attribute.String("service.namespace", "countersign"),
			attribute.String("service.name", process.Service),
			attribute.String("service.version", process.Version),
			attribute.String("service.instance.id", rand.Text()),
		),
		resource.WithFromEnv(), // OTEL_RESOURCE_ATTRIBUTES: what only the operator knows
	)
	if err != nil {
		return nil, fmt.Errorf("describe the process to the collector: %w", err)
	}

	connection, disconnect, err := connect(configuration, registerer, logger)
	if err != nil {
		return nil, fmt.Errorf("connect to the collector of traces: %w", err)
	}

	exporter, err := otlptracegrpc.New(ctx, otlptracegrpc.WithGRPCConn(connection))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("export traces: %w", err), disconnect())
	}

	// The library reports failures of the export here alone.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logger.Warn("exporting traces failed", "error", err) }))

	awaited, abandon := context.WithCancel(context.WithoutCancel(ctx))
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithResource(described),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(configuration.SampleRatio))),
		sdktrace.WithBatcher(wordless{exporter, awaited}),
	)
	tracing := New(provider)
	tracing.release = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		// What is still being exported then would go on for half a minute.
		defer abandon()

		err := errors.Join(provider.Shutdown(ctx), disconnect())
		if err != nil {
			logger.Warn("the last spans were not exported", "error", err)
		}
	}

	return tracing, nil
}

// New returns a Tracing whose spans go to a provider of the caller's.
func New(provider trace.TracerProvider) *Tracing {
	return &Tracing{provider: provider, tracer: provider.Tracer(scope)}
}

// Close sends what has not been sent, if the collector takes it soon.
func (t *Tracing) Close() {
	if t != nil && t.release != nil {
		t.release()
	}
}

// Start begins a span, a child of the one in ctx. The caller ends it. Without a
// collector ctx comes back as it is, with the span in it or one that records nothing.
func (t *Tracing) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	if !t.Records() {
		return ctx, trace.SpanFromContext(ctx)
	}

	return t.tracer.Start(ctx, name, options...) //nolint:spancheck // the caller ends it
}

// Records says whether spans are made at all. What a span needs to be told is made
// ready only then.
func (t *Tracing) Records() bool { return t != nil && t.tracer != nil }

// connect returns a connection to the collector and what ends it.
func connect(
	configuration Configuration, registerer prometheus.Registerer, logger *slog.Logger,
) (*grpc.ClientConn, func() error, error) {
	closeFiles := func() error { return nil }

	var transport credentials.TransportCredentials

	switch {
	case configuration.Insecure:
		transport = insecure.NewCredentials()
	case configuration.TLS.Configured():
		files, err := certificates.Open(configuration.TLS, logger)
		if err != nil {
			return nil, nil, err
		}

		closeFiles, transport = files.Close, files.ClientCredentials("")

		err = files.Register(registerer, "tracing")
		if err != nil {
			return nil, nil, errors.Join(err, closeFiles())
		}
	default:
		transport = credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12})
	}

	connection, err := grpc.NewClient(configuration.Endpoint, grpc.WithTransportCredentials(transport))
	if err != nil {
		return nil, nil, errors.Join(err, closeFiles())
	}

	return connection, func() error { return errors.Join(connection.Close(), closeFiles()) }, nil
}
