package catalog

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
)

// toolList lists tools of these names.
func toolList(names []string) List {
	offered := &handlerv1.Catalog{}
	for _, name := range names {
		offered.Tools = append(offered.Tools, tool(name))
	}
	return NewSnapshot([]Description{{&Handler{Name: "h"}, offered}}).Lists.Tools
}

func TestWhatStaysIsOnOnePageWhateverElseChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,2}`), 0, 30, rapid.ID[string])
		stays := names.Draw(t, "stays")
		size := rapid.IntRange(1, 8).Draw(t, "size")
		seen := map[string]int{}
		after := ""
		for more := true; more; {
			all := slices.Concat(stays, names.Draw(t, "others"))
			slices.Sort(all)
			all = slices.Compact(all)
			elements, last := toolList(all).Page(after, size)
			if len(elements) > size || (last != "") != (len(elements) == size && after < last && last < all[len(all)-1]) {
				t.Fatalf("%d elements after %q, and the last is %q", len(elements), after, last)
			}
			for _, element := range elements {
				name, _, _ := strings.Cut(strings.TrimPrefix(string(element), `{"name":"`), `"`)
				seen[name]++
			}
			more, after = last != "", last
		}
		for _, name := range stays {
			if seen[name] != 1 {
				t.Fatalf("%q was listed %d times", name, seen[name])
			}
		}
	})
}

func TestAPageWithoutABoundIsTheWholeList(t *testing.T) {
	if elements, last := toolList([]string{"a", "b", "c"}).Page("", 0); len(elements) != 3 || last != "" {
		t.Errorf("got %d elements and %q", len(elements), last)
	}
}

func TestANameThatNoTokenHoldsIsLeftOut(t *testing.T) {
	uri := "x://" + strings.Repeat("a", MaxNameBytes-4)
	snapshot := NewSnapshot([]Description{{&Handler{Name: "h"}, &handlerv1.Catalog{Resources: []*handlerv1.Resource{
		{Uri: uri, Name: "longest"}, {Uri: uri + "a", Name: "too long"},
	}}}})
	if len(snapshot.Problems) != 1 || snapshot.Resource(uri) == nil || snapshot.Resource(uri+"a") != nil {
		t.Errorf("got problems %v", snapshot.Problems)
	}
}

func BenchmarkPage(b *testing.B) {
	for _, length := range []int{100, 100_000} {
		l := List{Elements: make([][]byte, length), names: make([]string, length)}
		for i := range length {
			l.names[i] = fmt.Sprintf("tool_%06d", i)
		}
		b.Run(strconv.Itoa(length), func(b *testing.B) {
			for b.Loop() {
				if elements, _ := l.Page(l.names[length/4], 50); len(elements) != 50 {
					b.Fatal(len(elements))
				}
			}
		})
	}
}
