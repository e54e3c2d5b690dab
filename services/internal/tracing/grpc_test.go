package tracing_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"

	"github.com/countersign-mcp/countersign/services/internal/certificates"
	"github.com/countersign-mcp/countersign/services/internal/tracing"
)

// serverCredentials are what a collector needs for mutual TLS.
func serverCredentials(t *testing.T, files certificates.Files) grpc.ServerOption {
	t.Helper()

	source, err := certificates.Open(files, nil)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = source.Close() })

	return grpc.Creds(source.ServerCredentials())
}

// service is a gRPC service that keeps the metadata of its calls.
type service struct {
	healthv1.HealthServer

	// forgets: nothing is kept.
	forgets bool

	mu       sync.Mutex
	metadata []metadata.MD
}

func (s *service) keep(ctx context.Context) {
	if s.forgets {
		return
	}

	received, _ := metadata.FromIncomingContext(ctx)

	s.mu.Lock()
	defer s.mu.Unlock()

	s.metadata = append(s.metadata, received)
}

func (s *service) Check(ctx context.Context, request *healthv1.HealthCheckRequest) (*healthv1.HealthCheckResponse, error) {
	s.keep(ctx)

	return s.HealthServer.Check(ctx, request)
}

func (s *service) Watch(request *healthv1.HealthCheckRequest, stream healthv1.Health_WatchServer) error {
	s.keep(stream.Context())

	return s.HealthServer.Watch(request, stream)
}

// connected is a client of a service, each with its part in traces.
func connected(tb testing.TB, client []grpc.DialOption, server []grpc.ServerOption) (healthv1.HealthClient, *service) {
	tb.Helper()

	listener := bufconn.Listen(1 << 16)
	served := &service{HealthServer: health.NewServer()}
	serving := grpc.NewServer(server...)
	healthv1.RegisterHealthServer(serving, served)

	var running sync.WaitGroup

	running.Go(func() { _ = serving.Serve(listener) })

	connection, err := grpc.NewClient("passthrough:///service", append(client,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))...)
	if err != nil {
		tb.Fatal(err)
	}

	tb.Cleanup(func() {
		_ = connection.Close()

		serving.Stop()
		running.Wait()
	})

	return healthv1.NewHealthClient(connection), served
}

// called makes one call and opens one stream and returns what the service was told.
func called(ctx context.Context, t *testing.T, client healthv1.HealthClient, served *service) []metadata.MD {
	t.Helper()

	_, err := client.Check(ctx, &healthv1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	stream, err := client.Watch(ctx, &healthv1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}

	_, err = stream.Recv()
	if err != nil {
		t.Fatal(err)
	}

	served.mu.Lock()
	defer served.mu.Unlock()

	return slices.Clone(served.metadata)
}

// ofClient is a context with a trace and baggage, as a client sends them.
func ofClient(tb testing.TB) (context.Context, trace.SpanContext) {
	tb.Helper()

	parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, Remote: true})

	carried, err := baggage.Parse("tier=gold")
	if err != nil {
		tb.Fatal(err)
	}

	return baggage.ContextWithBaggage(trace.ContextWithRemoteSpanContext(tb.Context(), parent), carried), parent
}

func TestWithoutACollectorTheContextIsHandedOn(t *testing.T) {
	var off *tracing.Tracing

	const asSent = "00-01000000000000000000000000000000-0200000000000000-01"

	for name, test := range map[string]struct {
		handsOn propagation.TextMapPropagator
		baggage []string
	}{
		"trace and baggage": {tracing.TraceAndBaggage, []string{"tier=gold"}},
		"trace alone":       {tracing.TraceAlone, nil},
	} {
		t.Run(name, func(t *testing.T) {
			client, served := connected(t, off.DialOptions(test.handsOn), off.ServerOptions())
			ctx, _ := ofClient(t)

			for _, received := range called(ctx, t, client, served) {
				if !slices.Equal(received.Get("traceparent"), []string{asSent}) || !slices.Equal(received.Get("baggage"), test.baggage) {
					t.Errorf("the service was told %v", received)
				}
			}
		})
	}

	client, served := connected(t, off.DialOptions(tracing.TraceAndBaggage), off.ServerOptions())
	for _, received := range called(t.Context(), t, client, served) {
		if received.Get("traceparent") != nil || received.Get("baggage") != nil {
			t.Errorf("without a context the service was told %v", received)
		}
	}
}

func TestCallsAreSpansOfBothSides(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	on := tracing.New(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)))
	client, served := connected(t, on.DialOptions(tracing.TraceAlone, healthv1.Health_Check_FullMethodName), on.ServerOptions(healthv1.Health_Check_FullMethodName))
	ctx, parent := ofClient(t)

	ctx, span := on.Start(ctx, "request")
	called(ctx, t, client, served) // the stream is of no method that is traced
	span.End()

	// A server ends its span after it has answered.
	var spans map[string]sdktrace.ReadOnlySpan
	for len(spans) < 3 {
		spans = map[string]sdktrace.ReadOnlySpan{}
		for _, span := range recorder.Ended() {
			spans[span.Name()+" "+span.SpanKind().String()] = span
		}
	}

	request, calling, serving := spans["request internal"], spans["grpc.health.v1.Health/Check client"], spans["grpc.health.v1.Health/Check server"]
	if request == nil || calling == nil || serving == nil || len(spans) != 3 {
		t.Fatalf("the spans are %v", spans)
	}

	if request.Parent().SpanID() != parent.SpanID() || calling.Parent().SpanID() != request.SpanContext().SpanID() ||
		serving.Parent().SpanID() != calling.SpanContext().SpanID() || serving.SpanContext().TraceID() != parent.TraceID() {
		t.Errorf("the spans are not in one line: %v, %v, %v", request.Parent(), calling.Parent(), serving.Parent())
	}
}

// BenchmarkCall shows what a call pays for traces, beside one that knows nothing of
// them.
func BenchmarkCall(b *testing.B) {
	on := tracing.New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(tracetest.NewNoopExporter())))
	with, _ := ofClient(b)

	var off *tracing.Tracing

	for _, test := range []struct {
		name   string
		client []grpc.DialOption
		server []grpc.ServerOption
		ctx    context.Context
	}{
		{"plain", nil, nil, b.Context()},
		{"off", off.DialOptions(tracing.TraceAndBaggage), off.ServerOptions(), b.Context()},
		{"off, of a client's trace", off.DialOptions(tracing.TraceAndBaggage), off.ServerOptions(), with},
		{
			"on", on.DialOptions(tracing.TraceAndBaggage, healthv1.Health_Check_FullMethodName),
			on.ServerOptions(healthv1.Health_Check_FullMethodName), with,
		},
	} {
		b.Run(test.name, func(b *testing.B) {
			client, served := connected(b, test.client, test.server)
			served.forgets = true

			b.ReportAllocs()

			for b.Loop() {
				_, err := client.Check(test.ctx, &healthv1.HealthCheckRequest{})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
