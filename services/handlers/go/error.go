package handler

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
)

// ErrAttemptEnded says that this attempt is over: an ask was carried away to the
// client, or the client is gone. Return it, wrapped or not, and do nothing else.
// When the question has an answer the function runs again from the start.
var ErrAttemptEnded = errors.New("the attempt has ended")

// Error is a request that could not be served at all, a protocol error. For a
// tool that ran and failed return any other error instead: a model can read it
// and react.
type Error struct {
	kind    handlerv1.ErrorKind
	message string
	data    json.RawMessage
	code    int32
	cause   error // logged, never told
}

// Error returns the sentence that the client is told.
func (e *Error) Error() string { return e.message }

// WithData returns the error with more about it: any JSON value.
func (e *Error) WithData(data json.RawMessage) *Error {
	changed := *e
	changed.data = data
	return &changed
}

// InvalidParams says that the parameters make no sense to the handler: JSON-RPC
// -32602. The client reads the message, so it must not hold a secret.
func InvalidParams(format string, arguments ...any) *Error {
	return &Error{kind: handlerv1.ErrorKind_ERROR_KIND_INVALID_PARAMS, message: fmt.Sprintf(format, arguments...)}
}

// NotFound says that there is no such resource. The edge picks the code of the
// client's revision and adds the URI.
func NotFound() *Error {
	return &Error{kind: handlerv1.ErrorKind_ERROR_KIND_RESOURCE_NOT_FOUND, message: "resource not found"}
}

// Unavailable says that something the handler needs cannot be had now and that
// the same request may succeed later.
func Unavailable(format string, arguments ...any) *Error {
	return &Error{kind: handlerv1.ErrorKind_ERROR_KIND_UNAVAILABLE, message: fmt.Sprintf(format, arguments...)}
}

// ApplicationError is an error with a JSON-RPC code of the application's own. The
// code must lie outside -32768 to -32000, which JSON-RPC keeps for itself; inside
// it, ApplicationError panics.
func ApplicationError(code int32, format string, arguments ...any) *Error {
	if code >= -32768 && code <= -32000 {
		panic(fmt.Sprintf("handler: the code %d is reserved by JSON-RPC", code))
	}
	return &Error{
		kind: handlerv1.ErrorKind_ERROR_KIND_APPLICATION, message: fmt.Sprintf(format, arguments...), code: code,
	}
}

// internalError is what a client is told when a handler failed in a way that it
// did not put into words for the client. The cause is logged; nil when it has been.
func internalError(cause error) *Error {
	return &Error{kind: handlerv1.ErrorKind_ERROR_KIND_INTERNAL, message: "the handler failed", cause: cause}
}

func (e *Error) proto() *handlerv1.Error {
	return &handlerv1.Error{Kind: e.kind, Message: e.message, Data: e.data, ApplicationCode: e.code}
}

// UsageError is a mistake in the way a function uses the kit: a form that MCP does
// not allow, a key that is asked twice. It is logged where it happens. The client is
// told of an internal error and nothing more: a model can do nothing about it.
type UsageError struct {
	cause error
}

// Error says what the mistake is, for the handler's author.
func (e *UsageError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.cause }

// AskRefusedError says why a question cannot be put to the client. The attempt
// goes on: a function may do without the answer, or return the error.
type AskRefusedError struct {
	// Reason is the kind of reason.
	Reason AskRefusedReason
	// Message says what was wrong and what to change, for the handler's author.
	Message string
}

// Error returns the reason with its message.
func (e *AskRefusedError) Error() string {
	return fmt.Sprintf("the question was refused (%s): %s", e.Reason, e.Message)
}

// AskRefusedReason is why a question cannot be put to the client.
type AskRefusedReason handlerv1.AskRefusedReason

// The reasons.
const (
	// InvalidQuestion means that the question is not well formed.
	InvalidQuestion = AskRefusedReason(handlerv1.AskRefusedReason_ASK_REFUSED_REASON_INVALID_QUESTION)
	// StateTooLarge means that state, questions and answers together do not fit
	// into what a client is allowed to carry.
	StateTooLarge = AskRefusedReason(handlerv1.AskRefusedReason_ASK_REFUSED_REASON_STATE_TOO_LARGE)
	// TooManyRounds means that this request has had all its rounds.
	TooManyRounds = AskRefusedReason(handlerv1.AskRefusedReason_ASK_REFUSED_REASON_TOO_MANY_ROUNDS)
	// ChainExpired means that this request is too old for another round.
	ChainExpired = AskRefusedReason(handlerv1.AskRefusedReason_ASK_REFUSED_REASON_CHAIN_EXPIRED)
)

// String is the reason in words, for example `state too large`.
func (r AskRefusedReason) String() string {
	name := strings.TrimPrefix(handlerv1.AskRefusedReason(r).String(), "ASK_REFUSED_REASON_")
	return strings.ToLower(strings.ReplaceAll(name, "_", " "))
}
