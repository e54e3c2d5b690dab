// Package question knows what may be asked of a client and what counts as an
// answer.
//
// A handler's question is checked before it is put: it has a key and a kind, its
// form is one that MCP lets a client show, its URL is one. An answer is checked
// before the handler sees it: it is of the question's kind, and an accepted form
// matches the schema that was shown. Neither the client nor the handler has to be
// believed.
//
// A question is pinned by its digest. The digest goes into the sealed request
// state with the key; when the answer comes, it counts only for a question of the
// same digest, so that nobody's "yes" is used for words they did not read. The
// digest has no key: the client has seen the question, and the seal keeps it from
// changing the digest.
package question

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	"github.com/countersign-mcp/countersign/services/mcpedge/canon"
	"github.com/countersign-mcp/countersign/services/mcpedge/jsonrpc"
	"github.com/countersign-mcp/countersign/services/mcpedge/render"
	"github.com/countersign-mcp/countersign/services/mcpedge/schema"
)

// maxKeyBytes is how long a key may be.
const maxKeyBytes = 256

// Question is a question that may be put.
type Question struct {
	// Key names it.
	Key string
	// Request is the exact text of the object the client reads.
	Request []byte
	// Digest pins it.
	Digest [sha256.Size]byte
	// Kind is the kind's name in metrics: elicit_form, elicit_url, sample or
	// list_roots.
	Kind string
	// Needs is what the client must have declared.
	Needs Capabilities

	question *handlerv1.Question
	form     *schema.Schema
}

// New checks a handler's question. The error is a sentence for the handler's
// author.
func New(question *handlerv1.Question) (*Question, error) {
	q := &Question{Key: question.GetKey(), question: question}
	if len(q.Key) < 1 || len(q.Key) > maxKeyBytes {
		return nil, fmt.Errorf("a question's key must have 1 to %d bytes", maxKeyBytes)
	}
	if err := q.inspect(); err != nil {
		return nil, fmt.Errorf("question %q: %w", q.Key, err)
	}
	var err error
	if q.Request, err = render.Question(question); err != nil {
		return nil, fmt.Errorf("question %q: %w", q.Key, err)
	}
	if q.Digest, err = canon.Digest(q.Request); err != nil {
		return nil, fmt.Errorf("question %q: %w", q.Key, err)
	}
	return q, nil
}

// inspect checks what the question asks and sets what depends on its kind.
func (q *Question) inspect() error {
	switch kind := q.question.GetKind().(type) {
	case *handlerv1.Question_ElicitForm:
		q.Kind, q.Needs = "elicit_form", Capabilities{ElicitationForm: true}
		if kind.ElicitForm.GetMessage() == "" {
			return errNoMessage
		}
		form, err := forms.compile(kind.ElicitForm.GetRequestedSchema())
		q.form = form
		return err
	case *handlerv1.Question_ElicitUrl:
		q.Kind, q.Needs = "elicit_url", Capabilities{ElicitationURL: true}
		if kind.ElicitUrl.GetMessage() == "" {
			return errNoMessage
		}
		target, err := url.Parse(kind.ElicitUrl.GetUrl())
		if err != nil || !target.IsAbs() || target.Host == "" || target.User != nil {
			return errors.New("the URL must be absolute, with a host and without user information")
		}
		return nil
	case *handlerv1.Question_Sample:
		q.Kind = "sample"
		needs, err := inspectSample(kind.Sample.GetParams())
		q.Needs = needs
		return err
	case *handlerv1.Question_ListRoots:
		q.Kind, q.Needs = "list_roots", Capabilities{Roots: true}
		return nil
	default:
		return errors.New("it has no kind")
	}
}

var errNoMessage = errors.New("the message is empty")

// inspectSample checks the parameters of `sampling/createMessage` as far as MCP
// demands them, and says what the client must have declared.
func inspectSample(params []byte) (Capabilities, error) {
	needs := Capabilities{Sampling: true}
	if !jsonrpc.Valid(params, '{') {
		return needs, errors.New("the params are not a strict JSON object")
	}
	var messages, maxTokens bool
	err := jsonrpc.EachMember(params, func(name string, value []byte) error {
		switch name {
		case "messages":
			messages = value[0] == '['
		case "maxTokens":
			maxTokens = value[0] >= '0' && value[0] <= '9'
		case "tools", "toolChoice":
			needs.SamplingTools = true
		case "includeContext":
			needs.SamplingContext = string(value) != `"none"`
		}
		return nil
	})
	if err != nil {
		return needs, fmt.Errorf("read the params: %w", err)
	}
	if !messages || !maxTokens {
		return needs, errors.New("the params need messages, an array, and maxTokens, a number")
	}
	return needs, nil
}
