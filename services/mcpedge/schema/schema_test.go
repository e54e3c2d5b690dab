package schema

import (
	"errors"
	"strings"
	"testing"
)

func TestValuesAreCheckedExactly(t *testing.T) {
	for name, test := range map[string]struct {
		schema, value string
		want          string // part of the violation; empty: it matches
	}{
		"matches":                         {`{"type":"object","properties":{"n":{"type":"integer"}}}`, `{"n":1.0}`, ""},
		"wrong type":                      {`{"type":"object","properties":{"n":{"type":"integer"}}}`, `{"n":"1"}`, `"n": got string, want integer`},
		"missing":                         {`{"type":"object","required":["order_id"]}`, `{}`, "order_id"},
		"maximum beyond a double, at it":  {`{"maximum":9007199254740992}`, `9007199254740992`, ""},
		"maximum beyond a double, one up": {`{"maximum":9007199254740992}`, `9007199254740993`, "maximum"},
		"const beyond a double":           {`{"const":9007199254740993}`, `9007199254740992`, "value must be"},
		"large exponent":                  {`{"type":"number"}`, `1e400`, ""},
		"exponent out of reach":           {`{"type":"integer"}`, `1e999999999`, "exponent"},
		"exponent beyond an int":          {`{"type":"integer"}`, `[1e99999999999999999999]`, "exponent"},
		"long number":                     {`true`, strings.Repeat("9", maxNumberBytes+1), "longer"},
		"digits in a string are text":     {`true`, `["1e999999999","\"1e999999999"]`, ""},
		"draft-07":                        {`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}]}`, `[1]`, "want string"},
		"2020-12 named":                   {`{"$schema":"https://json-schema.org/draft/2020-12/schema","prefixItems":[{"type":"string"}]}`, `[1]`, "want string"},
		"local reference":                 {`{"$defs":{"a":{"type":"string"}},"$ref":"#/$defs/a"}`, `1`, "want string"},
		"anchor":                          {`{"$defs":{"a":{"$anchor":"x","type":"string"}},"$ref":"#x"}`, `1`, "want string"},
	} {
		t.Run(name, func(t *testing.T) {
			schema, err := Compile([]byte(test.schema))
			if err != nil {
				t.Fatal(err)
			}
			err = schema.Validate([]byte(test.value))
			if test.want == "" {
				if err != nil {
					t.Errorf("got %v, want a match", err)
				}
				return
			}
			if _, ok := errors.AsType[*Violations](err); !ok || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want a violation about %q", err, test.want)
			}
		})
	}
}

func TestFormatIsARemarkUnlessAsserted(t *testing.T) {
	text := []byte(`{"type":"string","format":"email"}`)
	for _, test := range []struct {
		options []Option
		matches bool
	}{{nil, true}, {[]Option{AssertFormats()}, false}} {
		schema, err := Compile(text, test.options...)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate([]byte(`"nobody"`)); (err == nil) != test.matches {
			t.Errorf("with %d options: %v", len(test.options), err)
		}
	}
}

func TestSchemasThatCannotBeHeldAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"network reference": `{"$ref":"http://127.0.0.1:1/schema.json"}`,
		"file reference":    `{"$ref":"file:///etc/passwd"}`,
		"other dialect":     `{"$schema":"http://json-schema.org/draft-04/schema#"}`,
		"invented dialect":  `{"$schema":"https://example.com/dialect"}`,
		"not a schema":      `{"type":"text"}`,
		"not JSON":          `{`,
		"dangling":          `{"$ref":"#/$defs/none"}`,
	} {
		if _, err := Compile([]byte(text)); err == nil {
			t.Errorf("%s: compiled", name)
		}
	}
}

func TestFewViolationsAreNamed(t *testing.T) {
	schema, err := Compile([]byte(`{"items":{"type":"string"}}`))
	if err != nil {
		t.Fatal(err)
	}
	violations, ok := errors.AsType[*Violations](schema.Validate([]byte("[" + strings.Repeat("1,", 99) + "1]")))
	if !ok || len(violations.List) != maxViolations {
		t.Errorf("got %v", violations)
	}
}
