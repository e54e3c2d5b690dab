package wire

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The base64 form of a header value (basic/transports/streamable-http, "Value
// Encoding").
const (
	sentinelStart = "=?base64?"
	sentinelEnd   = "?="
)

// Reserved says whether a header is the protocol's, so that a user must not set
// it.
func Reserved(name string) bool {
	name = http.CanonicalHeaderKey(name)
	return strings.HasPrefix(name, "Mcp-") || name == "Content-Type" || name == "Accept" || name == "Content-Length"
}

// EncodeHeaderValue writes a value so that it survives in an HTTP header: as it
// is where it can be, else as base64.
func EncodeHeaderValue(value string) string {
	if isPlain(value) {
		return value
	}
	return sentinelStart + base64.StdEncoding.EncodeToString([]byte(value)) + sentinelEnd
}

// isPlain says whether a value can be a header as it is.
func isPlain(value string) bool {
	if strings.Trim(value, " \t") != value {
		return false
	}
	if strings.HasPrefix(value, sentinelStart) && strings.HasSuffix(value, sentinelEnd) {
		return false
	}
	for _, b := range []byte(value) {
		if b != '\t' && (b < 0x20 || b > 0x7e) {
			return false
		}
	}
	return true
}

// MirroredArgument is an argument of a tool that is sent as a header too.
type MirroredArgument struct {
	// Header is the header's name after `Mcp-Param-`.
	Header string
	// Value is the value before any encoding.
	Value string
}

// HeaderParameter is a place in a tool's arguments that is mirrored in a header.
type HeaderParameter struct {
	// Header is the header's name after `Mcp-Param-`.
	Header string
	// Path is the chain of member names that leads to the argument.
	Path []string
}

// HeaderParameters finds the `x-mcp-header` annotations of an input schema. An
// error says why the tool must not be used.
func HeaderParameters(schema jsontext.Value) ([]HeaderParameter, error) {
	var root any
	if err := json.Unmarshal(schema, &root); err != nil {
		return nil, fmt.Errorf("read the input schema: %w", err)
	}
	found := headerSearch{seen: map[string]bool{}}
	if err := found.visit(root, nil, true); err != nil {
		return nil, err
	}
	return found.parameters, nil
}

// annotation is the keyword that marks a parameter.
const annotation = "x-mcp-header"

// The keywords of JSON Schema that hold schemas other than `properties`: one, a
// list, or a map of names to schemas.
var (
	subschemaKeywords = []string{
		"items", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else",
		"unevaluatedItems", "unevaluatedProperties", "contentSchema", "additionalItems",
	}
	subschemaLists = []string{"prefixItems", "allOf", "anyOf", "oneOf", "items"}
	subschemaMaps  = []string{"patternProperties", "dependentSchemas", "$defs", "definitions"}
)

// headerSearch walks a schema.
type headerSearch struct {
	parameters []HeaderParameter
	seen       map[string]bool
}

// visit looks at one schema. Reachable means that only `properties` led to it.
func (s *headerSearch) visit(schema any, path []string, reachable bool) error {
	object, ok := schema.(map[string]any)
	if !ok {
		return nil
	}
	if header, ok := object[annotation]; ok {
		if !reachable || len(path) == 0 {
			return fmt.Errorf("%s stands where no argument can be named", annotation)
		}
		if err := s.add(header, object["type"], path); err != nil {
			return fmt.Errorf("%s of %q: %w", annotation, strings.Join(path, "."), err)
		}
	}
	if properties, ok := object["properties"].(map[string]any); ok {
		for name, property := range properties {
			longer := append(append([]string(nil), path...), name)
			if err := s.visit(property, longer, reachable); err != nil {
				return err
			}
		}
	}
	return s.visitUnreachable(object)
}

// visitUnreachable looks at the subschemas in which an annotation is wrong.
func (s *headerSearch) visitUnreachable(object map[string]any) error {
	var subschemas []any
	for _, keyword := range subschemaKeywords {
		subschemas = append(subschemas, object[keyword])
	}
	for _, keyword := range subschemaLists {
		if list, ok := object[keyword].([]any); ok {
			subschemas = append(subschemas, list...)
		}
	}
	for _, keyword := range subschemaMaps {
		if named, ok := object[keyword].(map[string]any); ok {
			for _, schema := range named {
				subschemas = append(subschemas, schema)
			}
		}
	}
	for _, schema := range subschemas {
		if err := s.visit(schema, nil, false); err != nil {
			return err
		}
	}
	return nil
}

// add takes one annotation, if it keeps the rules.
func (s *headerSearch) add(header, schemaType any, path []string) error {
	name, ok := header.(string)
	if !ok || !isToken(name) {
		return fmt.Errorf("%q is no header name", header)
	}
	switch schemaType {
	case "string", "integer", "boolean":
	default:
		return fmt.Errorf("only a string, an integer or a boolean can be a header, not %v", schemaType)
	}
	if s.seen[strings.ToLower(name)] {
		return fmt.Errorf("the header %q is used twice", name)
	}
	s.seen[strings.ToLower(name)] = true
	s.parameters = append(s.parameters, HeaderParameter{Header: name, Path: path})
	return nil
}

// isToken is the syntax of a field name (RFC 9110, section 5.6.2).
func isToken(name string) bool {
	for _, r := range name {
		isAlphanumeric := r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !isAlphanumeric && !strings.ContainsRune("!#$%&'*+-.^_`|~", r) {
			return false
		}
	}
	return name != ""
}

// Mirror reads the values of the parameters in a call's arguments. What is not
// there, or null, is left out.
func Mirror(parameters []HeaderParameter, arguments jsontext.Value) ([]MirroredArgument, error) {
	var mirrored []MirroredArgument
	for _, parameter := range parameters {
		value := arguments
		for _, name := range parameter.Path {
			var object map[string]jsontext.Value
			if value.Kind() != '{' || json.Unmarshal(value, &object) != nil {
				value = nil
				break
			}
			value = object[name]
		}
		text, ok, err := headerText(value)
		if err != nil {
			return nil, fmt.Errorf("argument %q is also a header: %w", strings.Join(parameter.Path, "."), err)
		}
		if ok {
			mirrored = append(mirrored, MirroredArgument{Header: parameter.Header, Value: text})
		}
	}
	return mirrored, nil
}

// headerText is the text of a value. Something that is not of a header's types
// has none: the server refuses it because of its schema.
func headerText(value jsontext.Value) (string, bool, error) {
	switch value.Kind() {
	case '"':
		var text string
		if err := json.Unmarshal(value, &text); err != nil {
			return "", false, fmt.Errorf("read the value: %w", err)
		}
		return text, true, nil
	case 't', 'f':
		return string(value), true, nil
	case '0':
		return integerText(string(value))
	default:
		return "", false, nil
	}
}

// integerText is the decimal form of an integer in the range that the revision
// allows in headers: −2^53+1 to 2^53−1.
func integerText(number string) (string, bool, error) {
	const longestNumber = 40 // with an exponent of two digits at most, a number this long stays cheap to expand
	mantissa, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	if len(mantissa) > longestNumber || len(strings.TrimLeft(exponent, "+-0")) > 2 {
		return "", false, errors.New("a number this long cannot be one")
	}
	exact, ok := new(big.Rat).SetString(number)
	if !ok || !exact.IsInt() {
		return "", false, nil
	}
	largest := big.NewInt(1<<53 - 1)
	if exact.Num().CmpAbs(largest) > 0 {
		return "", false, fmt.Errorf("it must lie between -%s and %s", largest, largest)
	}
	return exact.Num().String(), true, nil
}
