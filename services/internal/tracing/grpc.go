package tracing

import (
	"context"
	"slices"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/baggage"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
)

// What is handed on to the service that is called.
var (
	// TraceAlone hands on which span calls.
	TraceAlone propagation.TextMapPropagator = propagation.TraceContext{}
	// TraceAndBaggage also hands on the client's baggage. Nothing here reads it.
	TraceAndBaggage = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
)

// DialOptions make the calls of a connection parts of the trace in their context.
// Spans are made for the methods given, by their full names: a call that serves no
// request, such as a health check, would be a trace of its own.
func (t *Tracing) DialOptions(handsOn propagation.TextMapPropagator, methods ...string) []grpc.DialOption {
	if !t.Records() {
		return []grpc.DialOption{grpc.WithChainUnaryInterceptor(forwardUnary(handsOn)), grpc.WithChainStreamInterceptor(forwardStream(handsOn))}
	}

	return []grpc.DialOption{grpc.WithStatsHandler(otelgrpc.NewClientHandler(t.options(handsOn, methods)...))}
}

// ServerOptions make the calls that a server gets parts of their callers' traces.
// Methods are as in DialOptions. Without a collector there are no options: the server
// itself calls nobody.
func (t *Tracing) ServerOptions(methods ...string) []grpc.ServerOption {
	if !t.Records() {
		return nil
	}

	return []grpc.ServerOption{grpc.StatsHandler(otelgrpc.NewServerHandler(t.options(TraceAlone, methods)...))}
}

func (t *Tracing) options(propagator propagation.TextMapPropagator, methods []string) []otelgrpc.Option {
	return []otelgrpc.Option{
		otelgrpc.WithTracerProvider(t.provider),
		otelgrpc.WithMeterProvider(metricnoop.NewMeterProvider()), // metrics are Prometheus's
		otelgrpc.WithPropagators(propagator),
		otelgrpc.WithFilter(func(call *stats.RPCTagInfo) bool { return slices.Contains(methods, call.FullMethodName) }),
	}
}

// forwardUnary hands on the context that came with a request, without a span of this
// process's own.
func forwardUnary(propagator propagation.TextMapPropagator) grpc.UnaryClientInterceptor {
	return func(
		ctx context.Context, method string, request, reply any, connection *grpc.ClientConn,
		invoker grpc.UnaryInvoker, options ...grpc.CallOption,
	) error {
		return invoker(forward(ctx, propagator), method, request, reply, connection, options...)
	}
}

func forwardStream(propagator propagation.TextMapPropagator) grpc.StreamClientInterceptor {
	return func(
		ctx context.Context, description *grpc.StreamDesc, connection *grpc.ClientConn, method string,
		streamer grpc.Streamer, options ...grpc.CallOption,
	) (grpc.ClientStream, error) {
		return streamer(forward(ctx, propagator), description, connection, method, options...)
	}
}

func forward(ctx context.Context, propagator propagation.TextMapPropagator) context.Context {
	if !trace.SpanContextFromContext(ctx).IsValid() && baggage.FromContext(ctx).Len() == 0 {
		return ctx // nearly every call: nothing is allocated for it
	}

	carried := propagation.MapCarrier{}
	propagator.Inject(ctx, carried)

	pairs := make([]string, 0, 2*len(carried))
	for name, value := range carried {
		pairs = append(pairs, name, value)
	}

	return metadata.AppendToOutgoingContext(ctx, pairs...)
}
