package question

import (
	"errors"
	"fmt"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	"github.com/countersign-mcp/countersign/services/mcpedge/jsonrpc"
)

// Answer reads a client's response to the question: the exact text of a value
// that is part of a strictly decoded request. The error is a sentence for the
// client.
func (q *Question) Answer(response []byte) (*handlerv1.Answer, error) {
	if len(response) == 0 || response[0] != '{' {
		return nil, errors.New("it is not an object")
	}
	answer := &handlerv1.Answer{Key: q.Key}
	switch q.question.GetKind().(type) {
	case *handlerv1.Question_ElicitForm:
		elicited, err := q.readForm(response)
		answer.Kind = &handlerv1.Answer_Elicited{Elicited: elicited}
		return answer, err
	case *handlerv1.Question_ElicitUrl:
		action, _, err := readElicitResult(response)
		answer.Kind = &handlerv1.Answer_Elicited{Elicited: &handlerv1.Elicited{Action: action}}
		return answer, err
	case *handlerv1.Question_Sample:
		answer.Kind = &handlerv1.Answer_Sampled{Sampled: &handlerv1.Sampled{Result: response}}
		return answer, checkSampled(response)
	default: // ListRoots: New has seen that there is no other kind
		roots, err := readRoots(response)
		answer.Kind = &handlerv1.Answer_Roots{Roots: roots}
		return answer, err
	}
}

func (q *Question) readForm(response []byte) (*handlerv1.Elicited, error) {
	action, content, err := readElicitResult(response)
	if err != nil || action != handlerv1.ElicitAction_ELICIT_ACTION_ACCEPT {
		return &handlerv1.Elicited{Action: action}, err
	}
	if len(content) == 0 || content[0] != '{' {
		return nil, errors.New("an accepted form has no content object")
	}
	if err := q.form.Validate(content); err != nil {
		return nil, fmt.Errorf("the content does not match the requested schema: %w", err)
	}
	return &handlerv1.Elicited{Action: action, Content: content}, nil
}

// readElicitResult reads an ElicitResult.
func readElicitResult(response []byte) (handlerv1.ElicitAction, []byte, error) {
	var action handlerv1.ElicitAction
	var content []byte
	err := jsonrpc.EachMember(response, func(name string, value []byte) error {
		switch name {
		case "action":
			switch string(value) {
			case `"accept"`:
				action = handlerv1.ElicitAction_ELICIT_ACTION_ACCEPT
			case `"decline"`:
				action = handlerv1.ElicitAction_ELICIT_ACTION_DECLINE
			case `"cancel"`:
				action = handlerv1.ElicitAction_ELICIT_ACTION_CANCEL
			}
		case "content":
			content = value
		}
		return nil
	})
	if err == nil && action == handlerv1.ElicitAction_ELICIT_ACTION_UNSPECIFIED {
		err = errors.New(`its action is not "accept", "decline" or "cancel"`)
	}
	return action, content, err
}

// checkSampled checks that a response is a CreateMessageResult.
func checkSampled(response []byte) error {
	var role, content, model bool
	err := jsonrpc.EachMember(response, func(name string, value []byte) error {
		switch name {
		case "role":
			role = string(value) == `"assistant"` || string(value) == `"user"`
		case "content":
			content = value[0] == '{' || value[0] == '['
		case "model":
			model = value[0] == '"'
		}
		return nil
	})
	if err == nil && (!role || !content || !model) {
		err = errors.New("it is not the result of sampling/createMessage: it needs role, content and model")
	}
	return err
}

// readRoots reads a ListRootsResult.
func readRoots(response []byte) (*handlerv1.Roots, error) {
	roots := &handlerv1.Roots{}
	found := false
	err := jsonrpc.EachMember(response, func(name string, value []byte) error {
		if name != "roots" || value[0] != '[' {
			return nil
		}
		found = true
		return jsonrpc.EachElement(value, func(element []byte) error {
			root, err := readRoot(element)
			roots.Roots = append(roots.Roots, root)
			return err
		})
	})
	if err == nil && !found {
		err = errors.New("it is not the result of roots/list: it needs roots, an array")
	}
	return roots, err
}

func readRoot(element []byte) (*handlerv1.Root, error) {
	if element[0] != '{' {
		return nil, errors.New("a root is not an object")
	}
	root := &handlerv1.Root{}
	err := jsonrpc.EachMember(element, func(name string, value []byte) error {
		var err error
		switch name {
		case "uri":
			root.Uri, err = jsonrpc.Unquote(value)
		case "name":
			root.Name, err = jsonrpc.Unquote(value)
		case "_meta":
			root.Meta = value
		}
		return err
	})
	if err == nil && root.GetUri() == "" {
		err = errors.New("a root has no uri")
	}
	return root, err
}
