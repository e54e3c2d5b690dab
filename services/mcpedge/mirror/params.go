package mirror

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/countersign-mcp/countersign/services/mcpedge/canon"
	"github.com/countersign-mcp/countersign/services/mcpedge/jsonrpc"
)

// annotation is the keyword that names a header in a schema.
const annotation = "x-mcp-header"

// headerPrefix begins the names of headers that mirror arguments.
const headerPrefix = "Mcp-Param-"

// Param is an argument that a header mirrors.
type Param struct {
	// Header is the header's name in canonical form.
	Header string
	// path leads to the argument, a member's name for each step.
	path []string
}

// Params returns the arguments that headers mirror, by the input schema of a tool:
// the exact text of an object. It fails where an annotation breaks a rule of the
// specification ("Custom Headers from Tool Parameters").
func Params(schema []byte) ([]Param, error) {
	if !bytes.Contains(schema, []byte(annotation)) {
		return nil, nil
	}
	var params []Param
	if err := walk(schema, nil, true, &params); err != nil {
		return nil, err
	}
	for i, param := range params {
		if slices.ContainsFunc(params[:i], func(other Param) bool { return other.Header == param.Header }) {
			return nil, fmt.Errorf("two arguments have the %s %q", annotation, strings.TrimPrefix(param.Header, headerPrefix))
		}
	}
	return params, nil
}

// Keywords below which further schemas stand: one, a list of them, or one a name.
var (
	schemaKeywords = []string{"additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}
	listKeywords   = []string{"allOf", "anyOf", "items", "oneOf", "prefixItems"}
	namedKeywords  = []string{"$defs", "definitions", "dependentSchemas", "patternProperties"}
)

// walk collects the annotations of a schema and of those below it. reachable says
// whether the schema is reached through `properties` alone.
func walk(schema []byte, path []string, reachable bool, params *[]Param) error {
	if len(schema) == 0 || schema[0] != '{' {
		return nil
	}
	var header, kind []byte
	err := jsonrpc.EachMember(schema, func(keyword string, value []byte) error {
		switch {
		case keyword == annotation:
			header = value
		case keyword == "type":
			kind = value
		case keyword == "properties" && value[0] == '{':
			return jsonrpc.EachMember(value, func(name string, property []byte) error {
				return walk(property, append(slices.Clone(path), name), reachable, params)
			})
		case slices.Contains(listKeywords, keyword) && value[0] == '[':
			return jsonrpc.EachElement(value, func(element []byte) error { return walk(element, nil, false, params) })
		case slices.Contains(schemaKeywords, keyword):
			return walk(value, nil, false, params)
		case slices.Contains(namedKeywords, keyword) && value[0] == '{':
			return jsonrpc.EachMember(value, func(_ string, named []byte) error { return walk(named, nil, false, params) })
		}
		return nil
	})
	if err != nil || header == nil {
		return err
	}
	name, err := jsonrpc.Unquote(header)
	switch {
	case err != nil || !isToken(name):
		return fmt.Errorf("the %s %s is not the name of a header", annotation, header)
	case !reachable || len(path) == 0:
		return fmt.Errorf("the %s %q stands where its value is not reached through properties alone", annotation, name)
	case !slices.Contains([]string{`"string"`, `"integer"`, `"boolean"`}, string(kind)):
		return fmt.Errorf("the %s %q is on something that is not a string, an integer or a boolean", annotation, name)
	}
	*params = append(*params, Param{Header: http.CanonicalHeaderKey(headerPrefix + name), path: path})
	return nil
}

// isToken says whether a text is a token (RFC 9110, section 5.6.2).
func isToken(text string) bool {
	for i := range len(text) {
		c := text[i]
		if ('a' > c || c > 'z') && ('A' > c || c > 'Z') && ('0' > c || c > '9') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return text != ""
}

// Check checks that the header says what the arguments say: it is there once if
// there is a value, and not at all if there is none. The arguments are the exact
// text of an object, and empty for none. A value that no header can say is left to
// the check against the schema.
func (p Param) Check(header http.Header, arguments []byte) error {
	value, err := p.find(arguments)
	if err != nil {
		return err
	}
	given := header[p.Header]
	if value == nil || string(value) == "null" {
		if len(given) > 0 {
			return fmt.Errorf("%s is there, and the argument is not", p.Header)
		}
		return nil
	}
	if value[0] == '{' || value[0] == '[' {
		return nil
	}
	if len(given) != 1 {
		return fmt.Errorf("%s must be there once, and is there %d times", p.Header, len(given))
	}
	said, err := Decode(given[0])
	if err != nil {
		return fmt.Errorf("%s %w", p.Header, err)
	}
	if !says(said, value) {
		return fmt.Errorf("%s does not say what the argument says", p.Header)
	}
	return nil
}

// find returns the argument, or nil if it is absent.
func (p Param) find(arguments []byte) ([]byte, error) {
	value := arguments
	for _, step := range p.path {
		if len(value) == 0 || value[0] != '{' {
			return nil, nil
		}
		var member []byte
		err := jsonrpc.EachMember(value, func(name string, text []byte) error {
			if name == step {
				member = text
			}
			return nil
		})
		if err != nil {
			return nil, errors.New("read the arguments")
		}
		value = member
	}
	return value, nil
}

// says reports whether the text of a header stands for a string, number or boolean. Numbers are
// compared by value.
func says(said string, value []byte) bool {
	if value[0] == '"' {
		text, err := jsonrpc.Unquote(value)
		return err == nil && text == said
	}
	if value[0] == 't' || value[0] == 'f' {
		return string(value) == said
	}
	a, errA := canon.Append(nil, []byte(said))
	b, errB := canon.Append(nil, value)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}
