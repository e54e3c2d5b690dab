package ask

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Parse turns what a person typed into the field's value and checks it. Numbers
// keep their digits.
func (f *Field) Parse(typed string) (jsontext.Value, error) {
	value, err := f.parse(typed)
	if err != nil {
		return nil, err
	}
	if err := f.Check(value); err != nil {
		return nil, err
	}
	return value, nil
}

// parse turns what a person typed into JSON of the field's kind.
func (f *Field) parse(typed string) (jsontext.Value, error) {
	trimmed := strings.TrimSpace(typed)
	switch f.Kind {
	case Text:
		if trimmed == `""` {
			return jsontext.Value(`""`), nil
		}
		return quote(typed), nil
	case Number, Integer:
		value := jsontext.Value(trimmed)
		if !value.IsValid() || value.Kind() != '0' {
			return nil, errors.New("a number is wanted, such as 12 or 3.5")
		}
		return value, nil
	case Boolean:
		yes, ok := YesOrNo(trimmed)
		if !ok {
			return nil, errors.New("yes or no is wanted")
		}
		return jsontext.Value(strconv.FormatBool(yes)), nil
	case OneOf:
		choice, err := f.choose(trimmed)
		if err != nil {
			return nil, err
		}
		return quote(choice), nil
	case SomeOf:
		return f.chooseSome(trimmed)
	default:
		value := jsontext.Value(trimmed)
		if !value.IsValid() {
			return nil, errors.New("a JSON value is wanted")
		}
		return value, nil
	}
}

// YesOrNo reads a yes or a no, in the ways people type it.
func YesOrNo(typed string) (yes, ok bool) {
	switch strings.ToLower(typed) {
	case "y", "yes", "true":
		return true, true
	case "n", "no", "false":
		return false, true
	default:
		return false, false
	}
}

// choose finds a choice by its number, its value or its title.
func (f *Field) choose(typed string) (string, error) {
	if number, err := strconv.Atoi(typed); err == nil && number >= 1 && number <= len(f.Choices) {
		return f.Choices[number-1].Value, nil
	}
	for _, choice := range f.Choices {
		if typed == choice.Value || strings.EqualFold(typed, choice.Title) {
			return choice.Value, nil
		}
	}
	return "", fmt.Errorf("%q is not among the choices; type a number from 1 to %d", typed, len(f.Choices))
}

// chooseSome finds choices by a list of numbers, values or titles.
func (f *Field) chooseSome(typed string) (jsontext.Value, error) {
	chosen := []string{}
	seen := map[string]bool{}
	if typed != "none" {
		for entry := range strings.SplitSeq(typed, ",") {
			value, err := f.choose(strings.TrimSpace(entry))
			if err != nil {
				return nil, err
			}
			if !seen[value] {
				seen[value] = true
				chosen = append(chosen, value)
			}
		}
	}
	return json.Marshal(chosen)
}

// Show writes a value the way a person would, for a form's default and review.
func (f *Field) Show(value jsontext.Value) string {
	switch {
	case f.Kind == Boolean && string(value) == "true":
		return "yes"
	case f.Kind == Boolean && string(value) == "false":
		return "no"
	case f.Kind == SomeOf:
		var values []string
		if json.Unmarshal(value, &values) != nil {
			return string(value)
		}
		for i := range values {
			values[i] = f.titleOf(values[i])
		}
		if len(values) == 0 {
			return "none"
		}
		return strings.Join(values, ", ")
	case value.Kind() == '"':
		var text string
		if json.Unmarshal(value, &text) != nil {
			return string(value)
		}
		if text == "" {
			return `""`
		}
		return f.titleOf(text)
	default:
		return string(value)
	}
}

// titleOf is the title of a choice, or the value itself.
func (f *Field) titleOf(value string) string {
	for _, choice := range f.Choices {
		if choice.Value == value {
			return choice.Title
		}
	}
	return value
}
