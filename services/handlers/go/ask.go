package handler

import (
	"encoding/json"
	"errors"
	"fmt"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
)

// Action is what a user did with a question. Declining and cancelling are
// answers, not errors: decide what they mean.
type Action string

// The actions.
const (
	// Accept: the user agreed. For a URL: agreed to go there, which does not say
	// that what happens there is done.
	Accept Action = "accept"
	// Decline: the user said no.
	Decline Action = "decline"
	// Cancel: the user closed the question without choosing.
	Cancel Action = "cancel"
)

func actionOf(elicited *handlerv1.Elicited) (Action, error) {
	switch elicited.GetAction() {
	case handlerv1.ElicitAction_ELICIT_ACTION_ACCEPT:
		return Accept, nil
	case handlerv1.ElicitAction_ELICIT_ACTION_DECLINE:
		return Decline, nil
	case handlerv1.ElicitAction_ELICIT_ACTION_CANCEL:
		return Cancel, nil
	default:
		return "", errors.New("the edge sent an answer without an action")
	}
}

// Answer is what a user did with a form.
type Answer[T any] struct {
	// Action is what the user did.
	Action Action
	// Content is what the user filled in; the zero value unless accepted.
	Content T
}

// Accepted reports whether the user filled the form in and agreed.
func (a Answer[T]) Accepted() bool { return a.Action == Accept }

// FormOption changes the question of a form.
type FormOption interface {
	applyToForm(settings *askSettings) error
}

// AskOption changes a question of any kind.
type AskOption interface {
	FormOption
	applyToAny()
}

type askSettings struct {
	key     string
	schema  json.RawMessage
	choices []fieldChoices
}

type keyOption string

func (k keyOption) applyToForm(settings *askSettings) error {
	if k == "" {
		return errors.New("the key of a question is empty")
	}
	settings.key = string(k)
	return nil
}

func (keyOption) applyToAny() {}

// Key names the question. The client sees the key, and the answer is found by it
// on the next attempt. Without it the key is derived from the question itself and
// from how many equal ones were asked before, for example `confirm-3f9a2c41`.
//
// A key may be asked once per attempt.
func Key(key string) AskOption { return keyOption(key) }

type schemaOption json.RawMessage

func (o schemaOption) applyToForm(settings *askSettings) error {
	if !isJSONObject(o) {
		return errors.New("the schema of a form must be a JSON object")
	}
	settings.schema = json.RawMessage(o)
	return nil
}

// FormSchema replaces the schema that is inferred from the form's type. MCP allows
// only an object of strings, numbers, booleans and enumerations, and the edge
// refuses anything else.
func FormSchema(schema json.RawMessage) FormOption { return schemaOption(schema) }

// Question is something to ask of the client, to be put with [Context.AskAll].
// Its answer is a T.
type Question[T any] struct {
	message *handlerv1.Question
	prefix  string // of a derived key
	read    func(*handlerv1.Answer) (T, error)
	err     error

	answered bool
	answer   T
}

// Answer is the client's answer. It panics unless AskAll has returned nil for
// this question.
func (q *Question[T]) Answer() T {
	if !q.answered {
		panic("handler: Answer called on a question that was not answered")
	}
	return q.answer
}

func (q *Question[T]) prepare() (*handlerv1.Question, string, error) {
	return q.message, q.prefix, q.err
}

func (q *Question[T]) accept(answer *handlerv1.Answer) error {
	value, err := q.read(answer)
	if err != nil {
		return fmt.Errorf("read the answer to %q: %w", q.message.GetKey(), err)
	}
	q.answer, q.answered = value, true
	return nil
}

// Asker is a [Question] of any type.
type Asker interface {
	prepare() (question *handlerv1.Question, prefix string, err error)
	accept(answer *handlerv1.Answer) error
}

// newQuestion applies what is common to all kinds of questions.
func newQuestion[T any, O FormOption](
	prefix string, options []O, build func(*askSettings, *handlerv1.Question) error,
	read func(*handlerv1.Answer) (T, error),
) *Question[T] {
	settings := new(askSettings)
	question := &Question[T]{message: new(handlerv1.Question), prefix: prefix, read: read}
	for _, option := range options {
		if question.err = option.applyToForm(settings); question.err != nil {
			return question
		}
	}
	question.message.Key = settings.key
	question.err = build(settings, question.message)
	return question
}

// FormQuestion asks the user to fill in a form; see [Elicit].
func FormQuestion[T any](message string, options ...FormOption) *Question[Answer[T]] {
	return newQuestion("form", options,
		func(settings *askSettings, question *handlerv1.Question) error {
			schema, err := formSchema[T](settings)
			if err != nil {
				return err
			}
			question.Kind = &handlerv1.Question_ElicitForm{
				ElicitForm: &handlerv1.ElicitForm{Message: message, RequestedSchema: schema},
			}
			return nil
		},
		func(answer *handlerv1.Answer) (Answer[T], error) {
			action, err := actionOf(answer.GetElicited())
			if err != nil || action != Accept {
				return Answer[T]{Action: action}, err
			}
			var content T
			if err := decodeJSON(answer.GetElicited().GetContent(), &content); err != nil {
				return Answer[T]{}, err
			}
			return Answer[T]{Action: Accept, Content: content}, nil
		})
}

// confirmation is the form of a confirmation.
type confirmation struct {
	Confirm bool `json:"confirm" title:"Confirm"`
}

