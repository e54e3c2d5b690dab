package endtoend_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"

	"github.com/countersign-mcp/countersign/services/collectorfake"
	handler "github.com/countersign-mcp/countersign/services/handlers/go"
	"github.com/countersign-mcp/countersign/test/client"
	"github.com/countersign-mcp/countersign/test/deployment"
)

const (
	traceOfClient = "4bf92f3577b34da6a3ce929d0e0e4736"
	spanOfClient  = "00f067aa0ba902b7"
	traceOfProxy  = "0af7651916cd43dd8448eb211c80319c"
	spanOfProxy   = "b7ad6b7169203331"
	// cardNumber is what a user says and no span may hold.
	cardNumber = "4111111111111111"
)

// The names of spans.
const (
	spanRequest = "mcp tools/call"
	spanInvoke  = "countersign.handler.v1.HandlerService/Invoke"
	spanSeal    = "countersign.seal.v1.SealerService/Seal"
	spanOpen    = "countersign.seal.v1.SealerService/Open"
)

// traced is an edge with its sealer and a handler service, which all send their spans
// to one collector.
type traced struct {
	collector *collectorfake.Collector
	url       string
}

func newTraced(t *testing.T, edge map[string]any) traced {
	t.Helper()
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "20") // milliseconds until spans are sent
	collector := collectorfake.Serve(t)
	sealer := deployment.StartConfigured(t, "sealer", map[string]any{
		"listen": "127.0.0.1:0", "operationsListen": "127.0.0.1:0",
		"keys":    map[string]any{"source": "ephemeral"},
		"tracing": map[string]any{"endpoint": collector.Endpoint, "insecure": true},
	})
	cards := handler.NewServer("cards")
	registerCards(cards)
	configuration := map[string]any{
		"listen": "127.0.0.1:0", "operationsListen": "127.0.0.1:0",
		"context":  map[string]any{"audience": "https://mcp.example.com/mcp"},
		"sealer":   sealer.Address,
		"handlers": []any{map[string]any{"name": "cards", "target": deployment.ServeHandler(t, cards, tracedServer(t, collector))}},
	}
	if edge == nil {
		edge = map[string]any{"endpoint": collector.Endpoint, "insecure": true}
	}
	configuration["tracing"] = edge
	return traced{collector, deployment.StartConfigured(t, "mcpedge", configuration).MCP()}
}

// tracedServer is what the author of a handler gives the kit for traces.
func tracedServer(t *testing.T, collector *collectorfake.Collector) grpc.ServerOption {
	t.Helper()
	exporter, err := otlptracegrpc.New(t.Context(), otlptracegrpc.WithEndpoint(collector.Endpoint), otlptracegrpc.WithInsecure())
	if err != nil {
		t.Fatal(err)
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "cards"))),
	)
	t.Cleanup(func() {
		if err := provider.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return grpc.StatsHandler(otelgrpc.NewServerHandler(
		otelgrpc.WithTracerProvider(provider),
		otelgrpc.WithPropagators(propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})),
	))
}

// registerCards offers a tool that asks and then says in which trace it runs.
func registerCards(server *handler.Server) {
	handler.Tool(server, "charge", func(ctx *handler.Context, in struct {
		Card string `json:"card"`
	},
	) (string, error) {
		action, err := ctx.Confirm("Charge " + in.Card + "?")
		if err != nil {
			return "", err
		}
		if action != handler.Accept {
			return "", fmt.Errorf("the user did not accept: %s", action)
		}
		return trace.SpanContextFromContext(ctx).TraceID().String(), nil
	}, handler.Description("Charges a card."))
}

