// Package collectorfake is a collector of traces for tests: it takes spans over real
// OTLP and keeps them.
package collectorfake

import (
	"context"
	"encoding/hex"
	"net"
	"sync"
	"testing"
	"time"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// patience bounds how long Await waits, for a test that would otherwise never end.
const patience = 30 * time.Second

// Collector is a running collector.
type Collector struct {
	collectorv1.UnimplementedTraceServiceServer

	// Endpoint is the gRPC target.
	Endpoint string

	mu    sync.Mutex
	spans []Span
	// arrived receives after spans have come.
	arrived chan struct{}
}

// Span is a span as it was exported, with the name of the service that made it.
type Span struct {
	*tracev1.Span

	Service string
}

// Trace is the id of the span's trace in hexadecimal.
func (s Span) Trace() string { return hex.EncodeToString(s.GetTraceId()) }

// ID is the id of the span in hexadecimal.
func (s Span) ID() string { return hex.EncodeToString(s.GetSpanId()) }

// Parent is the id of the span's parent in hexadecimal; empty for a root.
func (s Span) Parent() string { return hex.EncodeToString(s.GetParentSpanId()) }

// Attribute is the text of an attribute; empty where there is none of this name.
func (s Span) Attribute(name string) string {
	for _, attribute := range s.GetAttributes() {
		if attribute.GetKey() == name {
			return attribute.GetValue().GetStringValue()
		}
	}
	return ""
}

// Serve serves a collector until the test ends. Options are gRPC's, such as
// credentials.
func Serve(tb testing.TB, options ...grpc.ServerOption) *Collector {
	tb.Helper()
	listener, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	collector := &Collector{Endpoint: listener.Addr().String(), arrived: make(chan struct{}, 1)}
	server := grpc.NewServer(options...)
	collectorv1.RegisterTraceServiceServer(server, collector)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Serve(listener); err != nil {
			tb.Errorf("serve the collector: %v", err)
		}
	})
	tb.Cleanup(func() {
		server.Stop()
		serving.Wait()
	})
	return collector
}

// Export implements the collector's service.
func (c *Collector) Export(_ context.Context, request *collectorv1.ExportTraceServiceRequest) (*collectorv1.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range request.GetResourceSpans() {
		var service string
		for _, attribute := range resource.GetResource().GetAttributes() {
			if attribute.GetKey() == "service.name" {
				service = attribute.GetValue().GetStringValue()
			}
		}
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				c.spans = append(c.spans, Span{span, service})
			}
		}
	}
	select {
	case c.arrived <- struct{}{}:
	default:
	}
	return &collectorv1.ExportTraceServiceResponse{}, nil
}

// Spans are all spans that have come.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}

// Await waits until the spans that have come are enough and returns them. One test
// waits at a time.
func (c *Collector) Await(tb testing.TB, enough func([]Span) bool) []Span {
	tb.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		spans := c.Spans()
		if enough(spans) {
			return spans
		}
		select {
		case <-c.arrived:
		case <-timeout.C:
			for _, span := range spans {
				tb.Logf("%s %q trace %s span %s parent %q", span.Service, span.GetName(), span.Trace(), span.ID(), span.Parent())
			}
			tb.Fatal("the spans that the test waits for have not come")
		}
	}
}
