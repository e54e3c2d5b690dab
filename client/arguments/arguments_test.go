package arguments_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign-mcp/countersign/client/arguments"
)

func TestValuesTakeTheTypesOfTheSchema(t *testing.T) {
	schema := jsontext.Value(`{"properties":{"s":{"type":"string"},"n":{"type":"number"},"i":{"type":"integer"},
		"b":{"type":"boolean"},"l":{"type":"array"},"o":{"type":"object"},"any":{},"either":{"type":["string","integer"]},"true":true}}`)
	for pair, want := range map[string]string{
		"s=12": `{"s":"12"}`, "s=": `{"s":""}`, "s=a=b": `{"s":"a=b"}`, "s= x ": `{"s":" x "}`, `s="q"`: `{"s":"\"q\""}`,
		"n=1.10": `{"n":1.10}`, "i=9007199254740993": `{"i":9007199254740993}`, "n=x": "", "n=": "", "i=12 13": "",
		"b=true": `{"b":true}`, "b=yes": "",
		`l=["a"]`: `{"l":["a"]}`, "l=a": "", `o={"x":1.0}`: `{"o":{"x":1.0}}`, "o=[]": "",
		"any=12": `{"any":12}`, "any=hello": `{"any":"hello"}`, "any=null": `{"any":null}`, "either=7": `{"either":7}`,
		"unknown=1": `{"unknown":1}`, "true=x": `{"true":"x"}`,
		"noequals": "", "=x": "",
	} {
		got, err := arguments.Typed(nil, []string{pair}, schema)
		if want == "" && err == nil {
			t.Errorf("%q became %s, want an error", pair, got)
		}
		if want != "" && (err != nil || string(got) != want) {
			t.Errorf("%q became %s (%v), want %s", pair, got, err, want)
		}
	}
}

func TestPairsAreSetInTheObject(t *testing.T) {
	got, err := arguments.Typed(jsontext.Value(`{"a":1.0,"b":2}`), []string{"b=3"}, nil)
	if err != nil || string(got) != `{"a":1.0,"b":3}` {
		t.Errorf("got %s (%v)", got, err)
	}
	if _, err := arguments.Typed(nil, []string{"a=1", "a=2"}, nil); err == nil {
		t.Error("an argument was taken twice")
	}
	untouched, err := arguments.Typed(jsontext.Value(`{ "a" : 1e3 }`), nil, nil)
	if err != nil || string(untouched) != `{ "a" : 1e3 }` {
		t.Errorf("got %s (%v), want the object as given", untouched, err)
	}
	texts, err := arguments.Texts(nil, []string{"n=1"})
	if err != nil || string(texts) != `{"n":"1"}` {
		t.Errorf("got %s (%v), want a string", texts, err)
	}
}

func TestArgumentsAreReadFromWhereTheUserSays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "arguments.json")
	if err := os.WriteFile(path, []byte("{\"a\":1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{
		`{"a":1}`: `{"a":1}`, "@" + path: `{"a":1}`, "-": `{"b":2}`, "[]": "", "{": "", "@" + path + ".none": "", `{"a":1,"a":2}`: "",
	} {
		got, err := arguments.Read(given, strings.NewReader(`{"b":2}`))
		if want == "" && err == nil {
			t.Errorf("%q was read as %s, want an error", given, got)
		}
		if want != "" && (err != nil || string(got) != want) {
			t.Errorf("%q was read as %s (%v), want %s", given, got, err, want)
		}
	}
}