// charge calls the tool in two rounds, with the trace context given, and returns what
// the tool said.
func (d traced) charge(t *testing.T, header http.Header, meta map[string]any) string {
	t.Helper()
	c := newClient(t, d.url)
	c.Header = header
	call := func(more map[string]any) *client.Reply {
		all := c.Meta()
		maps.Copy(all, meta)
		params := map[string]any{"name": "charge", "arguments": map[string]any{"card": cardNumber}, "_meta": all}
		maps.Copy(params, more)
		text, err := json.Marshal(params)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := c.SendText(t.Context(), "tools/call", "charge", string(text))
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	asked := result(t, call(nil), nil, "input_required")
	answers := map[string]any{}
	for key := range asked.InputRequests {
		answers[key] = client.Accept(map[string]any{"confirm": true})
	}
	charged := result(t, call(map[string]any{"inputResponses": answers, "requestState": asked.RequestState}), nil, "complete")
	if charged.IsError || len(charged.Content) != 1 {
		t.Fatalf("the tool failed: %v", charged.Content)
	}
	return charged.Content[0].Text
}

// twoRoundsOfSpans are the spans of two rounds, by service and name.
var twoRoundsOfSpans = map[string]int{
	"mcpedge " + spanRequest: 2,
	"mcpedge " + spanInvoke:  2, "cards " + spanInvoke: 2,
	"mcpedge " + spanSeal: 1, "sealer " + spanSeal: 1,
	"mcpedge " + spanOpen: 1, "sealer " + spanOpen: 1,
}

// await waits for the spans that counts names among those that belong to one of the
// traces, and returns these.
func (d traced) await(t *testing.T, counts map[string]int, belongs func(collectorfake.Span) bool) []collectorfake.Span {
	t.Helper()
	var found []collectorfake.Span
	d.collector.Await(t, func(spans []collectorfake.Span) bool {
		found = nil
		missing := maps.Clone(counts)
		for _, span := range spans {
			if belongs(span) {
				found = append(found, span)
				missing[span.Service+" "+span.GetName()]--
			}
		}
		for _, count := range missing {
			if count > 0 {
				return false
			}
		}
		return true
	})
	return found
}

// checkLineage checks that every span has the parent that called it: the edge's
// request has the client's span, its calls have the request, and the callee's span has
// the call.
func checkLineage(t *testing.T, spans []collectorfake.Span, parent string) {
	t.Helper()
	byID := map[string]collectorfake.Span{}
	counts := map[string]int{}
	for _, span := range spans {
		byID[span.ID()] = span
		counts[span.Service+" "+span.GetName()]++
	}
	if !maps.Equal(counts, twoRoundsOfSpans) {
		t.Errorf("the spans are %v, want %v", counts, twoRoundsOfSpans)
	}
	for _, span := range spans {
		caller := byID[span.Parent()]
		switch {
		case span.GetName() == spanRequest:
			if span.Parent() != parent {
				t.Errorf("the parent of the request is %q, want %q", span.Parent(), parent)
			}
		case span.Service == "mcpedge":
			if caller.GetName() != spanRequest || caller.Trace() != span.Trace() {
				t.Errorf("the parent of the call %q is %q of %q", span.GetName(), caller.GetName(), caller.Service)
			}
		default:
			if caller.GetName() != span.GetName() || caller.Service != "mcpedge" || caller.Trace() != span.Trace() {
				t.Errorf("the parent of %q in %q is %q of %q", span.GetName(), span.Service, caller.GetName(), caller.Service)
			}
		}
		if span.Service != "cards" && span.GetStatus().GetCode().String() == "STATUS_CODE_ERROR" {
			t.Errorf("%q of %q is marked as an error: %s", span.GetName(), span.Service, span)
		}
		if strings.Contains(span.String(), cardNumber) {
			t.Errorf("a span quotes the client: %s", span)
		}
	}
}

func traceparent(traceID, spanID string) string { return "00-" + traceID + "-" + spanID + "-01" }

func TestOneTraceRunsThroughEdgeSealerAndHandler(t *testing.T) {
	d := newTraced(t, nil)
	of := func(id string) http.Header { return http.Header{"Traceparent": {id}} }
	for number, test := range []struct {
		name string
		// header and meta make the traceparents of a trace id.
		header, meta func(id string) string
		parent       string
	}{
		{"header", proxySpan, nil, spanOfProxy},
		{"_meta", nil, clientSpan, spanOfClient},
		{"both, of one trace", proxySpan, clientSpan, spanOfProxy},
		{"both, of two traces", func(string) string { return traceparent(traceOfProxy, spanOfProxy) }, clientSpan, spanOfClient},
		{"malformed header", func(string) string { return "00-" + traceOfProxy + "-1" }, clientSpan, spanOfClient},
		{"malformed _meta", proxySpan, strings.ToUpper, spanOfProxy},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := fmt.Sprintf("%s%02x", traceOfClient[:30], number)
			var header http.Header
			if test.header != nil {
				header = of(test.header(id))
			}
			meta := map[string]any{}
			if test.meta != nil {
				meta["traceparent"] = test.meta(id)
			}
			if said := d.charge(t, header, meta); said != id {
				t.Errorf("the tool ran in the trace %q, want %q", said, id)
			}
			checkLineage(t, d.await(t, twoRoundsOfSpans, func(span collectorfake.Span) bool { return span.Trace() == id }), test.parent)
		})
	}
}

func proxySpan(id string) string  { return traceparent(id, spanOfProxy) }
func clientSpan(id string) string { return traceparent(id, spanOfClient) }

func TestARequestWithoutAGoodTraceContextBeginsATrace(t *testing.T) {
	for name, test := range map[string]struct {
		header http.Header
		meta   map[string]any
	}{
		"neither": {},
		"malformed": {
			http.Header{"Traceparent": {"?"}, "Tracestate": {"==="}, "Baggage": {";;"}},
			map[string]any{"traceparent": 7, "tracestate": []any{}, "baggage": nil},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newTraced(t, nil)
			said := d.charge(t, test.header, test.meta)
			// Beside requests the handler service is asked for its catalog.
			spans := d.await(t, twoRoundsOfSpans, func(span collectorfake.Span) bool { return !strings.HasSuffix(span.GetName(), "/Describe") })
			checkLineage(t, spans, "")
			// Each round is a request, and a trace, of its own.
			traces := map[string]bool{}
			for _, span := range spans {
				traces[span.Trace()] = true
			}
			if len(traces) != 2 || !traces[said] {
				t.Errorf("the traces are %v, and the tool ran in %q", traces, said)
			}
		})
	}
}

func TestAnEdgeWithoutACollectorHandsTheTraceOn(t *testing.T) {
	d := newTraced(t, map[string]any{})
	said := d.charge(t, nil, map[string]any{"traceparent": traceparent(traceOfClient, spanOfClient)})
	if said != traceOfClient {
		t.Errorf("the tool ran in the trace %q, want %q", said, traceOfClient)
	}
	spans := d.await(t, map[string]int{"cards " + spanInvoke: 2, "sealer " + spanSeal: 1, "sealer " + spanOpen: 1},
		func(span collectorfake.Span) bool { return span.Trace() == traceOfClient })
	for _, span := range spans {
		if span.Parent() != spanOfClient || span.Service == "mcpedge" {
			t.Errorf("the parent of %q of %q is %q, want the client's span", span.GetName(), span.Service, span.Parent())
		}
	}
}
