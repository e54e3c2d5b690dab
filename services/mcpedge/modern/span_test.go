package modern_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	"github.com/countersign-mcp/countersign/services/internal/tracing"
	"github.com/countersign-mcp/countersign/services/mcpedge/handlerfake"
)

const (
	ofHeader = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	ofMeta   = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
)

// traced serves what newSuite does and records the spans.
func traced(t *testing.T, run func(*handlerv1.Begin, handlerfake.Stream) error, change ...func(*options)) (*suite, *tracetest.SpanRecorder) {
	t.Helper()
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	return newSuite(t, run, append(change, func(o *options) { o.tracing = tracing.New(provider) })...), recorder
}

// last is the one span that has ended since the last call.
func last(t *testing.T, recorder *tracetest.SpanRecorder) sdktrace.ReadOnlySpan {
	t.Helper()
	ended := recorder.Ended()
	recorder.Reset()
	if len(ended) != 1 {
		t.Fatalf("%d spans have ended, want one", len(ended))
	}
	return ended[0]
}

// attribute is the text of a span's attribute.
func attribute(span sdktrace.ReadOnlySpan, name string) string {
	for _, have := range span.Attributes() {
		if string(have.Key) == name {
			return have.Value.String()
		}
	}
	return ""
}

func TestARequestIsASpanThatSaysHowItWentAndNothingOfWhatWasSaid(t *testing.T) {
	const secret = "4111111111111111"
	s, recorder := traced(t, func(begin *handlerv1.Begin, stream handlerfake.Stream) error {
		if begin.GetCallTool() == nil {
			return fmt.Errorf("cannot serve %s", secret)
		}
		_, _, err := handlerfake.Ask(stream, &handlerv1.Ask{Questions: []*handlerv1.Question{handlerfake.Form("card", "Charge "+secret+"?", `{"type":"object","properties":{}}`)}})
		if err != nil {
			return err
		}
		return handlerfake.FinishText(stream, secret)
	})
	member := fmt.Sprintf(`"arguments":{"note":%q}`, secret)
	for _, test := range []struct {
		name    string
		request request
		span    string
		want    map[string]string
		status  codes.Code
	}{
		{
			"a question",
			request{method: "tools/call", params: `"name":"ask",` + member + "," + meta(allCapabilities)},
			"mcp tools/call",
			map[string]string{
				"mcp.method.name": "tools/call", "gen_ai.tool.name": "ask", "countersign.handler": "fake", "countersign.attempt": "1", "countersign.outcome": "input_required",
			},
			codes.Unset,
		},
		{
			"a result",
			request{method: "tools/call", params: `"name":"ask",` + member + `,"inputResponses":{"card":{"action":"accept","content":{}}},` + meta(allCapabilities)},
			"mcp tools/call",
			map[string]string{"gen_ai.tool.name": "ask", "countersign.outcome": "complete"},
			codes.Unset,
		},
		{
			"a handler that fails",
			request{method: "resources/read", params: `"uri":"orders://` + secret + `",` + meta(allCapabilities)},
			"mcp resources/read",
			map[string]string{"countersign.handler": "fake", "countersign.outcome": "error", "error.type": "handler_failed"},
			codes.Error,
		},
		{
			"a tool that is unknown",
			request{method: "tools/call", params: `"name":"` + secret + `",` + meta(allCapabilities)},
			"mcp tools/call",
			map[string]string{"gen_ai.tool.name": "", "countersign.outcome": "error", "error.type": "unknown_target"},
			codes.Error,
		},
		{
			"a method that is unknown",
			request{method: "x/" + secret, params: meta(allCapabilities)},
			"mcp other",
			map[string]string{"mcp.method.name": "other", "error.type": "unknown_method"},
			codes.Error,
		},
		{
			"no metadata",
			request{method: "tools/list", params: member},
			"mcp tools/list",
			map[string]string{"error.type": "invalid_metadata"},
			codes.Error,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.do(test.request)
			span := last(t, recorder)
			if span.Name() != test.span || span.SpanKind() != trace.SpanKindServer || span.Parent().IsValid() || span.Status().Code != test.status {
				t.Errorf("the span is %q of kind %v with parent %v and status %v", span.Name(), span.SpanKind(), span.Parent().SpanID(), span.Status())
			}
			for name, want := range test.want {
				if got := attribute(span, name); got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
			if all := fmt.Sprint(span.Name(), span.Attributes(), span.Status(), span.Events()); strings.Contains(all, secret) {
				t.Errorf("the span quotes the client or the handler: %s", all)
			}
		})
	}
}

func TestTheRoundsOfAChainShareItsID(t *testing.T) {
	s, recorder := traced(t, askName)
	asked := s.call()
	first := last(t, recorder)
	answered := s.call(`"requestState":`+requestState(t, asked), `"inputResponses":{"user_name":`+accept(`{"name":"Ada"}`)+`}`)
	second := last(t, recorder)
	text(t, answered)
	if attribute(second, "countersign.attempt") != "2" {
		t.Errorf("the span of the second round has %v", second.Attributes())
	}
	if chain := attribute(first, "countersign.chain_id"); chain == "" || chain != attribute(second, "countersign.chain_id") {
		t.Errorf("the chain is %q and then %q", chain, attribute(second, "countersign.chain_id"))
	}
}

func TestTheSpanIsInTheTraceThatTheClientNames(t *testing.T) {
	s, recorder := traced(t, func(_ *handlerv1.Begin, stream handlerfake.Stream) error {
		return handlerfake.FinishText(stream, "done")
	})
	header := map[string]string{"traceparent": ofHeader}
	inMeta := `"traceparent":"` + ofMeta + `"`
	for _, test := range []struct {
		name           string
		header         map[string]string
		meta           []string
		parent, linked string
	}{
		{"header", header, nil, ofHeader, ""},
		{"_meta", nil, []string{inMeta}, ofMeta, ""},
		{"both", header, []string{inMeta}, ofMeta, ofHeader},
		{"malformed _meta", header, []string{`"traceparent":7`, `"tracestate":{}`, `"baggage":null`}, ofHeader, ""},
		{"malformed header", map[string]string{"traceparent": "?"}, []string{inMeta}, ofMeta, ""},
		{"malformed both", map[string]string{"traceparent": "?"}, []string{`"traceparent":"00-?"`}, "", ""},
		{"neither", nil, nil, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			reply := s.do(request{method: "tools/list", params: meta(allCapabilities, test.meta...), header: test.header})
			if reply.status != http.StatusOK {
				t.Errorf("the request failed: %s", reply.body)
			}
			span := last(t, recorder)
			if got := traceparent(span.Parent()); got != test.parent {
				t.Errorf("the parent is %q, want %q", got, test.parent)
			}
			linked := []string{}
			for _, link := range span.Links() {
				linked = append(linked, traceparent(link.SpanContext))
			}
			if got := strings.Join(linked, " "); got != test.linked {
				t.Errorf("the link is %q, want %q", got, test.linked)
			}
		})
	}
}

// traceparent writes a span context as W3C has it; empty for none.
func traceparent(span trace.SpanContext) string {
	if !span.IsValid() {
		return ""
	}
	return fmt.Sprintf("00-%s-%s-%s", span.TraceID(), span.SpanID(), span.TraceFlags())
}
