package tracecontext_test

import (
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/trace"

	"github.com/countersign-mcp/countersign/services/mcpedge/tracecontext"
)

const (
	traceA = "0af7651916cd43dd8448eb211c80319c"
	traceB = "4bf92f3577b34da6a3ce929d0e0e4736"
	span1  = "00f067aa0ba902b7"
	span2  = "b7ad6b7169203331"
)

// parent is a well-formed traceparent.
func parent(traceID, spanID string) string { return "00-" + traceID + "-" + spanID + "-01" }

func TestTheParentIsTakenFromWhereItCounts(t *testing.T) {
	for name, test := range map[string]struct {
		header, meta tracecontext.Fields
		// trace and span are the parent's, state its trace state; empty for none.
		trace, span, state string
		baggage            string
		// linked is the span of another trace.
		linked string
	}{
		"neither": {},
		"the header alone": {
			header: tracecontext.Fields{Parent: parent(traceA, span1), State: "vendor=1", Baggage: "tier=gold"},
			trace:  traceA, span: span1, state: "vendor=1", baggage: "tier=gold",
		},
		"`_meta` alone": {
			meta:  tracecontext.Fields{Parent: parent(traceA, span1), State: "vendor=1", Baggage: "tier=gold"},
			trace: traceA, span: span1, state: "vendor=1", baggage: "tier=gold",
		},
		"one trace in both: the header's span is newer": {
			header: tracecontext.Fields{Parent: parent(traceA, span2), State: "proxy=2"},
			meta:   tracecontext.Fields{Parent: parent(traceA, span1), State: "vendor=1", Baggage: "tier=gold"},
			trace:  traceA, span: span2, state: "proxy=2", baggage: "tier=gold",
		},
		"another trace in each: `_meta` is from end to end": {
			header: tracecontext.Fields{Parent: parent(traceB, span2), State: "proxy=2", Baggage: "tier=proxy"},
			meta:   tracecontext.Fields{Parent: parent(traceA, span1), State: "vendor=1"},
			trace:  traceA, span: span1, state: "vendor=1", linked: span2,
		},
		"baggage without a trace": {
			header:  tracecontext.Fields{Baggage: "tier=proxy"},
			meta:    tracecontext.Fields{Baggage: "tier=gold"},
			baggage: "tier=gold",
		},
		"a malformed header leaves `_meta`": {
			header: tracecontext.Fields{Parent: "00-" + traceB + "-" + span2, State: "proxy=2"},
			meta:   tracecontext.Fields{Parent: parent(traceA, span1)},
			trace:  traceA, span: span1,
		},
		"a malformed `_meta` leaves the header": {
			header: tracecontext.Fields{Parent: parent(traceA, span1)},
			meta:   tracecontext.Fields{Parent: strings.ToUpper(parent(traceB, span2))},
			trace:  traceA, span: span1,
		},
		"both malformed": {
			header: tracecontext.Fields{Parent: parent(strings.Repeat("0", 32), span1)},
			meta:   tracecontext.Fields{Parent: "ff-" + traceA + "-" + span1 + "-01", Baggage: "=;="},
		},
		"a malformed trace state leaves the parent": {
			meta:  tracecontext.Fields{Parent: parent(traceA, span1), State: "===,"},
			trace: traceA, span: span1,
		},
		"a trace state that is too long is left out": {
			meta:  tracecontext.Fields{Parent: parent(traceA, span1), State: "a=" + strings.Repeat("b", 250) + ",c=" + strings.Repeat("d", 250) + ",e=" + strings.Repeat("f", 20)},
			trace: traceA, span: span1,
		},
		"baggage that is too long is left out": {
			meta:  tracecontext.Fields{Parent: parent(traceA, span1), Baggage: "a=" + strings.Repeat("b", 8192)},
			trace: traceA, span: span1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, linked := tracecontext.Join(t.Context(), test.header, test.meta)
			got := trace.SpanContextFromContext(ctx)
			if got.IsValid() != (test.trace != "") || got.IsValid() && (got.TraceID().String() != test.trace || got.SpanID().String() != test.span || !got.IsRemote()) {
				t.Errorf("the parent is %s-%s, want %s-%s", got.TraceID(), got.SpanID(), test.trace, test.span)
			}
			if got.TraceState().String() != test.state {
				t.Errorf("the trace state is %q, want %q", got.TraceState(), test.state)
			}
			if text := baggage.FromContext(ctx).String(); text != test.baggage {
				t.Errorf("the baggage is %q, want %q", text, test.baggage)
			}
			if linked.IsValid() != (test.linked != "") || linked.IsValid() && linked.SpanID().String() != test.linked {
				t.Errorf("the link is %s, want %q", linked.SpanID(), test.linked)
			}
		})
	}
}

