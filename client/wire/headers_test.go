package wire_test

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign-mcp/countersign/client/wire"
)

// TestHeaderValuesAreEncodedAsTheRevisionShows uses the table of
// basic/transports/streamable-http, "Value Encoding".
func TestHeaderValuesAreEncodedAsTheRevisionShows(t *testing.T) {
	for value, want := range map[string]string{
		"us-west1":            "us-west1",
		"Hello, \u4e16\u754c": "=?base64?SGVsbG8sIOS4lueVjA==?=",
		" padded ":            "=?base64?IHBhZGRlZCA=?=",
		"line1\nline2":        "=?base64?bGluZTEKbGluZTI=?=",
		"=?base64?literal?=":  "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=",
		"a\tb c~":             "a\tb c~",
		"":                    "",
		"\x7f":                "=?base64?fw==?=",
		"=?BASE64?x?=":        "=?BASE64?x?=",
	} {
		if got := wire.EncodeHeaderValue(value); got != want {
			t.Errorf("%q became %q, want %q", value, got, want)
		}
	}
}

func FuzzAHeaderValueSurvives(f *testing.F) {
	f.Add("plain")
	f.Add("=?base64?x?=")
	f.Add("\x00é ")
	f.Fuzz(func(t *testing.T, value string) {
		encoded := wire.EncodeHeaderValue(value)
		if strings.ContainsFunc(encoded, func(r rune) bool { return r != '\t' && (r < 0x20 || r > 0x7e) }) || strings.Trim(encoded, " \t") != encoded {
			t.Fatalf("%q became %q, which is no header value", value, encoded)
		}
		decoded := encoded
		if inner, ok := strings.CutPrefix(encoded, "=?base64?"); ok && strings.HasSuffix(inner, "?=") {
			plain, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(inner, "?="))
			if err != nil {
				t.Fatal(err)
			}
			decoded = string(plain)
		}
		if decoded != value {
			t.Fatalf("%q came back as %q", value, decoded)
		}
	})
}

func TestArgumentsAreMirrored(t *testing.T) {
	schema := jsontext.Value(`{"type":"object","properties":{
		"region":{"type":"string","x-mcp-header":"Region"},
		"count":{"type":"integer","x-mcp-header":"Count"},
		"dry":{"type":"boolean","x-mcp-header":"Dry"},
		"missing":{"type":"string","x-mcp-header":"Missing"},
		"nothing":{"type":"string","x-mcp-header":"Nothing"},
		"x-mcp-header":{"type":"string"},
		"deep":{"type":"object","properties":{"er":{"type":"integer","x-mcp-header":"Deeper"}}}}}`)
	parameters, err := wire.HeaderParameters(schema)
	if err != nil {
		t.Fatal(err)
	}
	mirrored, err := wire.Mirror(parameters, jsontext.Value(`{"region":"é","count":1.20e1,"dry":false,"nothing":null,"deep":{"er":-7}}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, argument := range mirrored {
		got = append(got, argument.Header+"="+argument.Value)
	}
	slices.Sort(got)
	if want := "Count=12 Deeper=-7 Dry=false Region=é"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAnIntegerOutsideTheSafeRangeIsNotMirrored(t *testing.T) {
	parameters := []wire.HeaderParameter{{Header: "N", Path: []string{"n"}}}
	for number, ok := range map[string]bool{
		"9007199254740991": true, "-9007199254740991": true, "9007199254740992": false, "1e99": false, "1e999999999": false, "-0": true, "0e5": true,
	} {
		_, err := wire.Mirror(parameters, jsontext.Value(`{"n":`+number+`}`))
		if (err == nil) != ok {
			t.Errorf("%s: got %v", number, err)
		}
	}
	mirrored, err := wire.Mirror(parameters, jsontext.Value(`{"n":1.5}`))
	if err != nil || len(mirrored) != 0 {
		t.Errorf("a fraction gave %v and %v, want nothing", mirrored, err)
	}
}

func TestAMisplacedAnnotationMakesTheToolInvalid(t *testing.T) {
	for name, schema := range map[string]string{
		"empty":          `{"properties":{"a":{"type":"string","x-mcp-header":""}}}`,
		"no token":       `{"properties":{"a":{"type":"string","x-mcp-header":"a b"}}}`,
		"line feed":      `{"properties":{"a":{"type":"string","x-mcp-header":"a\nb"}}}`,
		"not a string":   `{"properties":{"a":{"type":"string","x-mcp-header":1}}}`,
		"number":         `{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}`,
		"object":         `{"properties":{"a":{"type":"object","x-mcp-header":"A"}}}`,
		"twice":          `{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}`,
		"in items":       `{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}`,
		"in a list":      `{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}`,
		"in then":        `{"then":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}`,
		"in definitions": `{"$defs":{"a":{"type":"string","x-mcp-header":"A"}}}`,
		"at the root":    `{"type":"string","x-mcp-header":"A"}`,
	} {
		if _, err := wire.HeaderParameters(jsontext.Value(schema)); err == nil {
			t.Errorf("%s: the schema was taken", name)
		}
	}
}

func TestTheProtocolsHeadersAreReserved(t *testing.T) {
	for name, want := range map[string]bool{
		"mcp-name": true, "MCP-Protocol-Version": true, "Mcp-Param-X": true, "accept": true, "content-type": true, "Authorization": false, "X-Mcp": false,
	} {
		if wire.Reserved(name) != want {
			t.Errorf("%s: got %v", name, !want)
		}
	}
}
