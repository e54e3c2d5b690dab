package ask

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Form is a form that a server wants filled in.
type Form struct {
	// Message says why.
	Message string
	// Fields are the form's fields in the server's order.
	Fields []*Field

	schema *jsonschema.Schema
}

// Field is one field of a form.
type Field struct {
	// Name is the member that the value becomes.
	Name string
	// Title is a name for display; empty where there is none.
	Title string
	// Description says what to fill in; it may be empty.
	Description string
	// Kind says what the value is.
	Kind Kind
	// Required says that the form is not complete without it.
	Required bool
	// Default is the value to start from as JSON text, or empty.
	Default jsontext.Value
	// Format is the format of a text, such as `email`, or empty.
	Format string
	// Choices are the values of a Choice or a Choices field.
	Choices []Choice
	// Limits says in words what the schema demands beyond the kind; it may be
	// empty.
	Limits string

	schema *jsonschema.Schema
}

// Kind is what a field's value is.
type Kind int

// The kinds of field.
const (
	// Text is a string.
	Text Kind = iota
	// Number is a number.
	Number
	// Integer is a number without a fraction.
	Integer
	// Boolean is yes or no.
	Boolean
	// OneOf is one of the choices.
	OneOf
	// SomeOf is any of the choices.
	SomeOf
	// JSON is something else, written as JSON.
	JSON
)

// Choice is one value that a field can have.
type Choice struct {
	// Value is the value sent.
	Value string
	// Title is what the user reads.
	Title string
}

// property is a property of a requested schema, in any of the revision's forms.
type property struct {
	Type        jsontext.Value `json:"type"`
	Title       string         `json:"title"`
	Description string         `json:"description"`
	Default     jsontext.Value `json:"default"`
	Format      string         `json:"format"`
	MinLength   jsontext.Value `json:"minLength"`
	MaxLength   jsontext.Value `json:"maxLength"`
	Minimum     jsontext.Value `json:"minimum"`
	Maximum     jsontext.Value `json:"maximum"`
	MinItems    jsontext.Value `json:"minItems"`
	MaxItems    jsontext.Value `json:"maxItems"`
	enumeration
	Items enumeration `json:"items"`
}

// enumeration is how a schema lists values: bare, with titles, or with the older
// enumNames.
type enumeration struct {
	Enum      []jsontext.Value `json:"enum"`
	EnumNames []string         `json:"enumNames"`
	OneOf     []titledValue    `json:"oneOf"`
	AnyOf     []titledValue    `json:"anyOf"`
}

// titledValue is a value with a title.
type titledValue struct {
	Const jsontext.Value `json:"const"`
	Title string         `json:"title"`
}

// newForm reads a form. The revision wants a schema in every one; servers that ask
// a bare question leave it out, and are understood.
func newForm(text string, requestedSchema jsontext.Value) (*Form, error) {
	if len(requestedSchema) == 0 {
		requestedSchema = jsontext.Value(`{"type":"object"}`)
	}
	var schema struct {
		Properties jsontext.Value `json:"properties"`
		Required   []string       `json:"required"`
	}
	if err := json.Unmarshal(requestedSchema, &schema); err != nil {
		return nil, fmt.Errorf("read the requestedSchema: %w", err)
	}
	compiled, err := compile(requestedSchema)
	if err != nil {
		return nil, fmt.Errorf("use the requestedSchema: %w", err)
	}
	form := &Form{Message: text, schema: compiled}
	if len(schema.Properties) == 0 {
		return form, nil
	}
	properties, err := orderedMembers(schema.Properties)
	if err != nil {
		return nil, fmt.Errorf("read the properties of the requestedSchema: %w", err)
	}
	required := map[string]bool{}
	for _, name := range schema.Required {
		required[name] = true
	}
	for _, member := range properties {
		field, err := newField(member, required[member.name])
		if err != nil {
			return nil, fmt.Errorf("read the property %q: %w", member.name, err)
		}
		field.schema = compiled.Properties[member.name]
		form.Fields = append(form.Fields, field)
	}
	return form, nil
}

