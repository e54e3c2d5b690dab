// Package ask reads what a server asks of the client's user and checks what is
// answered.
//
// The problem. An input_required result holds any number of requests, each a
// form with a schema, a URL, a sampling request or a call for the roots. Whoever
// answers, a person or a script, needs them in an order, with the fields of a
// form typed, and must not send what the server is bound to refuse.
//
// The mechanism. [Parse] keeps the order in which the server wrote the asks.
// A form's fields become [Field] values that turn typed text into JSON; every
// value, and the form as a whole, is validated against the schema the server
// sent, with formats asserted and numbers compared by their exact value.
//
// The limit. A schema that refers to another document is refused: nothing is
// ever loaded, from a file or the network, because a server says so. A property
// that is none of the types the revision allows is asked for as JSON.
package ask

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Ask is one thing a server wants to know. Exactly one of Form, Link, Sampling
// and Roots is set.
type Ask struct {
	// Key is the server's name for it.
	Key string
	// Form is a form for the user.
	Form *Form
	// Link is a URL for the user to go to.
	Link *Link
	// Sampling is a request for what a model would say.
	Sampling *Sampling
	// Roots says that the client's roots are wanted.
	Roots bool
}

// Link is a URL that the user is asked to go to.
type Link struct {
	// Message says why.
	Message string `json:"message"`
	// URL is where to go.
	URL string `json:"url"`
}

// Sampling is a request for what a model would say.
type Sampling struct {
	// Messages are the conversation so far.
	Messages []SamplingMessage `json:"messages"`
	// SystemPrompt comes before it; it may be empty.
	SystemPrompt string `json:"systemPrompt"`
	// MaxTokens is the longest reply wanted, as the server wrote it.
	MaxTokens jsontext.Value `json:"maxTokens"`
}

// SamplingMessage is one message of a conversation.
type SamplingMessage struct {
	// Role is the side that says it.
	Role string `json:"role"`
	// Content is a content block, or a list of them, as exact text.
	Content jsontext.Value `json:"content"`
}

// Parse reads the inputRequests object of an input_required result. The asks come
// in the order in which the server wrote them.
func Parse(inputRequests jsontext.Value) ([]Ask, error) {
	members, err := orderedMembers(inputRequests)
	if err != nil {
		return nil, fmt.Errorf("read the inputRequests: %w", err)
	}
	asks := make([]Ask, 0, len(members))
	for _, member := range members {
		parsed, err := parse(member.name, member.value)
		if err != nil {
			return nil, fmt.Errorf("read the ask %q: %w", member.name, err)
		}
		asks = append(asks, parsed)
	}
	return asks, nil
}

// parse reads one ask.
func parse(key string, text jsontext.Value) (Ask, error) {
	var request struct {
		Method string         `json:"method"`
		Params jsontext.Value `json:"params"`
	}
	if err := json.Unmarshal(text, &request); err != nil {
		return Ask{}, err
	}
	switch request.Method {
	case "elicitation/create":
		return parseElicitation(key, request.Params)
	case "sampling/createMessage":
		var sampling Sampling
		if err := json.Unmarshal(request.Params, &sampling); err != nil {
			return Ask{}, err
		}
		return Ask{Key: key, Sampling: &sampling}, nil
	case "roots/list":
		return Ask{Key: key, Roots: true}, nil
	default:
		return Ask{}, fmt.Errorf("the method %q is none that a client answers", request.Method)
	}
}

// parseElicitation reads a form or a URL. A mode that is absent means a form.
func parseElicitation(key string, params jsontext.Value) (Ask, error) {
	var elicitation struct {
		Mode            string         `json:"mode"`
		Message         string         `json:"message"`
		URL             string         `json:"url"`
		RequestedSchema jsontext.Value `json:"requestedSchema"`
	}
	if err := json.Unmarshal(params, &elicitation); err != nil {
		return Ask{}, err
	}
	switch elicitation.Mode {
	case "", "form":
		form, err := newForm(elicitation.Message, elicitation.RequestedSchema)
		if err != nil {
			return Ask{}, err
		}
		return Ask{Key: key, Form: form}, nil
	case "url":
		if elicitation.URL == "" {
			return Ask{}, errors.New("it names no URL")
		}
		return Ask{Key: key, Link: &Link{Message: elicitation.Message, URL: elicitation.URL}}, nil
	default:
		return Ask{}, fmt.Errorf("the elicitation mode %q is unknown", elicitation.Mode)
	}
}

// member is a member of an object.
type member struct {
	name  string
	value jsontext.Value
}

// orderedMembers reads an object without losing the order of its members, which a
// form's author chose.
func orderedMembers(object jsontext.Value) ([]member, error) {
	decoder := jsontext.NewDecoder(bytes.NewReader(object))
	if decoder.PeekKind() != '{' {
		return nil, errors.New("it is not an object")
	}
	if _, err := decoder.ReadToken(); err != nil {
		return nil, err
	}
	var members []member
	for decoder.PeekKind() != '}' {
		name, err := decoder.ReadToken()
		if err != nil {
			return nil, err
		}
		text := name.String()
		value, err := decoder.ReadValue()
		if err != nil {
			return nil, err
		}
		members = append(members, member{name: text, value: value.Clone()})
	}
	if _, err := decoder.ReadToken(); err != nil {
		return nil, err
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the object")
	}
	return members, nil
}
