package handler

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
)

// argumentFormats are the formats that JSON Schema defines for a string.
var argumentFormats = []string{
	"date-time", "date", "time", "duration", "email", "idn-email", "hostname", "idn-hostname", "ipv4", "ipv6",
	"uri", "uri-reference", "iri", "iri-reference", "uuid", "uri-template", "json-pointer",
	"relative-json-pointer", "regex",
}

// tagArguments adds what the tags of the fields say to the schema of a type, and to
// those of the types inside it.
func tagArguments(schema *jsonschema.Schema, of reflect.Type) error {
	if schema == nil {
		return nil
	}
	switch of.Kind() {
	case reflect.Pointer:
		return tagArguments(schema, of.Elem())
	case reflect.Slice, reflect.Array:
		return tagArguments(schema.Items, of.Elem())
	case reflect.Map:
		return tagArguments(schema.AdditionalProperties, of.Elem())
	case reflect.Struct:
	default:
		return nil
	}
	for _, field := range reflect.VisibleFields(of) {
		name, _, skip := jsonName(field)
		property := schema.Properties[name]
		if skip || property == nil { // a type with a schema of its own has no properties
			continue
		}
		if err := tagArgument(property, field.Tag); err != nil {
			return fmt.Errorf("the field %s.%s: %w", of, field.Name, err)
		}
		if err := tagArguments(property, field.Type); err != nil {
			return err
		}
	}
	return nil
}

func tagArgument(schema *jsonschema.Schema, tag reflect.StructTag) error {
	if err := checkTags(tag); err != nil {
		return err
	}
	schema.Title = tag.Get("title")
	choices, err := taggedChoices(tag)
	if err != nil {
		return err
	}
	switch {
	case choices == nil:
	case jsonType(schema) == "string":
		schema.Enum, schema.OneOf = enumerate(choices)
	case jsonType(schema) == "array" && jsonType(schema.Items) == "string":
		schema.Items.Enum, schema.Items.AnyOf = enumerate(choices)
	default:
		return errors.New("only strings and lists of strings have choices")
	}
	return constrain(schema, tag, argumentFormats)
}

// jsonType is the type of a schema; where it may be null as well, the other one.
func jsonType(schema *jsonschema.Schema) string {
	if schema == nil {
		return ""
	}
	if len(schema.Types) == 2 && schema.Types[0] == "null" {
		return schema.Types[1]
	}
	return schema.Type
}

// argumentDefaults is the JSON object of the defaults of the arguments, or nothing.
// A default further inside is refused: nothing would fill it in.
func argumentDefaults(schema *jsonschema.Schema) (json.RawMessage, error) {
	defaults := make(map[string]json.RawMessage)
	for name, property := range schema.Properties {
		if hasDefaultInside(property) {
			return nil, fmt.Errorf("the argument %q has a default inside, and only arguments themselves have one", name)
		}
		if property.Default != nil {
			defaults[name] = property.Default
		}
	}
	if len(defaults) == 0 {
		return nil, nil
	}
	return json.Marshal(defaults)
}

func hasDefaultInside(schema *jsonschema.Schema) bool {
	if schema == nil {
		return false
	}
	inside := []*jsonschema.Schema{schema.Items, schema.AdditionalProperties}
	for _, property := range schema.Properties {
		inside = append(inside, property)
	}
	for _, schema := range inside {
		if schema != nil && (schema.Default != nil || hasDefaultInside(schema)) {
			return true
		}
	}
	return false
}
