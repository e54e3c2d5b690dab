package tracing_test

import (
	"context"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/countersign-mcp/countersign/services/collectorfake"
	"github.com/countersign-mcp/countersign/services/internal/certificates"
	"github.com/countersign-mcp/countersign/services/internal/certificates/certificatestest"
	"github.com/countersign-mcp/countersign/services/internal/tracing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, configuration tracing.Configuration, logger *slog.Logger) *tracing.Tracing {
	t.Helper()

	opened, err := tracing.Open(t.Context(), configuration, tracing.Process{Service: "mcpedge", Version: "1"}, prometheus.NewRegistry(), logger)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(opened.Close)

	return opened
}

func TestAConfigurationThatCannotWorkIsRefusedWithTheField(t *testing.T) {
	t.Parallel()

	whole := certificates.Files{Certificate: "c", Key: "k", Authorities: "a"}

	for want, configuration := range map[string]tracing.Configuration{
		"endpoint: must be a gRPC target": {Endpoint: "http://collector:4317"},
		"endpoint: must not be empty":     {Insecure: true},
		"sampleRatio":                     {Endpoint: "collector:4317", SampleRatio: 1.5},
		"sampleRatio: must":               {Endpoint: "collector:4317", SampleRatio: math.NaN()},
		"insecure":                        {Endpoint: "collector:4317", Insecure: true, TLS: whole},
		"tls: mutual TLS":                 {Endpoint: "collector:4317", TLS: certificates.Files{Key: "k"}},
	} {
		err := configuration.Check()
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want something about %q", err, want)
		}
	}

	for _, configuration := range []tracing.Configuration{
		{},
		tracing.Defaults(),
		{Endpoint: "dns:///collector:4317", SampleRatio: 0.1},
		{Endpoint: "unix:/run/collector.sock", Insecure: true},
		{Endpoint: "collector:4317", TLS: whole},
	} {
		err := configuration.Check()
		if err != nil {
			t.Errorf("%+v: %v", configuration, err)
		}
	}
}

func TestTheCollectorGetsSpansWithoutWords(t *testing.T) {
	const secret = "4111111111111111"

	collector := collectorfake.Serve(t)
	opened := open(t, tracing.Configuration{Endpoint: collector.Endpoint, SampleRatio: 1, Insecure: true}, slog.New(slog.DiscardHandler))

	ctx, outer := opened.Start(t.Context(), "outer")
	_, inner := opened.Start(ctx, "inner")
	inner.SetStatus(codes.Error, "no card "+secret)
	inner.RecordError(context.DeadlineExceeded)
	inner.End()
	outer.End()
	opened.Close()

	spans := collector.Spans()
	if len(spans) != 2 {
		t.Fatalf("%d spans were exported, want 2", len(spans))
	}

	for _, span := range spans {
		if span.Service != "mcpedge" || span.Trace() != outer.SpanContext().TraceID().String() {
			t.Errorf("the span %q is of the service %q in the trace %s", span.GetName(), span.Service, span.Trace())
		}

		if strings.Contains(span.String(), secret) || len(span.GetEvents()) > 0 {
			t.Errorf("the span has words in it: %s", span)
		}
	}

	if spans[0].GetName() != "inner" || spans[0].Parent() != spans[1].ID() || spans[0].GetStatus().GetCode().String() != "STATUS_CODE_ERROR" {
		t.Errorf("the inner span is %s", spans[0])
	}
}

func TestTheCollectorIsReachedOverMutualTLS(t *testing.T) {
	files := certificatestest.NewAuthority(t).Write(t, t.TempDir(), "mcpedge")
	server := serverCredentials(t, files)
	collector := collectorfake.Serve(t, server)
	opened := open(t, tracing.Configuration{Endpoint: collector.Endpoint, SampleRatio: 1, TLS: files}, slog.New(slog.DiscardHandler))

	_, span := opened.Start(t.Context(), "one")
	span.End()
	opened.Close()

	if spans := collector.Spans(); len(spans) != 1 {
		t.Errorf("%d spans were exported, want 1", len(spans))
	}
}

// logLines receives the lines of a log.
type logLines chan string

func (l logLines) Write(line []byte) (int, error) {
	l <- string(line)

	return len(line), nil
}

func TestACollectorThatIsAwayIsLoggedAndHoldsNobodyUp(t *testing.T) {
	logged := make(logLines, 16)
	opened := open(t, tracing.Configuration{Endpoint: "unix:" + t.TempDir() + "/nobody", SampleRatio: 1, Insecure: true}, slog.New(slog.NewTextHandler(logged, nil)))

	_, span := opened.Start(t.Context(), "lost")
	span.End()
	opened.Close()

	if line := <-logged; !strings.Contains(line, "level=WARN") || !strings.Contains(line, "export") {
		t.Errorf("the log has %q", line)
	}
}

func TestTheClientDecidesWhetherItsTraceIsRecorded(t *testing.T) {
	collector := collectorfake.Serve(t)
	opened := open(t, tracing.Configuration{Endpoint: collector.Endpoint, Insecure: true}, slog.New(slog.DiscardHandler))

	for _, flags := range []trace.TraceFlags{0, trace.FlagsSampled} {
		parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{byte(flags) + 1}, TraceFlags: flags, Remote: true})
		_, span := opened.Start(trace.ContextWithRemoteSpanContext(t.Context(), parent), "child")
		span.End()
	}

	_, root := opened.Start(t.Context(), "root") // the ratio is 0
	root.End()
	opened.Close()

	spans := collector.Spans()
	if len(spans) != 1 || spans[0].Parent() != "0200000000000000" {
		t.Errorf("got %v, want the child of the recorded span alone", spans)
	}
}

func TestWithoutACollectorASpanCostsNothing(t *testing.T) {
	for name, off := range map[string]*tracing.Tracing{"opened": open(t, tracing.Defaults(), slog.New(slog.DiscardHandler)), "nil": nil} {
		ctx := t.Context()

		allocations := testing.AllocsPerRun(100, func() {
			started, span := off.Start(ctx, "none")
			span.End()

			if started != ctx {
				t.Error("the context was changed")
			}
		})
		if allocations != 0 || off.Records() {
			t.Errorf("%s: %v allocations, records %t", name, allocations, off.Records())
		}

		off.Close()
	}
}