func TestHeadersGivenSeveralTimesAreReadAsTheirSpecificationsSay(t *testing.T) {
	header := http.Header{}
	header.Add("Traceparent", parent(traceA, span1))
	header.Add("Tracestate", "a=1")
	header.Add("Tracestate", "b=2")
	header.Add("Baggage", "c=3")
	header.Add("Baggage", "d=4")
	want := tracecontext.Fields{Parent: parent(traceA, span1), State: "a=1,b=2", Baggage: "c=3,d=4"}
	if got := tracecontext.FromHeader(header); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	header.Add("Traceparent", parent(traceA, span2))
	if got := tracecontext.FromHeader(header); got.Parent != "" {
		t.Errorf("of two parents %q was taken", got.Parent)
	}
	if got := tracecontext.FromHeader(nil); got != (tracecontext.Fields{}) {
		t.Errorf("no headers give %+v", got)
	}
}

func TestWithoutAContextNothingIsAllocated(t *testing.T) {
	header := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	ctx := t.Context()
	allocations := testing.AllocsPerRun(100, func() {
		if joined, _ := tracecontext.Join(ctx, tracecontext.FromHeader(header), tracecontext.Fields{}); joined != ctx {
			t.Error("the context was changed")
		}
	})
	if allocations != 0 {
		t.Errorf("a request without a trace context costs %v allocations", allocations)
	}
}

// BenchmarkJoin shows what a request pays for what it sends.
func BenchmarkJoin(b *testing.B) {
	for name, header := range map[string]http.Header{
		"nothing": {},
		"header":  {"Traceparent": {parent(traceA, span1)}},
		"all":     {"Traceparent": {parent(traceA, span1)}, "Tracestate": {"vendor=1"}, "Baggage": {"tier=gold"}},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				tracecontext.Join(b.Context(), tracecontext.FromHeader(header), tracecontext.Fields{})
			}
		})
	}
}

func FuzzJoin(f *testing.F) {
	f.Add(parent(traceA, span1), "vendor=1", "tier=gold;since=2020,x=%20y", parent(traceB, span2), "a=b,c=d", "")
	f.Add(parent(traceA, span1), "", "", parent(traceA, span2)+"-more", "", "=")
	f.Add("01-"+traceA+"-"+span1+"-03-future", "t@v=1", "", "", "", ",,")
	f.Fuzz(func(t *testing.T, headerParent, headerState, headerBaggage, metaParent, metaState, metaBaggage string) {
		header := tracecontext.Fields{Parent: headerParent, State: headerState, Baggage: headerBaggage}
		meta := tracecontext.Fields{Parent: metaParent, State: metaState, Baggage: metaBaggage}
		ctx, linked := tracecontext.Join(t.Context(), header, meta)
		joined := trace.SpanContextFromContext(ctx)
		if joined.IsValid() {
			id := joined.TraceID().String() + "-" + joined.SpanID().String()
			if !strings.Contains(headerParent, id) && !strings.Contains(metaParent, id) {
				t.Errorf("the parent %s is in neither", id)
			}
		}
		if linked.IsValid() && linked.TraceID() == joined.TraceID() {
			t.Error("a span of the same trace is linked")
		}
		if size := len(joined.TraceState().String()); size > 512 {
			t.Errorf("the trace state has %d bytes", size)
		}
		if size := len(baggage.FromContext(ctx).String()); size > 8192 {
			t.Errorf("the baggage has %d bytes", size)
		}
	})
}
