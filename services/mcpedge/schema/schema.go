// Package schema checks JSON against JSON Schemas that handlers wrote.
//
// Schemas are 2020-12 unless `$schema` says draft-07; another dialect is an error
// at compile time. Nothing is ever fetched: a `$ref` that leads out of the schema
// does not compile, and neither does a schema that leads to itself without going into
// the value, see cycle.go. Validation itself is done by a library
// (santhosh-tekuri/jsonschema), which keeps a number's text and compares numbers
// exactly.
//
// Work is bounded, because neither a schema nor a value must stop the server. A
// schema has a largest size, depth and number of keywords; numbers whose size alone
// would cost too much are refused; and where composition meets references, which
// together can cost exponential time, validation has a budget, see budget.go.
//
// The limit: the library needs the value as a tree, so validation decodes what it
// looks at. The tree is thrown away; what is passed on is the text.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/countersign-mcp/countersign/services/mcpedge/jsonrpc"
)

const (
	draft202012 = "https://json-schema.org/draft/2020-12/schema"
	draft07     = "http://json-schema.org/draft-07/schema"
	// location is where a schema is said to live, so that its own `$ref`s resolve.
	location = "urn:schema"
	// maxExponent and maxNumberBytes bound numbers: exact arithmetic on larger
	// ones would cost more than any request is worth.
	maxExponent    = 4096
	maxNumberBytes = 4096
	// maxViolations is how many violations an error names.
	maxViolations = 5
)

// english writes the library's messages.
var english = message.NewPrinter(language.English)

// Schema is a compiled JSON Schema. It is safe for concurrent use.
type Schema struct {
	compiled *jsonschema.Schema
	// costly: it can take exponential time.
	costly bool
}

// Violations says what does not match a schema, for the one who sent it.
type Violations struct {
	// List holds a sentence each, at most maxViolations.
	List []string
}

// Error joins the sentences.
func (v *Violations) Error() string { return strings.Join(v.List, "; ") }

// Option changes how a schema is compiled.
type Option func(*jsonschema.Compiler)

// AssertFormats makes `format` a demand rather than a remark.
func AssertFormats() Option { return (*jsonschema.Compiler).AssertFormat }

// Compile compiles the exact text of a schema. It fails for a text that is not a
// schema of a supported dialect, and for a reference that leads out of it.
func Compile(text []byte, options ...Option) (*Schema, error) {
	if len(text) > maxSchemaBytes {
		return nil, fmt.Errorf("the schema is larger than %d bytes", maxSchemaBytes)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	var found keywords
	if err := found.count(document, 1); err != nil {
		return nil, err
	}
	if object, ok := document.(map[string]any); ok {
		if dialect, ok := object["$schema"].(string); ok && !slices.Contains([]string{draft202012, draft07}, strings.TrimSuffix(dialect, "#")) {
			return nil, fmt.Errorf("the dialect %q is not supported: use %s or %s", dialect, draft202012, draft07)
		}
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(noLoader{})
	for _, option := range options {
		option(compiler)
	}
	if err := compiler.AddResource(location, document); err != nil {
		return nil, fmt.Errorf("add the schema: %w", err)
	}
	compiled, err := compiler.Compile(location)
	if err != nil {
		return nil, fmt.Errorf("compile the schema: %w", err)
	}
	if err := checkCycles(compiled); err != nil {
		return nil, err
	}
	return &Schema{compiled: compiled, costly: found.compositions > 0 && found.references > 0}, nil
}

// noLoader is a loader that fetches nothing.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%q is outside the schema, and nothing is fetched", url)
}

// Validate checks the exact text of a JSON value, one that package jsonrpc has
// accepted. It fails with *Violations where
// the value does not match, and with another error where it cannot be checked.
func (s *Schema) Validate(text []byte) error {
	depth, err := inspect(text)
	if err == nil && s.costly && depth > maxCostlyDepth {
		err = fmt.Errorf("the value is nested deeper than %d, which this schema makes too costly to check", maxCostlyDepth)
	}
	if err != nil {
		return &Violations{List: []string{err.Error()}}
	}
	value, err := tree(text)
	if err != nil {
		return fmt.Errorf("read the value: %w", err)
	}
	err = s.validate(value)
	if violation, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return &Violations{List: sentences(violation, nil)}
	}
	return err
}

func (s *Schema) validate(value any) error {
	if !s.costly {
		return s.compiled.Validate(value)
	}
	return costly.run(func() error { return s.compiled.Validate(value) })
}

// tree is a value as the library takes it: as encoding/json would decode it, with the
// text of numbers.
func tree(text []byte) (any, error) {
	text = bytes.TrimSpace(text)
	switch text[0] {
	case '{':
		object := map[string]any{}
		err := jsonrpc.EachMember(text, func(name string, value []byte) (err error) {
			object[name], err = tree(value)
			return err
		})
		return object, err
	case '[':
		array := []any{}
		err := jsonrpc.EachElement(text, func(value []byte) error {
			element, err := tree(value)
			array = append(array, element)
			return err
		})
		return array, err
	case '"':
		return jsonrpc.Unquote(text)
	case 't', 'f':
		return text[0] == 't', nil
	case 'n':
		return nil, nil
	default:
		return json.Number(text), nil
	}
}

// sentences appends a sentence for each innermost violation.
func sentences(violation *jsonschema.ValidationError, list []string) []string {
	if len(violation.Causes) == 0 && len(list) < maxViolations {
		where := "the value"
		if len(violation.InstanceLocation) > 0 {
			where = strconv.Quote(strings.Join(violation.InstanceLocation, "/"))
		}
		return append(list, where+": "+violation.ErrorKind.LocalizedString(english))
	}
	for _, cause := range violation.Causes {
		list = sentences(cause, list)
	}
	return list
}

// inspect returns how deeply a value is nested, and refuses a number that is too
// long or has too large an exponent. The text is valid JSON.
func inspect(text []byte) (int, error) {
	depth, deepest := 0, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			for i++; text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case c == '-' || '0' <= c && c <= '9':
			start := i
			for i < len(text) && strings.IndexByte("+-.0123456789eE", text[i]) >= 0 {
				i++
			}
			if err := boundNumber(text[start:i]); err != nil {
				return 0, err
			}
			i--
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest, nil
}

func boundNumber(number []byte) error {
	if len(number) > maxNumberBytes {
		return fmt.Errorf("a number is longer than %d characters", maxNumberBytes)
	}
	if i := bytes.IndexAny(number, "eE"); i >= 0 {
		exponent, err := strconv.Atoi(string(number[i+1:]))
		if err != nil || exponent > maxExponent || exponent < -maxExponent {
			return fmt.Errorf("a number's exponent is beyond ±%d", maxExponent)
		}
	}
	return nil
}
