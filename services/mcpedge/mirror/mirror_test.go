package mirror

import (
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTheSpecificationsExamples(t *testing.T) {
	for said, want := range map[string]string{
		"us-west1":            "us-west1",
		"Hello, \u4e16\u754c": "=?base64?SGVsbG8sIOS4lueVjA==?=",
		" padded ":            "=?base64?IHBhZGRlZCA=?=",
		"line1\nline2":        "=?base64?bGluZTEKbGluZTI=?=",
		"=?base64?literal?=":  "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=",
		"":                    "",
		"SGVsbG8=":            "SGVsbG8=",
		"=?base64?SGVsbG8=":   "=?base64?SGVsbG8=",
		"=?base64?=":          "=?base64?=",
	} {
		if got := Encode(said); got != want {
			t.Errorf("%q is encoded as %q, want %q", said, got, want)
		}
	}
}

func TestDecodingIsTheInverseOfEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		said := rapid.OneOf(rapid.String(), rapid.StringMatching(`[ \t]?(=\?base64\?)?[A-Za-z0-9+/=]{0,8}(\?=)?`)).Draw(t, "said")
		encoded := Encode(said)
		if _, err := Plain(encoded); err != nil || strings.Trim(encoded, " \t") != encoded {
			t.Fatalf("%q is encoded as %q, which a header must not hold", said, encoded)
		}
		if decoded, err := Decode(encoded); err != nil || decoded != said {
			t.Fatalf("%q is encoded as %q and decoded as %q, %v", said, encoded, decoded, err)
		}
	})
}

func TestWhatNoEncoderMakesIsRefused(t *testing.T) {
	for _, value := range []string{
		"=?base64?SGVsbG8?=", "=?base64?SGVs!!!bG8=?=", "=?base64?SGVsbG9=?=", "=?base64?SGVs bG8=?=", "=?base64?/w==?=", "=?base64?SGVsbG8=\n?=", "é", "a\x00b", "a\x7f",
	} {
		if got, err := Decode(value); err == nil {
			t.Errorf("%q is decoded as %q", value, got)
		}
	}
}

const schema = `{"type":"object","properties":{
	"region":{"type":"string","x-mcp-header":"Region"},
	"options":{"type":"object","properties":{"level":{"type":"integer","x-mcp-header":"LEVEL"},"dry":{"type":"boolean","x-mcp-header":"dry-run"}}},
	"x-mcp-header":{"type":"string","default":"x-mcp-header"}}}`

func TestHeadersMustSayWhatTheArgumentsSay(t *testing.T) {
	params, err := Params([]byte(schema))
	if err != nil || len(params) != 3 {
		t.Fatalf("got %v, %v", params, err)
	}
	for name, test := range map[string]struct {
		arguments string
		headers   map[string]string
		ok        bool
	}{
		"nothing":                       {`{}`, nil, true},
		"no arguments":                  {``, nil, true},
		"all":                           {`{"region":"Hello","options":{"level":42,"dry":true}}`, map[string]string{"Region": "Hello", "Level": "42", "Dry-Run": "true"}, true},
		"encoded":                       {`{"region":"H\u00e9"}`, map[string]string{"region": "=?base64?SMOp?="}, true},
		"literal with a prefix":         {`{"region":"=?base64?SGVsbG8="}`, map[string]string{"region": "=?base64?SGVsbG8="}, true},
		"number by value":               {`{"options":{"level":42}}`, map[string]string{"level": "42.0"}, true},
		"number by value, the other":    {`{"options":{"level":4.2e1}}`, map[string]string{"level": "42"}, true},
		"null":                          {`{"region":null}`, nil, true},
		"object where a string belongs": {`{"region":{}}`, nil, true},
		"missing":                       {`{"region":"Hello"}`, nil, false},
		"another":                       {`{"region":"Hello"}`, map[string]string{"region": "hello"}, false},
		"wrong padding":                 {`{"region":"Hello"}`, map[string]string{"region": "=?base64?SGVsbG8?="}, false},
		"header without argument":       {`{}`, map[string]string{"region": "Hello"}, false},
		"header with null":              {`{"region":null}`, map[string]string{"region": "null"}, false},
		"number beyond a double":        {`{"options":{"level":9007199254740993}}`, map[string]string{"level": "9007199254740992"}, false},
		"boolean in another case":       {`{"options":{"dry":true}}`, map[string]string{"dry-run": "True"}, false},
		"number as a string":            {`{"region":"1"}`, map[string]string{"region": "1.0"}, false},
		"not a number":                  {`{"options":{"level":1}}`, map[string]string{"level": "one"}, false},
		"options is no object":          {`{"options":7}`, map[string]string{"level": "7"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			header := http.Header{}
			for name, value := range test.headers {
				header.Set("Mcp-Param-"+name, value)
			}
			var err error
			for _, param := range params {
				if e := param.Check(header, []byte(test.arguments)); e != nil {
					err = e
				}
			}
			if (err == nil) != test.ok {
				t.Errorf("got %v", err)
			}
		})
	}
	twice := http.Header{"Mcp-Param-Region": {"Hello", "Hello"}}
	if params[0].Check(twice, []byte(`{"region":"Hello"}`)) == nil {
		t.Error("a header that is there twice is accepted")
	}
}

func TestAnnotationsThatBreakTheRulesAreRefused(t *testing.T) {
	property := func(p string) string { return `{"type":"object","properties":{"a":` + p + `}}` }
	for name, schema := range map[string]string{
		"empty":              property(`{"type":"string","x-mcp-header":""}`),
		"not a token":        property(`{"type":"string","x-mcp-header":"a b"}`),
		"line break":         property(`{"type":"string","x-mcp-header":"a\n"}`),
		"not a string":       property(`{"type":"string","x-mcp-header":1}`),
		"on a number":        property(`{"type":"number","x-mcp-header":"a"}`),
		"on an object":       property(`{"type":"object","x-mcp-header":"a"}`),
		"without a type":     property(`{"x-mcp-header":"a"}`),
		"on the root":        `{"type":"object","x-mcp-header":"a"}`,
		"same in other case": `{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"Region"},"b":{"type":"string","x-mcp-header":"REGION"}}}`,
		"in items":           property(`{"type":"array","items":{"type":"string","x-mcp-header":"a"}}`),
		"in a list of items": property(`{"type":"array","items":[{"type":"string","x-mcp-header":"a"}]}`),
		"in anyOf":           property(`{"anyOf":[{"type":"string","x-mcp-header":"a"}]}`),
		"in then":            `{"type":"object","then":{"properties":{"a":{"type":"string","x-mcp-header":"a"}}}}`,
		"in $defs":           `{"type":"object","$defs":{"d":{"type":"string","x-mcp-header":"a"}}}`,
		"below items":        property(`{"type":"array","items":{"type":"object","properties":{"b":{"type":"string","x-mcp-header":"a"}}}}`),
	} {
		if params, err := Params([]byte(schema)); err == nil {
			t.Errorf("%s: accepted as %v", name, params)
		}
	}
	for name, schema := range map[string]string{
		"none":              `{"type":"object"}`,
		"as a value":        property(`{"type":"string","enum":["x-mcp-header"],"examples":[{"x-mcp-header":1}]}`),
		"a boolean schema":  property(`true`) + " ",
		"named like itself": `{"type":"object","properties":{"x-mcp-header":{"type":"string"}}}`,
	} {
		if params, err := Params([]byte(schema)); err != nil || len(params) != 0 {
			t.Errorf("%s: got %v, %v", name, params, err)
		}
	}
}
