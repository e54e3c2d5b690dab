package catalog

import (
	"bytes"
	"slices"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
)

// MaxNameBytes is how long a name or URI may be: a token holds no longer one, so such
// an entry could not ask, and no list could go on after it.
const MaxNameBytes = 4096

// Lists are the entries of each kind as JSON, sorted by name.
type Lists struct {
	Tools, Prompts, Resources, ResourceTemplates List
}

// List is the entries of one kind.
type List struct {
	// Elements are the entries, each the exact text of a JSON object.
	Elements [][]byte
	// names are the entries' names, by which both are sorted. No two are the same.
	names []string
	// Cache is how long a client may keep the list: the strictest hint of all
	// handlers that have entries in it, and not at all while a handler is missing.
	Cache *handlerv1.CacheHint
}

// Page returns up to size entries, those whose names sort after the name given, and
// the last one's name if others follow it, else nothing. No entry is named by the
// empty string, so the first page is what stands after it. A size of 0 is no bound.
func (l List) Page(after string, size int) (elements [][]byte, last string) {
	start, found := slices.BinarySearch(l.names, after)
	if found {
		start++
	}
	if size == 0 || len(l.names)-start <= size {
		return l.Elements[start:], ""
	}
	return l.Elements[start : start+size], l.names[start+size-1]
}

// equal says whether two lists have the same elements.
func (l List) equal(other List) bool {
	return slices.EqualFunc(l.Elements, other.Elements, bytes.Equal)
}

// list writes a list, with the strictest hint of the handlers that are in it.
func list[T any](offers []*offer, values []T, entry func(T) *Entry) List {
	l := List{Elements: make([][]byte, len(values)), names: make([]string, len(values))}
	involved := map[*Handler]bool{}
	for i, value := range values {
		l.Elements[i], l.names[i] = entry(value).JSON, entry(value).Name
		involved[entry(value).Handler] = true
	}
	for _, o := range offers {
		if o.Catalog == nil || involved[o.Handler] {
			l.Cache = strictest(l.Cache, o.Catalog.GetCache())
		}
	}
	return l
}

// strictest returns the hint that both hints allow; a is nil for no hint yet.
func strictest(a, b *handlerv1.CacheHint) *handlerv1.CacheHint {
	if b == nil {
		b = &handlerv1.CacheHint{}
	}
	if a == nil {
		return b
	}
	hint := &handlerv1.CacheHint{TtlMs: min(a.GetTtlMs(), b.GetTtlMs()), Scope: handlerv1.CacheScope_CACHE_SCOPE_PRIVATE}
	if a.GetScope() == handlerv1.CacheScope_CACHE_SCOPE_PUBLIC && b.GetScope() == handlerv1.CacheScope_CACHE_SCOPE_PUBLIC {
		hint.Scope = handlerv1.CacheScope_CACHE_SCOPE_PUBLIC
	}
	return hint
}