// ConfirmQuestion asks the user to agree to something; see [Context.Confirm].
func ConfirmQuestion(message string, options ...AskOption) *Question[Action] {
	formOptions := make([]FormOption, len(options))
	for i, option := range options {
		formOptions[i] = option
	}
	form := FormQuestion[confirmation](message, formOptions...)
	return &Question[Action]{
		message: form.message, prefix: "confirm", err: form.err,
		read: func(answer *handlerv1.Answer) (Action, error) {
			read, err := form.read(answer)
			if err == nil && read.Action == Accept && !read.Content.Confirm {
				return Decline, nil
			}
			return read.Action, err
		},
	}
}

// URLQuestion sends the user to a URL; see [Context.ElicitURL].
func URLQuestion(message, url string, options ...AskOption) *Question[Action] {
	return newQuestion("url", options,
		func(_ *askSettings, question *handlerv1.Question) error {
			question.Kind = &handlerv1.Question_ElicitUrl{
				ElicitUrl: &handlerv1.ElicitUrl{Message: message, Url: url},
			}
			return nil
		},
		func(answer *handlerv1.Answer) (Action, error) { return actionOf(answer.GetElicited()) })
}

// RootsQuestion asks for the client's roots; see [Context.ListRoots].
func RootsQuestion(options ...AskOption) *Question[[]Root] {
	return newQuestion("roots", options,
		func(_ *askSettings, question *handlerv1.Question) error {
			question.Kind = &handlerv1.Question_ListRoots{ListRoots: new(handlerv1.ListRoots)}
			return nil
		},
		func(answer *handlerv1.Answer) ([]Root, error) {
			if answer.GetRoots() == nil {
				return nil, errors.New("the edge sent an answer of another kind")
			}
			roots := make([]Root, 0, len(answer.GetRoots().GetRoots()))
			for _, root := range answer.GetRoots().GetRoots() {
				roots = append(roots, Root{URI: root.GetUri(), Name: root.GetName(), Meta: root.GetMeta()})
			}
			return roots, nil
		})
}

// Root is a directory or file the client works on.
type Root struct {
	// URI is a file: URI.
	URI string `json:"uri"`
	// Name is for display; may be empty.
	Name string `json:"name,omitempty"`
	// Meta is vendor `_meta`: a JSON object, or empty.
	Meta json.RawMessage `json:"_meta,omitempty"`
}

// AskAll puts several questions to the client in one round and waits for all the
// answers; read them with [Question.Answer]. It is the way to ask in parallel:
// asks from several goroutines cost a round each.
func (c *Context) AskAll(questions ...Asker) error {
	if err := c.attempt.over(); err != nil {
		return err
	}
	if len(questions) == 0 {
		return c.attempt.misused(errors.New("ask: there is no question to ask"))
	}
	messages := make([]*handlerv1.Question, len(questions))
	for i, question := range questions {
		message, prefix, err := question.prepare()
		if err == nil {
			err = c.attempt.assignKey(message, prefix)
		}
		if err != nil {
			return c.attempt.misused(fmt.Errorf("ask: %w", err))
		}
		messages[i] = message
	}
	answers, err := c.attempt.exchange(messages)
	if err != nil {
		return err
	}
	for i, question := range questions {
		if err := question.accept(answers[i]); err != nil {
			return err
		}
	}
	return nil
}

func ask[T any](ctx *Context, question *Question[T]) (T, error) {
	if err := ctx.AskAll(question); err != nil {
		var zero T
		return zero, err
	}
	return question.Answer(), nil
}

// Confirm asks the user to agree to message: a form with one checkbox. A form that
// is sent with the box unticked is a [Decline].
func (c *Context) Confirm(message string, options ...AskOption) (Action, error) {
	return ask(c, ConfirmQuestion(message, options...))
}

// Elicit asks the user to fill in a form. The form is inferred from the struct T,
// one field an input:
//
//	type Contact struct {
//		Name  string   `json:"name" title:"Your name" minLength:"1"`
//		Email string   `json:"email,omitempty" format:"email"`
//		Age   int      `json:"age" jsonschema:"In years." minimum:"18"`
//		Size  string   `json:"size" enum:"S,M,L" enumTitles:"Small,Medium,Large" default:"M"`
//		Tags  []string `json:"tags" enum:"new,used" maxItems:"1"`
//	}
//
// MCP allows strings (with a format of email, uri, date or date-time), numbers,
// integers, booleans, and strings or string lists with a fixed set of choices. Any
// other field is a [*UsageError] on the first ask, and so is a tag that is misspelt
// or contradicts another. A field with omitempty or omitzero, or
// of a pointer type, may be left out. Choices known only at run time are given with
// [Choices]; a schema written by hand with [FormSchema].
//
// Never ask for a password or a key in a form; send the user to a URL instead.
func Elicit[T any](ctx *Context, message string, options ...FormOption) (Answer[T], error) {
	return ask(ctx, FormQuestion[T](message, options...))
}

// ElicitURL sends the user to a URL, for what must not pass through the client.
// [Accept] says that the user agreed to go there, not that anything was done. The
// URL must not carry the user's data or log the user in.
func (c *Context) ElicitURL(message, url string, options ...AskOption) (Action, error) {
	return ask(c, URLQuestion(message, url, options...))
}

// ListRoots asks the client for its roots. Deprecated by MCP 2026-07-28, and
// answered on every revision that has it.
func (c *Context) ListRoots(options ...AskOption) ([]Root, error) {
	return ask(c, RootsQuestion(options...))
}
