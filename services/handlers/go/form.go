package handler

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// Choice is one of the values that a field of a form may have.
type Choice struct {
	// Value is what the answer holds.
	Value string
	// Title is what the user reads; empty to show the value.
	Title string
}

type fieldChoices struct {
	field   string
	choices []Choice
}

func (f fieldChoices) applyToForm(settings *askSettings) error {
	if len(f.choices) == 0 {
		return fmt.Errorf("the field %q has no choices", f.field)
	}
	settings.choices = append(settings.choices, f)
	return nil
}

// Choices sets the values that the field with this JSON name may have. The field
// is a string, for one choice, or a list of strings, for several. Give the choices
// in the same order on every attempt.
func Choices(field string, choices ...Choice) FormOption { return fieldChoices{field, choices} }

// formSchema is the schema of a form of T as MCP allows it: a flat object of
// strings, numbers, booleans and enumerations.
func formSchema[T any](settings *askSettings) ([]byte, error) {
	if settings.schema != nil {
		if len(settings.choices) > 0 {
			return nil, errors.New("a form cannot have both FormSchema and Choices")
		}
		return settings.schema, nil
	}
	form := reflect.TypeFor[T]()
	if form.Kind() != reflect.Struct {
		return nil, fmt.Errorf("a form must be a struct, or have a FormSchema: %s is neither", form)
	}
	if len(settings.choices) > 0 {
		return inferForm(form, settings.choices)
	}
	// The type alone decides, so it is read once and not with every ask.
	if inferred, found := inferredForms.Load(form); found {
		return inferred.([]byte), nil
	}
	inferred, err := inferForm(form, nil)
	if err == nil {
		inferredForms.Store(form, inferred)
	}
	return inferred, err
}

// inferredForms holds the schemas of forms whose type alone decides, by type. A
// program has few such types.
var inferredForms sync.Map

// inferForm infers the schema of a form from a struct, with the choices given for
// its fields.
func inferForm(form reflect.Type, choices []fieldChoices) ([]byte, error) {
	unused := make(map[string][]Choice, len(choices))
	for _, given := range choices {
		unused[given.field] = given.choices
	}
	schema := &jsonschema.Schema{Type: "object", Properties: make(map[string]*jsonschema.Schema)}
	for _, field := range reflect.VisibleFields(form) {
		name, optional, skip := jsonName(field)
		if skip {
			continue
		}
		property, err := formField(field, unused[name])
		if err != nil {
			return nil, fmt.Errorf("the field %s.%s cannot be in a form: %w", form, field.Name, err)
		}
		delete(unused, name)
		schema.Properties[name] = property
		schema.PropertyOrder = append(schema.PropertyOrder, name)
		if !optional {
			schema.Required = append(schema.Required, name)
		}
	}
	for name := range unused {
		return nil, fmt.Errorf("there are choices for %q and %s has no such field", name, form)
	}
	if len(schema.Properties) == 0 {
		return nil, fmt.Errorf("%s has no field to fill in", form)
	}
	return json.Marshal(schema)
}

// jsonName is the name of a field in JSON, whether it may be left out, and
// whether it is not there at all.
func jsonName(field reflect.StructField) (name string, optional, skip bool) {
	if field.Anonymous || !field.IsExported() {
		return "", false, true
	}
	tag := field.Tag.Get("json")
	if tag == "-" {
		return "", false, true
	}
	name, settings, _ := strings.Cut(tag, ",")
	if name == "" {
		name = field.Name
	}
	for setting := range strings.SplitSeq(settings, ",") {
		optional = optional || setting == "omitempty" || setting == "omitzero"
	}
	return name, optional || field.Type.Kind() == reflect.Pointer, false
}

// formField is the schema of one field.
func formField(field reflect.StructField, choices []Choice) (*jsonschema.Schema, error) {
	if err := checkTags(field.Tag); err != nil {
		return nil, err
	}
	if choices == nil {
		var err error
		if choices, err = taggedChoices(field.Tag); err != nil {
			return nil, err
		}
	}
	schema, err := formType(field.Type, choices)
	if err != nil {
		return nil, err
	}
	schema.Title = field.Tag.Get("title")
	schema.Description = field.Tag.Get("jsonschema")
	return schema, constrain(schema, field.Tag, formFormats)
}

func taggedChoices(tag reflect.StructTag) ([]Choice, error) {
	values, given := tag.Lookup("enum")
	if _, titled := tag.Lookup("enumTitles"); titled && !given {
		return nil, errors.New("there is enumTitles without enum")
	}
	if !given {
		return nil, nil
	}
	var choices []Choice
	for value := range strings.SplitSeq(values, ",") {
		choices = append(choices, Choice{Value: value})
	}
	titles, given := tag.Lookup("enumTitles")
	if !given {
		return choices, nil
	}
	split := strings.Split(titles, ",")
	if len(split) != len(choices) {
		return nil, fmt.Errorf("there are %d choices and %d titles", len(choices), len(split))
	}
	for i := range choices {
		choices[i].Title = split[i]
	}
	return choices, nil
}

