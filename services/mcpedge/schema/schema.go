// Package schema checks JSON against JSON Schemas that handlers wrote.
//
// Schemas are 2020-12 unless `$schema` says draft-07; another dialect is an error
// at compile time. Nothing is ever fetched: a `$ref` that leads out of the schema
// does not compile. Validation itself is done by a library
// (santhosh-tekuri/jsonschema), which keeps a number's text and compares numbers
// exactly.
//
// The limit: that library needs the value as a tree, so validation decodes what
// it looks at. The tree is thrown away; what is passed on is the text. Numbers
// whose size alone could stop the server are refused before the library sees
// them.
package schema

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
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
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
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
	return &Schema{compiled: compiled}, nil
}

// noLoader is a loader that fetches nothing.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%q is outside the schema, and nothing is fetched", url)
}

// Validate checks the exact text of a JSON value. It fails with *Violations where
// the value does not match, and with another error where it cannot be checked.
func (s *Schema) Validate(text []byte) error {
	if err := boundNumbers(text); err != nil {
		return &Violations{List: []string{err.Error()}}
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("read the value: %w", err)
	}
	err = s.compiled.Validate(value)
	if violation, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return &Violations{List: sentences(violation, nil)}
	}
	return err
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

// boundNumbers refuses a number that is too long or has too large an exponent.
// The text is valid JSON.
func boundNumbers(text []byte) error {
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
				return err
			}
			i--
		}
	}
	return nil
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
