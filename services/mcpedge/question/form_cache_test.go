package question

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/countersign-mcp/countersign/services/mcpedge/schema"
)

func TestFormsAreCompiledOnceAndForgottenWhenThereAreMany(t *testing.T) {
	cache := formCache{compiled: map[string]*schema.Schema{}}
	form := func(title string) []byte {
		return fmt.Appendf(nil, `{"type":"object","title":%q,"properties":{"a":{"type":"boolean"}}}`, title)
	}
	compile := func(text []byte) *schema.Schema {
		compiled, err := cache.compile(text)
		if err != nil {
			t.Fatal(err)
		}
		return compiled
	}
	first := compile(form("first"))
	if compile(form("first")) != first {
		t.Error("the same form was compiled twice")
	}
	if compile(form("second")) == first {
		t.Error("another form is taken for the first")
	}
	if _, err := cache.compile([]byte(`{"type":"object"}`)); err == nil {
		t.Error("a form without properties was accepted")
	}
	compile(form(strings.Repeat("x", maxFormBytes)))
	if len(cache.compiled) != 2 {
		t.Errorf("%d forms are kept: neither a long one nor a failed one should be", len(cache.compiled))
	}
	for i := range 2 * maxForms {
		compile(form(strconv.Itoa(i)))
		if len(cache.compiled) > maxForms {
			t.Fatalf("%d forms are kept", len(cache.compiled))
		}
	}
}