// formType is the schema that the Go type alone decides.
func formType(fieldType reflect.Type, choices []Choice) (*jsonschema.Schema, error) {
	if fieldType.Kind() == reflect.Pointer {
		fieldType = fieldType.Elem()
	}
	isList := fieldType.Kind() == reflect.Slice && fieldType.Elem().Kind() == reflect.String
	switch {
	case fieldType.Kind() == reflect.String:
		schema := &jsonschema.Schema{Type: "string"}
		if choices != nil {
			schema.Enum, schema.OneOf = enumerate(choices)
		}
		return schema, nil
	case isList && choices != nil:
		items := new(jsonschema.Schema)
		items.Enum, items.AnyOf = enumerate(choices)
		if items.AnyOf == nil {
			items.Type = "string"
		}
		return &jsonschema.Schema{Type: "array", Items: items}, nil
	case isList:
		return nil, errors.New("a list needs an enum tag or Choices: MCP has no free lists in forms")
	case choices != nil:
		return nil, fmt.Errorf("only strings and lists of strings have choices, not %s", fieldType)
	}
	switch fieldType.Kind() {
	case reflect.Bool:
		return &jsonschema.Schema{Type: "boolean"}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return &jsonschema.Schema{Type: "integer"}, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &jsonschema.Schema{Type: "integer", Minimum: new(0.0)}, nil
	case reflect.Float32, reflect.Float64:
		return &jsonschema.Schema{Type: "number"}, nil
	}
	if fieldType == reflect.TypeFor[time.Time]() {
		return &jsonschema.Schema{Type: "string", Format: "date-time"}, nil
	}
	return nil, fmt.Errorf("MCP forms hold strings, numbers, booleans and choices, not %s", fieldType)
}

// enumerate lists choices, as titled alternatives where any has a title.
func enumerate(choices []Choice) ([]any, []*jsonschema.Schema) {
	titled := slices.ContainsFunc(choices, func(choice Choice) bool { return choice.Title != "" })
	var values []any
	var alternatives []*jsonschema.Schema
	for _, choice := range choices {
		var value any = choice.Value
		if !titled {
			values = append(values, value)
			continue
		}
		title := choice.Title
		if title == "" {
			title = choice.Value
		}
		alternatives = append(alternatives, &jsonschema.Schema{Const: &value, Title: title})
	}
	return values, alternatives
}

// formFormats are the formats that MCP allows for a string.
var formFormats = []string{"email", "uri", "date", "date-time"}

// constrain adds what the tags say. Each tag belongs to some types only.
func constrain(schema *jsonschema.Schema, tag reflect.StructTag, formats []string) error {
	isText := jsonType(schema) == "string" && schema.Enum == nil && schema.OneOf == nil
	isNumber := jsonType(schema) == "number" || jsonType(schema) == "integer"
	isList := jsonType(schema) == "array"
	if format, given := tag.Lookup("format"); given {
		if !isText || !slices.Contains(formats, format) {
			return fmt.Errorf("format %q: there are %s, on a string", format, strings.Join(formats, ", "))
		}
		schema.Format = format
	}
	bounds := []struct {
		tag     string
		applies bool
		set     func(text string) error
	}{
		{"minLength", isText, setCount(&schema.MinLength)},
		{"maxLength", isText, setCount(&schema.MaxLength)},
		{"minItems", isList, setCount(&schema.MinItems)},
		{"maxItems", isList, setCount(&schema.MaxItems)},
		{"minimum", isNumber, setNumber(&schema.Minimum)},
		{"maximum", isNumber, setNumber(&schema.Maximum)},
	}
	for _, bound := range bounds {
		text, given := tag.Lookup(bound.tag)
		if !given {
			continue
		}
		if !bound.applies {
			return fmt.Errorf("%s does not apply to this type", bound.tag)
		}
		if err := bound.set(text); err != nil {
			return fmt.Errorf("%s %q: %w", bound.tag, text, err)
		}
	}
	if beyond(schema.MinLength, schema.MaxLength) || beyond(schema.MinItems, schema.MaxItems) ||
		beyond(schema.Minimum, schema.Maximum) {
		return errors.New("the lower bound is above the upper one")
	}
	if text, given := tag.Lookup("default"); given {
		var err error
		if schema.Default, err = defaultValue(schema, text); err != nil {
			return fmt.Errorf("default %q: %w", text, err)
		}
	}
	return nil
}

// beyond reports whether no value can lie between two bounds.
func beyond[N cmp.Ordered](low, high *N) bool { return low != nil && high != nil && *low > *high }

func setCount(target **int) func(string) error {
	return func(text string) error {
		count, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return errors.New("not a count")
		}
		*target = new(int(count))
		return nil
	}
}

func setNumber(target **float64) func(string) error {
	return func(text string) error {
		number, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(number) || math.IsInf(number, 0) {
			return errors.New("not a number")
		}
		*target = &number
		return nil
	}
}

// defaultValue is the JSON of a default: a list is separated by commas.
func defaultValue(schema *jsonschema.Schema, text string) (json.RawMessage, error) {
	var value any = text
	switch jsonType(schema) {
	case "array":
		value = strings.Split(text, ",")
	case "boolean", "integer", "number":
		value = json.RawMessage(text)
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, errors.New("not a value of the field's type")
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("resolve the field's schema: %w", err)
	}
	var instance any
	if err := json.Unmarshal(encoded, &instance); err != nil {
		return nil, errors.New("not a value of the field's type")
	}
	if err := resolved.Validate(instance); err != nil {
		return nil, errors.New("not a value that the field may have")
	}
	return encoded, nil
}
