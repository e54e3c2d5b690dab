package catalog

import (
	"fmt"
	"strings"
	"testing"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
)

const anyObject = `{"type":"object"}`

func tool(name string) *handlerv1.Tool {
	return &handlerv1.Tool{Name: name, Description: "d", InputSchema: []byte(anyObject)}
}

func public(milliseconds uint32) *handlerv1.CacheHint {
	return &handlerv1.CacheHint{TtlMs: milliseconds, Scope: handlerv1.CacheScope_CACHE_SCOPE_PUBLIC}
}

func TestListsAreSortedAndKeepForeignText(t *testing.T) {
	schema := `{"type": "object", "properties": {"n": {"type":"integer","maximum":9007199254740993, "x-vendor": 1.0}}}`
	snapshot := NewSnapshot([]Description{
		{&Handler{Name: "b"}, &handlerv1.Catalog{Tools: []*handlerv1.Tool{{Name: "zeta", Title: "Z", Description: "d", InputSchema: []byte(schema), Meta: []byte(`{"v":1e400}`)}}}},
		{&Handler{Name: "a"}, &handlerv1.Catalog{Tools: []*handlerv1.Tool{tool("alpha")}}},
	})
	want := []string{
		`{"name":"alpha","description":"d","inputSchema":{"type":"object"}}`,
		`{"name":"zeta","title":"Z","description":"d","inputSchema":` + schema + `,"_meta":{"v":1e400}}`,
	}
	if len(snapshot.Lists.Tools.Elements) != len(want) {
		t.Fatalf("got %d tools; problems %v", len(snapshot.Lists.Tools.Elements), snapshot.Problems)
	}
	for i, element := range snapshot.Lists.Tools.Elements {
		if string(element) != want[i] {
			t.Errorf("got  %s\nwant %s", element, want[i])
		}
	}
}

func TestACollisionNamesBothHandlersAndTheFirstKeepsTheName(t *testing.T) {
	first, second := &Handler{Name: "first"}, &Handler{Name: "second"}
	catalog := &handlerv1.Catalog{
		Tools:             []*handlerv1.Tool{tool("search")},
		Prompts:           []*handlerv1.Prompt{{Name: "p"}},
		Resources:         []*handlerv1.Resource{{Uri: "x://1", Name: "r"}},
		ResourceTemplates: []*handlerv1.ResourceTemplate{{UriTemplate: "x://{id}", Name: "t"}},
	}
	snapshot := NewSnapshot([]Description{{first, catalog}, {second, catalog}})
	if len(snapshot.Problems) != 4 {
		t.Fatalf("got problems %v", snapshot.Problems)
	}
	for _, problem := range snapshot.Problems {
		if text := problem.String(); !strings.Contains(text, `"first"`) || !strings.Contains(text, `"second"`) || !strings.Contains(text, problem.Name) {
			t.Errorf("it does not name both: %s", text)
		}
	}
	if snapshot.Tool("search").Handler != first || snapshot.Prompt("p").Handler != first || snapshot.Resource("x://1").Handler != first || snapshot.Resource("x://2").Handler != first {
		t.Error("the first does not keep the name")
	}
}

