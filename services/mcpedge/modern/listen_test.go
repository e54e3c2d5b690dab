package modern_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
)

// stream is an open response of `subscriptions/listen`.
type stream struct {
	t        *testing.T
	response *http.Response
	lines    *bufio.Scanner
	comments int
}

// listen opens a stream, and reads its acknowledgement.
func (s *suite) listen(ctx context.Context, filter, want string) *stream {
	s.t.Helper()
	response := s.start(ctx, request{method: "subscriptions/listen", id: `"s"`, params: `"notifications":` + filter + `,` + meta(`{}`)})
	opened := &stream{t: s.t, response: response, lines: bufio.NewScanner(response.Body)}
	if got := opened.next(); got != `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"},"notifications":`+want+`}}` {
		s.t.Fatalf("acknowledged: %s", got)
	}
	return opened
}

// next returns the next message, or nothing at the end of the stream.
func (s *stream) next() string {
	for s.lines.Scan() {
		if s.lines.Text() == ":" {
			s.comments++
		}
		if data, ok := strings.CutPrefix(s.lines.Text(), "data: "); ok {
			return data
		}
	}
	return ""
}

func changed(method, uri string) string {
	if uri != "" {
		uri = `,"uri":"` + uri + `"`
	}
	return `{"jsonrpc":"2.0","method":"notifications/` + method + `","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}` + uri + `}}`
}

func TestAListenerHearsOfWhatItAskedFor(t *testing.T) {
	s := newSuite(t, echo)
	tools := s.listen(t.Context(), `{"toolsListChanged":true,"promptsListChanged":false,"future":true,"resourceSubscriptions":["orders://7","x://none","orders://7"]}`, `{"toolsListChanged":true,"resourceSubscriptions":["orders://7"]}`)
	prompts := s.listen(t.Context(), `{"promptsListChanged":true}`, `{"promptsListChanged":true}`)
	s.handler.WaitForWatcher()

	next := defaultCatalog()
	next.Revision, next.Tools = "2", next.GetTools()[:1]
	s.handler.Change(next)
	if got := tools.next(); got != changed("tools/list_changed", "") {
		t.Errorf("got %s", got)
	}
	s.handler.Update("orders://8")
	s.handler.Update("orders://7")
	if got := tools.next(); got != changed("resources/updated", "orders://7") {
		t.Errorf("got %s", got)
	}
	next = defaultCatalog()
	next.Revision, next.Tools, next.Prompts = "3", next.GetTools()[:1], nil
	s.handler.Change(next)
	if got := prompts.next(); got != changed("prompts/list_changed", "") {
		t.Errorf("the first that the other hears is %s", got)
	}
	if open := s.metric("countersign_edge_subscriptions"); open != 2 {
		t.Errorf("open subscriptions: %v", open)
	}
	s.hub.Close()
	for _, stream := range []*stream{tools, prompts} {
		want := `{"jsonrpc":"2.0","id":"s","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"countersign","version":"1"},"io.modelcontextprotocol/subscriptionId":"s"}}}`
		if got := stream.next(); got != want {
			t.Errorf("at the end: %s", got)
		}
		if got := stream.next(); got != "" {
			t.Errorf("after the end: %s", got)
		}
		stream.response.Body.Close()
	}
}

func TestASilentStreamIsKeptAlive(t *testing.T) {
	s := newSuite(t, echo)
	silent := s.listen(t.Context(), `{}`, `{}`)
	defer silent.response.Body.Close()
	for silent.comments < 3 {
		if !silent.lines.Scan() {
			t.Fatal("the stream ended")
		}
		if silent.lines.Text() == ":" {
			silent.comments++
		}
	}
	s.hub.Close()
}

func TestAClientThatGoesAwayEndsItsSubscription(t *testing.T) {
	s := newSuite(t, echo)
	ctx, cancel := context.WithCancel(t.Context())
	s.listen(ctx, `{"toolsListChanged":true}`, `{"toolsListChanged":true}`)
	second := s.listen(t.Context(), `{}`, `{}`)
	if got := s.do(request{method: "subscriptions/listen", params: `"notifications":{},` + meta(`{}`)}); got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") == "" {
		t.Errorf("a third: got status %d, %s", got.status, got.body)
	}
	cancel()
	for s.hub.Len() > 1 {
		if !second.lines.Scan() { // the comments that keep it alive are the clock
			t.Fatal("the other one ended")
		}
	}
	s.hub.Close()
	second.response.Body.Close()
}

func TestFiltersThatMakeNoSenseAreRefused(t *testing.T) {
	s := newSuite(t, echo)
	for _, params := range []string{
		``, `"notifications":null,`, `"notifications":[],`, `"notifications":{"toolsListChanged":1},`, `"notifications":{"resourceSubscriptions":"x"},`, `"notifications":{"resourceSubscriptions":[1]},`,
		`"notifications":{"resourceSubscriptions":["` + strings.Repeat(`x://none","`, 1000) + `x://none"]},`,
		`"notifications":{"resourceSubscriptions":["x://` + strings.Repeat(`x`, 4096) + `"]},`,
	} {
		got := s.do(request{method: "subscriptions/listen", params: params + meta(`{}`)})
		if p := got.parse(t); p.Error == nil || p.Error.Code != -32602 {
			t.Errorf("%q: got %s", params, got.body)
		}
	}
}
