// Package arguments turns what a user types after a tool's or a prompt's name into
// the arguments of the call.
//
// A shell knows only text, a tool wants numbers, booleans and objects. The tool's
// input schema says which: a value becomes what the schema's type says, with the
// digits of a number as typed. Where the schema does not say, because the tool is
// unknown or the property has several types, a value that is JSON is taken as
// JSON and anything else as text.
//
// Nothing is validated here beyond that: the server has the schema too, and its
// refusal is the one that counts.
package arguments

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Read returns the JSON object that a user gave: as JSON, as `@` and the name of a
// file, or as `-` for the input.
func Read(given string, input io.Reader) (jsontext.Value, error) {
	text := []byte(given)
	var err error
	switch {
	case given == "-":
		if text, err = io.ReadAll(input); err != nil {
			return nil, fmt.Errorf("read the arguments from the input: %w", err)
		}
	case strings.HasPrefix(given, "@"):
		if text, err = os.ReadFile(given[1:]); err != nil {
			return nil, fmt.Errorf("read the arguments: %w", err)
		}
	}
	value := jsontext.Value(strings.TrimSpace(string(text)))
	if !value.IsValid() || value.Kind() != '{' {
		return nil, errors.New("the arguments are not a JSON object")
	}
	return value, nil
}

// Typed returns the object with the pairs, each `name=value`, set in it. The
// schema is a tool's input schema, or empty where there is none.
func Typed(object jsontext.Value, pairs []string, schema jsontext.Value) (jsontext.Value, error) {
	types, err := typesOf(schema)
	if err != nil {
		return nil, err
	}
	return set(object, pairs, func(name, text string) (jsontext.Value, error) {
		return typed(text, types[name])
	})
}

// Texts returns the object with the pairs set in it as strings, which is all that
// a prompt takes.
func Texts(object jsontext.Value, pairs []string) (jsontext.Value, error) {
	return set(object, pairs, func(_, text string) (jsontext.Value, error) {
		return jsontext.AppendQuote(nil, text)
	})
}

// set puts pairs into an object.
func set(object jsontext.Value, pairs []string, convert func(name, text string) (jsontext.Value, error)) (jsontext.Value, error) {
	if len(pairs) == 0 {
		if len(object) == 0 {
			return jsontext.Value(`{}`), nil
		}
		return object, nil
	}
	members := map[string]jsontext.Value{}
	if len(object) > 0 {
		if err := json.Unmarshal(object, &members); err != nil {
			return nil, fmt.Errorf("read the arguments: %w", err)
		}
	}
	given := map[string]bool{}
	for _, pair := range pairs {
		name, text, ok := strings.Cut(pair, "=")
		switch {
		case !ok || name == "":
			return nil, fmt.Errorf("%q is not of the form name=value", pair)
		case given[name]:
			return nil, fmt.Errorf("the argument %q is given twice", name)
		}
		given[name] = true
		value, err := convert(name, text)
		if err != nil {
			return nil, fmt.Errorf("argument %q: %w", name, err)
		}
		members[name] = value
	}
	return json.Marshal(members, json.Deterministic(true))
}

// typesOf reads the types of a schema's properties. A property of several types,
// or none, is not among them, except that null may stand beside a type.
func typesOf(schema jsontext.Value) (map[string]string, error) {
	types := map[string]string{}
	if len(schema) == 0 {
		return types, nil
	}
	var root struct {
		Properties map[string]jsontext.Value `json:"properties"`
	}
	if err := json.Unmarshal(schema, &root); err != nil {
		return nil, fmt.Errorf("read the input schema: %w", err)
	}
	for name, property := range root.Properties {
		var typed struct {
			Type jsontext.Value `json:"type"`
		}
		if property.Kind() != '{' || json.Unmarshal(property, &typed) != nil {
			continue
		}
		var one string
		if typed.Type.Kind() == '"' && json.Unmarshal(typed.Type, &one) == nil {
			types[name] = one
		}
	}
	return types, nil
}

// typed turns a text into a value of a schema's type.
func typed(text, schemaType string) (jsontext.Value, error) {
	value := jsontext.Value(strings.TrimSpace(text))
	valid := value.IsValid()
	kind := value.Kind()
	switch schemaType {
	case "string":
		return jsontext.AppendQuote(nil, text)
	case "number", "integer":
		if !valid || kind != '0' {
			return nil, errors.New("a number is wanted")
		}
	case "boolean":
		if !valid || kind != 't' && kind != 'f' {
			return nil, errors.New("true or false is wanted")
		}
	case "array":
		if !valid || kind != '[' {
			return nil, errors.New(`a JSON array is wanted, such as ["a","b"]`)
		}
	case "object":
		if !valid || kind != '{' {
			return nil, errors.New(`a JSON object is wanted, such as {"a":1}`)
		}
	default:
		if !valid {
			return jsontext.AppendQuote(nil, text)
		}
	}
	return value, nil
}