func TestAPrefixSetsTwoHandlersApart(t *testing.T) {
	offered := &handlerv1.Catalog{Tools: []*handlerv1.Tool{tool("search")}, Prompts: []*handlerv1.Prompt{{Name: "p"}}}
	snapshot := NewSnapshot([]Description{{&Handler{Name: "first"}, offered}, {&Handler{Name: "second", Prefix: "docs."}, offered}})
	if len(snapshot.Problems) != 0 {
		t.Fatalf("got problems %v", snapshot.Problems)
	}
	for name, own := range map[string]string{"search": "search", "docs.search": "search"} {
		if got := snapshot.Tool(name); got == nil || got.Own != own || !strings.Contains(string(got.JSON), `"name":"`+name+`"`) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	if got := snapshot.Prompt("docs.p"); got == nil || got.Own != "p" || offered.GetTools()[0].GetName() != "search" {
		t.Errorf("got %+v", got)
	}
	bad := NewSnapshot([]Description{{&Handler{Name: "h", Prefix: "a b"}, offered}})
	if len(bad.Problems) != 1 {
		t.Errorf("a prefix that makes no name: problems %v", bad.Problems)
	}
}

func TestABadEntryDoesNotTakeItsNeighboursAway(t *testing.T) {
	bad := map[string]*handlerv1.Tool{
		"no input schema":       {Name: "a"},
		"schema is not JSON":    {Name: "a", InputSchema: []byte(`{`)},
		"schema of another":     {Name: "a", InputSchema: []byte(`{"type":"array"}`)},
		"schema does not hold":  {Name: "a", InputSchema: []byte(`{"type":"object","properties":{"x":{"type":"text"}}}`)},
		"network reference":     {Name: "a", InputSchema: []byte(`{"type":"object","$ref":"https://example.com/s"}`)},
		"bad output schema":     {Name: "a", InputSchema: []byte(anyObject), OutputSchema: []byte(`{"type":1}`)},
		"schema of itself":      {Name: "a", InputSchema: []byte(`{"type":"object","properties":{"x":{"$ref":"#/properties/x"}}}`)},
		"misplaced header":      {Name: "a", InputSchema: []byte(`{"type":"object","x-mcp-header":"a"}`)},
		"meta is not an object": {Name: "a", InputSchema: []byte(anyObject), Meta: []byte(`[]`)},
		"name with a space":     {Name: "a b", InputSchema: []byte(anyObject)},
		"no name":               {InputSchema: []byte(anyObject)},
		"long name":             {Name: strings.Repeat("a", 129), InputSchema: []byte(anyObject)},
	}
	for name, entry := range bad {
		snapshot := NewSnapshot([]Description{{&Handler{Name: "h"}, &handlerv1.Catalog{Tools: []*handlerv1.Tool{entry, tool("good")}}}})
		if len(snapshot.Problems) != 1 || snapshot.Problems[0].Name != entry.GetName() || snapshot.Tool("good") == nil || len(snapshot.Lists.Tools.Elements) != 1 {
			t.Errorf("%s: problems %v, %d tools", name, snapshot.Problems, len(snapshot.Lists.Tools.Elements))
		}
	}
	twice := NewSnapshot([]Description{{&Handler{Name: "h"}, &handlerv1.Catalog{Tools: []*handlerv1.Tool{tool("a"), tool("a")}}}})
	if len(twice.Problems) != 1 || twice.Tool("a") == nil {
		t.Errorf("a name twice: problems %v", twice.Problems)
	}
	for _, template := range []*handlerv1.ResourceTemplate{{UriTemplate: "x://{", Name: "t"}, {UriTemplate: "x://{id}"}, {Name: "t"}} {
		snapshot := NewSnapshot([]Description{{&Handler{Name: "h"}, &handlerv1.Catalog{ResourceTemplates: []*handlerv1.ResourceTemplate{template}}}})
		if len(snapshot.Problems) != 1 {
			t.Errorf("template %v: problems %v", template, snapshot.Problems)
		}
	}
}

func TestAURIIsServedByItsResourceOrElseItsTemplate(t *testing.T) {
	snapshot := NewSnapshot([]Description{{&Handler{Name: "h"}, &handlerv1.Catalog{
		Resources:         []*handlerv1.Resource{{Uri: "orders://all", Name: "all"}},
		ResourceTemplates: []*handlerv1.ResourceTemplate{{UriTemplate: "orders://{id}", Name: "order"}},
	}}})
	for uri, want := range map[string]string{"orders://all": "", "orders://7": "orders://{id}"} {
		if resource := snapshot.Resource(uri); resource == nil || resource.Template() != want {
			t.Errorf("%s: got %+v", uri, resource)
		}
	}
	for _, uri := range []string{"orders://7/items", "other://7", ""} {
		if resource := snapshot.Resource(uri); resource != nil {
			t.Errorf("%q: got %+v", uri, resource)
		}
	}
	if snapshot.Template("orders://{id}") == nil || snapshot.Template("orders://7") != nil {
		t.Error("a template is not found by its own text alone")
	}
}

func TestAListIsKeptAsLongAsTheStrictestHandlerAllows(t *testing.T) {
	a, b := &Handler{Name: "a"}, &Handler{Name: "b"}
	for name, test := range map[string]struct {
		a, b *handlerv1.CacheHint
		want string
	}{
		"both public":    {public(5000), public(3000), "3000 CACHE_SCOPE_PUBLIC"},
		"one private":    {public(5000), &handlerv1.CacheHint{TtlMs: 9000, Scope: handlerv1.CacheScope_CACHE_SCOPE_PRIVATE}, "5000 CACHE_SCOPE_PRIVATE"},
		"one unsaid":     {public(5000), nil, "0 CACHE_SCOPE_PRIVATE"},
		"first unsaid":   {nil, public(5000), "0 CACHE_SCOPE_PRIVATE"},
		"one unscoped":   {public(5000), &handlerv1.CacheHint{TtlMs: 5000}, "5000 CACHE_SCOPE_PRIVATE"},
		"equally public": {public(1), public(1), "1 CACHE_SCOPE_PUBLIC"},
	} {
		hint := NewSnapshot([]Description{
			{a, &handlerv1.Catalog{Cache: test.a, Tools: []*handlerv1.Tool{tool("a")}}},
			{b, &handlerv1.Catalog{Cache: test.b, Tools: []*handlerv1.Tool{tool("b")}}},
		}).Lists.Tools.Cache
		if got := fmt.Sprint(hint.GetTtlMs(), " ", hint.GetScope()); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
	alone := NewSnapshot([]Description{
		{a, &handlerv1.Catalog{Cache: public(5000), Tools: []*handlerv1.Tool{tool("a")}}},
		{b, &handlerv1.Catalog{Prompts: []*handlerv1.Prompt{{Name: "p"}}}},
	}).Lists
	if alone.Tools.Cache.GetTtlMs() != 5000 || alone.Prompts.Cache.GetTtlMs() != 0 {
		t.Errorf("a handler without tools has a say in the tools: %v", alone.Tools.Cache)
	}
}

func TestAListThatLacksAHandlerIsNotKept(t *testing.T) {
	snapshot := NewSnapshot([]Description{
		{&Handler{Name: "a"}, &handlerv1.Catalog{Cache: public(5000), Tools: []*handlerv1.Tool{tool("a")}}},
		{&Handler{Name: "b"}, nil},
	})
	if len(snapshot.Missing) != 1 || snapshot.Missing[0] != "b" || len(snapshot.Lists.Tools.Elements) != 1 {
		t.Errorf("missing %v, tools %q", snapshot.Missing, snapshot.Lists.Tools.Elements)
	}
	if hint := snapshot.Lists.Tools.Cache; hint.GetTtlMs() != 0 || hint.GetScope() == handlerv1.CacheScope_CACHE_SCOPE_PUBLIC {
		t.Errorf("it may be kept: %v", hint)
	}
}

func TestOnlyAnExplicitDestructiveHintDemandsThatQuestionsWereShown(t *testing.T) {
	yes, no := true, false
	for _, test := range []struct {
		tool *handlerv1.Tool
		want bool
	}{
		{&handlerv1.Tool{Name: "a"}, false},
		{&handlerv1.Tool{Name: "a", Annotations: &handlerv1.ToolAnnotations{}}, false},
		{&handlerv1.Tool{Name: "a", Annotations: &handlerv1.ToolAnnotations{DestructiveHint: &no}}, false},
		{&handlerv1.Tool{Name: "a", Annotations: &handlerv1.ToolAnnotations{DestructiveHint: &yes}}, true},
		{&handlerv1.Tool{Name: "a", AsksMustBeShown: true}, true},
	} {
		test.tool.InputSchema = []byte(anyObject)
		snapshot := NewSnapshot([]Description{{&Handler{Name: "h"}, &handlerv1.Catalog{Tools: []*handlerv1.Tool{test.tool}}}})
		if got := snapshot.Tool("a").AsksMustBeShown; got != test.want {
			t.Errorf("%v: got %t", test.tool, got)
		}
	}
}
