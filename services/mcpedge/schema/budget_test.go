package schema

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestSchemasAreBounded(t *testing.T) {
	for name, text := range map[string]string{
		"size":     `{"description":"` + strings.Repeat("x", maxSchemaBytes) + `"}`,
		"depth":    strings.Repeat(`{"not":`, maxSchemaDepth) + `true` + strings.Repeat(`}`, maxSchemaDepth),
		"keywords": `{"required":[` + strings.TrimSuffix(strings.Repeat(`{"":0},`, maxSchemaKeywords), ",") + `]}`,
	} {
		if _, err := Compile([]byte(text)); err == nil || !strings.Contains(err.Error(), name[:4]) && !strings.Contains(err.Error(), "nested") && !strings.Contains(err.Error(), "larger") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCompositionWithReferencesIsCostly(t *testing.T) {
	for text, want := range map[string]bool{
		`{"anyOf":[{"type":"string"}]}`:                                          false,
		`{"$defs":{"a":{"type":"string"}},"$ref":"#/$defs/a"}`:                   false,
		`{"$defs":{"a":{"not":{"type":"string"}}},"items":{"$ref":"#/$defs/a"}}`: true,
	} {
		schema, err := Compile([]byte(text))
		if err != nil || schema.costly != want {
			t.Errorf("%s: got %+v, %v", text, schema, err)
		}
	}
}

func TestWhatTakesTooLongIsGivenUpAndBounded(t *testing.T) {
	release := make(chan struct{})
	b := newBudget(10*time.Millisecond, 2)
	for range 2 {
		if err := b.run(func() error { <-release; return nil }); !errors.Is(err, ErrBudget) {
			t.Errorf("got %v", err)
		}
	}
	if err := b.run(func() error { t.Error("it was begun"); return nil }); !errors.Is(err, ErrBudget) {
		t.Errorf("while all places are taken: got %v", err)
	}
	close(release)
	b.time = time.Minute
	if want := errors.New("no match"); b.run(func() error { return want }) != want { //nolint:errorlint // the very same
		t.Error("a validation's own error is lost")
	}
}

func TestAnExponentialSchemaDoesNotStopTheServer(t *testing.T) {
	schema, err := Compile([]byte(`{"$defs":{"n":{"oneOf":[{"properties":{"c":{"$ref":"#/$defs/n"}},"required":["x"]},{"properties":{"c":{"$ref":"#/$defs/n"}},"required":["y"]}]}},"$ref":"#/$defs/n"}`))
	if err != nil {
		t.Fatal(err)
	}
	nested := func(depth int) []byte {
		return []byte(strings.Repeat(`{"c":`, depth) + `1` + strings.Repeat(`}`, depth))
	}
	if _, ok := errors.AsType[*Violations](schema.Validate(nested(4))); !ok {
		t.Error("a small value is not checked")
	}
	// Each level doubles the work, or more.
	for _, depth := range []int{maxCostlyDepth + 1, 64} {
		if err := schema.Validate(nested(depth)); err == nil || !strings.Contains(err.Error(), "nested deeper") {
			t.Errorf("at depth %d: got %v", depth, err)
		}
	}
}