// newField reads one property of a requested schema.
func newField(member member, required bool) (*Field, error) {
	var schema property
	if err := json.Unmarshal(member.value, &schema); err != nil {
		return nil, err
	}
	field := &Field{
		Name:        member.name,
		Title:       schema.Title,
		Description: schema.Description,
		Required:    required,
		Default:     schema.Default,
		Format:      schema.Format,
	}
	one, some := schema.choices(), schema.Items.choices()
	switch string(schema.Type) {
	case `"string"`:
		field.Kind, field.Limits = Text, limits(schema.MinLength, schema.MaxLength, "characters")
		if len(one) > 0 {
			field.Kind, field.Choices = OneOf, one
		}
	case `"number"`:
		field.Kind, field.Limits = Number, limits(schema.Minimum, schema.Maximum, "")
	case `"integer"`:
		field.Kind, field.Limits = Integer, limits(schema.Minimum, schema.Maximum, "")
	case `"boolean"`:
		field.Kind = Boolean
	case `"array"`:
		field.Kind, field.Limits = JSON, limits(schema.MinItems, schema.MaxItems, "of them")
		if len(some) > 0 {
			field.Kind, field.Choices = SomeOf, some
		}
	default:
		field.Kind = JSON
	}
	return field, nil
}

// choices reads the values of an enumeration, or none when one of them is not a
// string.
func (e enumeration) choices() []Choice {
	titled := e.OneOf
	if len(titled) == 0 {
		titled = e.AnyOf
	}
	if len(titled) == 0 {
		for i, value := range e.Enum {
			name := ""
			if i < len(e.EnumNames) {
				name = e.EnumNames[i]
			}
			titled = append(titled, titledValue{Const: value, Title: name})
		}
	}
	var choices []Choice
	for _, entry := range titled {
		var value string
		if entry.Const.Kind() != '"' || json.Unmarshal(entry.Const, &value) != nil {
			return nil
		}
		choice := Choice{Value: value, Title: entry.Title}
		if choice.Title == "" {
			choice.Title = value
		}
		choices = append(choices, choice)
	}
	return choices
}

// limits says in words how large or long a value may be.
func limits(least, most jsontext.Value, unit string) string {
	text := ""
	switch {
	case len(least) > 0 && len(most) > 0:
		text = fmt.Sprintf("from %s to %s", least, most)
	case len(least) > 0:
		text = fmt.Sprintf("at least %s", least)
	case len(most) > 0:
		text = fmt.Sprintf("at most %s", most)
	}
	if text != "" && unit != "" {
		text += " " + unit
	}
	return text
}

// Check says why a filled-in form would be refused.
func (f *Form) Check(content jsontext.Value) error {
	return check(f.schema, content)
}

// Check says why a value of the field would be refused.
func (f *Field) Check(value jsontext.Value) error {
	if f.schema == nil {
		return nil
	}
	return check(f.schema, value)
}

// Defaults fills a form with nothing but its defaults.
func (f *Form) Defaults() jsontext.Value {
	values := map[string]jsontext.Value{}
	for _, field := range f.Fields {
		if len(field.Default) > 0 {
			values[field.Name] = field.Default
		}
	}
	return f.Content(values)
}

// Content writes a form's values as an object, in the order of the fields.
func (f *Form) Content(values map[string]jsontext.Value) jsontext.Value {
	var members [][]byte
	for _, field := range f.Fields {
		if value, ok := values[field.Name]; ok {
			members = append(members, append(append(quote(field.Name), ':'), value...))
		}
	}
	object := append([]byte{'{'}, bytes.Join(members, []byte{','})...)
	return jsontext.Value(append(object, '}'))
}

// quote writes a text as a JSON string. A text from a terminal may hold invalid
// UTF-8, which becomes the replacement character.
func quote(text string) jsontext.Value {
	quoted, err := jsontext.AppendQuote(nil, text)
	if err != nil && len(quoted) == 0 {
		return jsontext.Value(`""`)
	}
	return quoted
}

// compile prepares a schema that came from a server. It loads nothing.
func compile(schema jsontext.Value) (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	const name = "requested-schema.json"
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	compiler.UseLoader(refusingLoader{})
	if err := compiler.AddResource(name, document); err != nil {
		return nil, err
	}
	return compiler.Compile(name)
}

// refusingLoader loads no schema from anywhere. Without it a server could have
// local files read.
type refusingLoader struct{}

// Load refuses.
func (refusingLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("it refers to %q, and nothing is loaded because a server says so", url)
}

// check validates a value and says in a sentence what is wrong with it.
func check(schema *jsonschema.Schema, value jsontext.Value) error {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return fmt.Errorf("it is not JSON: %w", err)
	}
	err = schema.Validate(document)
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	for len(invalid.Causes) > 0 {
		invalid = invalid.Causes[0]
	}
	reason := invalid.ErrorKind.LocalizedString(message.NewPrinter(language.English))
	if len(invalid.InstanceLocation) > 0 {
		return fmt.Errorf("%s: %s", invalid.InstanceLocation[0], reason)
	}
	return errors.New(reason)
}
