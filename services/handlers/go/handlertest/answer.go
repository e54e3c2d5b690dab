package handlertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
)

// Answerer answers questions in the client's stead.
type Answerer interface {
	// Answer returns an answer to the question, or an error that fails the test.
	Answer(question *handlerv1.Question) (Answer, error)
}

// Answers is a table of answers by the key of the question. Nil answers nothing.
type Answers map[string]Answer

// Answer looks the question's key up.
func (a Answers) Answer(question *handlerv1.Question) (Answer, error) {
	answer, found := a[question.GetKey()]
	if !found {
		return Answer{}, fmt.Errorf("no answer to the question %q is given, only to %q",
			question.GetKey(), slices.Sorted(maps.Keys(a)))
	}
	return answer, nil
}

// AnswerFunc answers questions with a function. It must answer the same question in
// the same way each time.
type AnswerFunc func(question *handlerv1.Question) (Answer, error)

// Answer calls the function.
func (f AnswerFunc) Answer(question *handlerv1.Question) (Answer, error) { return f(question) }

// Always gives the same answer to whatever is asked, for example [Confirm].
func Always(answer Answer) Answerer {
	return AnswerFunc(func(*handlerv1.Question) (Answer, error) { return answer, nil })
}

// Answer is what a client does with a question.
type Answer struct {
	message *handlerv1.Answer
	refusal *handlerv1.AskRefused
}

// Accept fills in a form: content is a [json.RawMessage] or a value that
// becomes a JSON object. With nil it accepts a URL.
func Accept(content any) Answer {
	elicited := &handlerv1.Elicited{Action: handlerv1.ElicitAction_ELICIT_ACTION_ACCEPT}
	if content != nil {
		elicited.Content = encode(content)
	}
	return elicitedAnswer(elicited)
}

// Confirm ticks the box of a confirmation and accepts.
func Confirm() Answer { return Accept(map[string]bool{"confirm": true}) }

// Decline says no.
func Decline() Answer {
	return elicitedAnswer(&handlerv1.Elicited{Action: handlerv1.ElicitAction_ELICIT_ACTION_DECLINE})
}

// Cancel closes the question without choosing.
func Cancel() Answer {
	return elicitedAnswer(&handlerv1.Elicited{Action: handlerv1.ElicitAction_ELICIT_ACTION_CANCEL})
}

func elicitedAnswer(elicited *handlerv1.Elicited) Answer {
	return Answer{message: &handlerv1.Answer{Kind: &handlerv1.Answer_Elicited{Elicited: elicited}}}
}

// Sampled answers with a text of the model.
func Sampled(text string) Answer {
	return SampledResult(encode(map[string]any{
		"role": "assistant", "model": "model-1", "stopReason": "endTurn",
		"content": map[string]string{"type": "text", "text": text},
	}))
}

// SampledResult answers with a whole result of `sampling/createMessage`: JSON.
func SampledResult(result json.RawMessage) Answer {
	return Answer{message: &handlerv1.Answer{Kind: &handlerv1.Answer_Sampled{
		Sampled: &handlerv1.Sampled{Result: result},
	}}}
}

// Roots answers with these file: URIs.
func Roots(uris ...string) Answer {
	roots := new(handlerv1.Roots)
	for _, uri := range uris {
		roots.Roots = append(roots.Roots, &handlerv1.Root{Uri: uri})
	}
	return Answer{message: &handlerv1.Answer{Kind: &handlerv1.Answer_Roots{Roots: roots}}}
}

// Refuse has the edge refuse the ask that the question is in.
func Refuse(reason handlerv1.AskRefusedReason, message string) Answer {
	return Answer{refusal: &handlerv1.AskRefused{Reason: reason, Message: message}}
}

// check refuses an answer that an edge would not let through.
func (a Answer) check(question *handlerv1.Question) error {
	elicited := a.message.GetElicited()
	fits := false
	switch question.GetKind().(type) {
	case *handlerv1.Question_ElicitForm, *handlerv1.Question_ElicitUrl:
		fits = elicited != nil
	case *handlerv1.Question_Sample:
		fits = a.message.GetSampled() != nil
	case *handlerv1.Question_ListRoots:
		fits = a.message.GetRoots() != nil
	}
	if !fits {
		return fmt.Errorf("the answer to %q is of another kind than the question", question.GetKey())
	}
	form := question.GetElicitForm()
	if form == nil || elicited.GetAction() != handlerv1.ElicitAction_ELICIT_ACTION_ACCEPT {
		return nil
	}
	if err := matches(form.GetRequestedSchema(), elicited.GetContent()); err != nil {
		return fmt.Errorf("the answer to %q does not fit the form: %w", question.GetKey(), err)
	}
	return nil
}

func matches(schemaText, content []byte) error {
	var schema jsonschema.Schema
	if err := json.Unmarshal(schemaText, &schema); err != nil {
		return fmt.Errorf("read the schema: %w", err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return fmt.Errorf("resolve the schema: %w", err)
	}
	var instance map[string]any
	// An error besides is a number beyond a float64, which leaves a null.
	if err := json.Unmarshal(content, &instance); err != nil && instance == nil {
		return errors.New("it is not a JSON object")
	}
	return resolved.Validate(instance)
}
