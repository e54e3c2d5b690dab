package modern_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	"github.com/countersign-mcp/countersign/services/mcpedge/identity"
)

const (
	public  = handlerv1.CacheScope_CACHE_SCOPE_PUBLIC
	private = handlerv1.CacheScope_CACHE_SCOPE_PRIVATE
)

// tools returns a catalog of tools of these names.
func tools(revision string, scope handlerv1.CacheScope, names ...string) *handlerv1.Catalog {
	offered := &handlerv1.Catalog{Revision: revision, Cache: &handlerv1.CacheHint{TtlMs: 1000, Scope: scope}}
	for _, name := range names {
		offered.Tools = append(offered.Tools, &handlerv1.Tool{Name: name, InputSchema: []byte(`{"type":"object"}`)})
	}
	return offered
}

// listing returns the suite's options for pages of a size.
func listing(size int, catalogs ...*handlerv1.Catalog) func(*options) {
	return func(o *options) {
		o.pageSize, o.catalog, o.more = size, catalogs[0], catalogs[1:]
		o.principals = identity.TrustedHeader{Header: "X-User", Issuer: "proxy", Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	}
}

// listRequest lists tools for a user; the cursor is the text of a JSON value, or
// empty for none.
func listRequest(user, cursor string) request {
	params := meta(`{}`)
	if cursor != "" {
		params += `,"cursor":` + cursor
	}
	return request{method: "tools/list", params: params, header: map[string]string{"X-User": user}}
}

// page is a page of a list.
type page struct {
	Tools []struct {
		Name string `json:"name"`
	} `json:"tools"`
	Scope string `json:"cacheScope"`
	// Next is the text of a JSON value, or empty for none.
	Next json.RawMessage `json:"nextCursor"`
}

func (p page) names() []string {
	names := make([]string, len(p.Tools))
	for i, tool := range p.Tools {
		names[i] = tool.Name
	}
	return names
}

// page reads a page of tools.
func (s *suite) page(user, cursor string) page {
	s.t.Helper()
	got := s.do(listRequest(user, cursor))
	var response struct {
		Result *page `json:"result"`
	}
	if err := json.Unmarshal([]byte(got.message), &response); err != nil || response.Result == nil {
		s.t.Fatalf("%v: status %d, %s", err, got.status, got.body)
	}
	return *response.Result
}

// pages reads a list from a cursor on to its end.
func (s *suite) pages(user, cursor string) []page {
	s.t.Helper()
	read := []page{s.page(user, cursor)}
	for len(read) < 1000 {
		last := read[len(read)-1]
		if last.Next == nil {
			return read
		}
		read = append(read, s.page(user, string(last.Next)))
	}
	s.t.Fatal("the list has no end")
	return nil
}

func namesOf(pages []page) []string {
	var names []string
	for _, p := range pages {
		names = append(names, p.names()...)
	}
	return names
}

func TestThreeHandlersAreReadInPagesAsOneList(t *testing.T) {
	// The handlers' names lie between one another's.
	var catalogs []*handlerv1.Catalog
	var all []string
	for handler := range 3 {
		var names []string
		for i := range 700 {
			names = append(names, fmt.Sprintf("tool_%04d", 3*i+handler))
		}
		all = append(all, names...)
		catalogs = append(catalogs, tools("1", public, names...))
	}
	slices.Sort(all)
	s := newSuite(t, echo, listing(100, catalogs...))
	for range 2 {
		pages := s.pages("ann", "")
		if len(pages) != 21 {
			t.Errorf("there are %d pages", len(pages))
		}
		cursors := map[string]bool{}
		for _, p := range pages {
			if len(p.Tools) != 100 || p.Scope != "public" || cursors[string(p.Next)] {
				t.Errorf("a page has %d tools, scope %q and the cursor %s", len(p.Tools), p.Scope, p.Next)
			}
			cursors[string(p.Next)] = true
		}
		if got := namesOf(pages); !slices.Equal(got, all) {
			t.Errorf("%d tools, and not each once and in order: %v", len(got), got)
		}
	}
}

func TestOtherListsComeInPagesToo(t *testing.T) {
	offered := &handlerv1.Catalog{
		Revision:  "1",
		Prompts:   []*handlerv1.Prompt{{Name: "b"}, {Name: "a"}},
		Resources: []*handlerv1.Resource{{Uri: "x://b", Name: "b"}, {Uri: "x://a", Name: "a"}},
		ResourceTemplates: []*handlerv1.ResourceTemplate{
			{UriTemplate: "y://b/{id}", Name: "b"}, {UriTemplate: "y://a/{id}", Name: "a"},
		},
	}
	s := newSuite(t, echo, listing(1, offered))
	for method, member := range map[string]string{"prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates"} {
		list := func(more string) map[string]json.RawMessage {
			r := listRequest("ann", "")
			r.method, r.params = method, r.params+more
			return s.do(r).parse(t).Result
		}
		first := list("")
		second := list(`,"cursor":` + string(first["nextCursor"]))
		if !strings.Contains(string(first[member]), `"name":"a"`) || strings.Contains(string(first[member]), `"name":"b"`) ||
			!strings.Contains(string(second[member]), `"name":"b"`) || second["nextCursor"] != nil {
			t.Errorf("%s: got %s and %s", method, first, second)
		}
	}
}

// change changes the tools and waits until the edge has heard of it.
func (s *suite) change(offered *handlerv1.Catalog) {
	s.t.Helper()
	changes := s.listen(s.t.Context(), `{"toolsListChanged":true}`, `{"toolsListChanged":true}`)
	defer changes.response.Body.Close()
	s.handler.WaitForWatcher()
	s.handler.Change(offered)
	if got := changes.next(); got != changed("tools/list_changed", "") {
		s.t.Fatalf("got %s", got)
	}
}

func TestWhatStaysInAListComesOnceWhateverElseComesAndGoes(t *testing.T) {
	s := newSuite(t, echo, listing(3, tools("1", private, "b", "d", "f", "h", "j", "l", "n")), anonymous)
	first := s.page("", "")
	if got := first.names(); !slices.Equal(got, []string{"b", "d", "f"}) {
		t.Fatalf("the first page is %v", got)
	}
	// The last of the page goes, so does one that is still to come; others come on
	// both sides of the place.
	s.change(tools("2", private, "a", "b", "c", "d", "g", "h", "k", "l", "n"))
	if got := namesOf(s.pages("", string(first.Next))); !slices.Equal(got, []string{"g", "h", "k", "l", "n"}) {
		t.Errorf("the rest is %v", got)
	}
	s.change(tools("3", private, "a", "b"))
	if rest := s.pages("", string(first.Next)); len(rest) != 1 || len(rest[0].Tools) != 0 {
		t.Errorf("nothing is left, and the rest is %v", rest)
	}
}

// anonymous tells no callers apart.
func anonymous(o *options) { o.principals = identity.Anonymous{} }

func TestACursorIsGoodForItsListAndItsReaderAlone(t *testing.T) {
	offered := tools("1", private, "ask", "b", "c", "d")
	offered.Prompts = []*handlerv1.Prompt{{Name: "p"}, {Name: "q"}, {Name: "r"}}
	s := newSuite(t, askName, listing(2, offered))
	cursor := string(s.page("ann", "").Next)
	ask := request{method: "tools/call", params: `"name":"ask",` + meta(allCapabilities), header: map[string]string{"X-User": "ann"}}
	state := requestState(t, s.do(ask).parse(t))
	prompts := listRequest("ann", cursor)
	prompts.method = "prompts/list"
	flipped := "A"
	if cursor[80] == 'A' {
		flipped = "B"
	}
	for name, test := range map[string]struct {
		request request
		reason  string
		later   time.Duration
	}{
		"another principal":  {listRequest("bob", cursor), "other_principal", 0},
		"another list":       {prompts, "other_method", 0},
		"an hour later":      {listRequest("ann", cursor), "expired", time.Hour},
		"a minute too early": {listRequest("ann", cursor), "not_yet_valid", -2 * time.Minute},
		"altered":            {listRequest("ann", cursor[:80]+flipped+cursor[81:]), "not_authentic", 0},
		"cut":                {listRequest("ann", cursor[:len(cursor)-2]+`"`), "malformed", 0},
		"a request state":    {listRequest("ann", state), "not_authentic", 0},
		"empty":              {listRequest("ann", `""`), "malformed", 0},
		"a page number":      {listRequest("ann", `"2"`), "malformed", 0},
		"a number":           {listRequest("ann", `2`), "malformed", 0},
		"an object":          {listRequest("ann", `{}`), "malformed", 0},
		"huge":               {listRequest("ann", `"`+strings.Repeat("A", 8<<10+1)+`"`), "too_large", 0},
	} {
		t.Run(name, func(t *testing.T) {
			before := s.metric("countersign_edge_cursor_refusals_total", "reason="+test.reason)
			s.clock.Store(int64(test.later))
			got := s.do(test.request)
			s.clock.Store(0)
			if want := `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid cursor"}}`; got.status != http.StatusOK || got.message != want {
				t.Errorf("got status %d, %s", got.status, got.body)
			}
			if counted := s.metric("countersign_edge_cursor_refusals_total", "reason="+test.reason); counted != before+1 {
				t.Errorf("the reason %s was counted %v times", test.reason, counted-before)
			}
		})
	}
	// What was refused above is good where it belongs, to the last moment.
	s.clock.Store(int64(time.Hour - time.Minute))
	if got := s.page("ann", cursor).names(); !slices.Equal(got, []string{"c", "d"}) {
		t.Errorf("the second page is %v", got)
	}
	if got := s.metric("countersign_edge_request_state_refusals_total"); got != 0 {
		t.Errorf("%v refusals of request state are counted", got)
	}
}

func TestAPublicPageLeadsEverybodyOnAndAPrivateOneNobodyElse(t *testing.T) {
	s := newSuite(t, echo, listing(1, tools("1", public, "a", "b", "c")), anonymous)
	first := s.page("", "")
	refused := func(cursor json.RawMessage) bool {
		t.Helper()
		p := s.do(listRequest("", string(cursor))).parse(t)
		return p.Error != nil && p.Error.Message == "invalid cursor"
	}
	if first.Scope != "public" || refused(first.Next) {
		t.Errorf("the first page is %+v and its cursor is refused", first)
	}
	// All pages of a list have one scope: a list whose scope changes ends.
	s.change(tools("2", private, "a", "b", "c", "d"))
	if !refused(first.Next) {
		t.Error("a list goes on with another scope than it began")
	}
	first = s.page("", "")
	if first.Scope != "private" || refused(first.Next) {
		t.Errorf("the first page is %+v and its cursor is refused", first)
	}
	s.change(tools("3", public, "a", "b", "c"))
	if !refused(first.Next) {
		t.Error("a list goes on with another scope than it began")
	}
}

func TestACallerGoesOnFromAPublicPageThatAnotherWasGiven(t *testing.T) {
	s := newSuite(t, echo, listing(2, tools("1", public, "a", "b", "c")))
	if got := s.page("bob", string(s.page("ann", "").Next)).names(); !slices.Equal(got, []string{"c"}) {
		t.Errorf("got %v", got)
	}
}

func TestAnUnavailableSealerIsNeverAnInvalidCursorNorAnEndedList(t *testing.T) {
	s := newSuite(t, echo, listing(2, tools("1", private, "a", "b", "c")), anonymous)
	cursor := string(s.page("", "").Next)
	for _, code := range []codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Internal} {
		gone := status.Error(code, "no keys")
		s.sealer.gone.Store(&gone)
		for name, r := range map[string]request{"seal": listRequest("", ""), "open": listRequest("", cursor)} {
			got := s.do(r)
			if p := got.parse(t); got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" || p.Error == nil || p.Error.Code != -32603 {
				t.Errorf("%s, %v: got status %d, %s", name, code, got.status, got.body)
			}
		}
	}
	// One page needs no sealer.
	s.change(tools("2", private, "a", "b"))
	if got := s.page("", ""); len(got.Tools) != 2 || got.Next != nil {
		t.Errorf("got %+v", got)
	}
	s.sealer.gone.Store(nil)
	if got := s.metric("countersign_edge_cursor_refusals_total"); got != 0 {
		t.Errorf("%v refusals are counted", got)
	}
}
