package ask

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Action is what a user does with a form or a link.
type Action string

// The actions.
const (
	// Accept is a yes, and for a form its content.
	Accept Action = "accept"
	// Decline is a no.
	Decline Action = "decline"
	// Cancel closes it without choosing.
	Cancel Action = "cancel"
)

// ErrDeclined says that the user would not answer a sampling request. The revision
// has no way to tell a server so: the request is simply not sent again.
var ErrDeclined = errors.New("it was declined, and the request is not sent again")

// Response is the answer to a form or a link. Content is empty except for an
// accepted form.
func Response(action Action, content jsontext.Value) jsontext.Value {
	if len(content) == 0 {
		return jsontext.Value(`{"action":"` + string(action) + `"}`)
	}
	return jsontext.Value(`{"action":"` + string(action) + `","content":` + string(content) + `}`)
}

// SampledText is the answer to a sampling request that a person wrote.
func SampledText(text string) jsontext.Value {
	return jsontext.Value(`{"role":"assistant","content":{"type":"text","text":` + string(quote(text)) +
		`},"model":"human","stopReason":"endTurn"}`)
}

// Scripted reads an answer that was given on the command line. It may be the
// whole response, a form's content, a sampling reply as a JSON string, or one of
// the words accept, decline and cancel.
func (a *Ask) Scripted(given string) (jsontext.Value, error) {
	value := jsontext.Value(strings.TrimSpace(given))
	if word := Action(strings.Trim(string(value), `"`)); a.Sampling == nil && (word == Accept || word == Decline || word == Cancel) {
		return a.act(word)
	}
	if a.Sampling != nil && Action(value) == Decline {
		return nil, ErrDeclined
	}
	if !value.IsValid() {
		return nil, errors.New("it is neither JSON nor one of accept, decline and cancel")
	}
	switch {
	case a.Sampling != nil && value.Kind() == '"':
		var text string
		if err := json.Unmarshal(value, &text); err != nil {
			return nil, err
		}
		return SampledText(text), nil
	case value.Kind() != '{':
		return nil, errors.New("a JSON object is wanted")
	case a.Form != nil:
		return a.Form.scripted(value)
	case a.Link != nil:
		if !isResponse(value) {
			return nil, errors.New("an object with an action is wanted")
		}
	}
	return value, nil
}

// act answers with an action alone. Accepting a form sends its defaults.
func (a *Ask) act(action Action) (jsontext.Value, error) {
	if a.Form == nil || action != Accept {
		return Response(action, nil), nil
	}
	content := a.Form.Defaults()
	if err := a.Form.Check(content); err != nil {
		return nil, fmt.Errorf("the defaults do not fill in the form: %w", err)
	}
	return Response(Accept, content), nil
}

// scripted takes an object as a response if it looks like one, else as content.
func (f *Form) scripted(value jsontext.Value) (jsontext.Value, error) {
	content, response := value, Response(Accept, value)
	if isResponse(value) {
		var given struct {
			Action  Action         `json:"action"`
			Content jsontext.Value `json:"content"`
		}
		if err := json.Unmarshal(value, &given); err != nil {
			return nil, err
		}
		if given.Action != Accept {
			return value, nil
		}
		content, response = given.Content, value
		if len(content) == 0 {
			content = jsontext.Value(`{}`)
		}
	}
	if err := f.Check(content); err != nil {
		return nil, fmt.Errorf("it does not fill in the form: %w", err)
	}
	return response, nil
}

// isResponse tells a whole response from a form's content: its action is one of
// the three, and it has no members that a response has not.
func isResponse(object jsontext.Value) bool {
	var members map[string]jsontext.Value
	if json.Unmarshal(object, &members) != nil {
		return false
	}
	for name := range members {
		if name != "action" && name != "content" && name != "_meta" {
			return false
		}
	}
	switch string(members["action"]) {
	case `"accept"`, `"decline"`, `"cancel"`:
		return true
	default:
		return false
	}
}

// Example is what could be given on the command line for this ask.
func (a *Ask) Example() string {
	switch {
	case a.Sampling != nil:
		return `"the reply"`
	case a.Link != nil:
		return "accept"
	case a.Form != nil && len(a.Form.Fields) > 0:
		values := map[string]jsontext.Value{}
		for _, field := range a.Form.Fields {
			if field.Required || len(a.Form.Fields) == 1 {
				values[field.Name] = field.example()
			}
		}
		return string(a.Form.Content(values))
	case a.Form != nil:
		return "accept"
	default:
		return `{"roots":[]}`
	}
}

// example is some value of the field.
func (f *Field) example() jsontext.Value {
	switch {
	case len(f.Default) > 0:
		return f.Default
	case f.Kind == OneOf:
		return quote(f.Choices[0].Value)
	case f.Kind == SomeOf:
		return jsontext.Value("[" + string(quote(f.Choices[0].Value)) + "]")
	case f.Kind == Number || f.Kind == Integer:
		return jsontext.Value("1")
	case f.Kind == Boolean:
		return jsontext.Value("true")
	case f.Kind == Text:
		return jsontext.Value(`"…"`)
	default:
		return jsontext.Value("null")
	}
}
