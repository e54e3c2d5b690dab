// Package failure says what went wrong with a request, in two languages: a named
// reason and a cause for the operator, and a safe sentence with a code for the
// client.
//
// Every part of the edge fails with an *Error. Answer is the one function that
// turns it into what the client reads. The reasons are a closed set: they are the
// values of a metric's label, and the table below gives each its JSON-RPC code,
// its HTTP status and its sentence.
//
// The cause never reaches the client. A frozen reason has one sentence whatever
// the detail, so that a client learns nothing from trying.
package failure

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/countersign-mcp/countersign/services/mcpedge/jsonrpc"
)

// Reason is why a request was not served. It is written as in metrics and logs.
type Reason string

// The reasons.
const (
	// Before the message is read.

	BodyTooLarge         Reason = "body_too_large"
	BodyTimeout          Reason = "body_timeout"
	BodyBroken           Reason = "body_broken"
	HostRefused          Reason = "host_refused"
	OriginRefused        Reason = "origin_refused"
	HTTPMethodRefused    Reason = "http_method_refused"
	UnsupportedMediaType Reason = "unsupported_media_type"
	UnsupportedEncoding  Reason = "unsupported_encoding"
	NotAcceptable        Reason = "not_acceptable"
	Unauthenticated      Reason = "unauthenticated"

	// The message itself.

	ParseError          Reason = "parse_error"
	TooDeep             Reason = "too_deep"
	InvalidRequest      Reason = "invalid_request"
	InvalidMetadata     Reason = "invalid_metadata"
	UnsupportedRevision Reason = "unsupported_revision"
	HeaderMismatch      Reason = "header_mismatch"
	UnknownMethod       Reason = "unknown_method"
	InvalidParams       Reason = "invalid_params"
	UnknownTarget       Reason = "unknown_target"
	ResourceNotFound    Reason = "resource_not_found"

	TooManySubscriptions Reason = "too_many_subscriptions"

	// Questions, answers, and what travels sealed.

	InvalidAnswer       Reason = "invalid_answer"
	RequestStateRefused Reason = "request_state_refused"
	CursorRefused       Reason = "cursor_refused"
	MissingCapability   Reason = "missing_capability"
	SealerUnavailable   Reason = "sealer_unavailable"
	SealerFailed        Reason = "sealer_failed"

	// The handler.

	HandlerUnavailable Reason = "handler_unavailable"
	HandlerTimeout     Reason = "handler_timeout"
	HandlerTooLarge    Reason = "handler_message_too_large"
	HandlerMalformed   Reason = "handler_malformed"
	HandlerFailed      Reason = "handler_failed"
	HandlerError       Reason = "handler_error"

	// The client went away; nobody reads the answer.

	Cancelled Reason = "cancelled"

	// A fault of the edge.

	Internal Reason = "internal"
)

// form is what the client reads for a reason.
type form struct {
	code     int
	status   int
	sentence string
	// frozen: the sentence stands alone, whatever the error's own message.
	frozen bool
	// retryAfter, if not zero, is what the client is told to wait.
	retryAfter time.Duration
	// alarming: it is no client's doing, and an operator should look.
	alarming bool
}

// forms holds a form for every reason.
//
// Where MCP fixes the HTTP status it stands here; every other error that a
// well-formed request can meet travels with status 200, because clients read a
// JSON-RPC body reliably only there.
var forms = map[Reason]form{
	BodyTooLarge:         {code: jsonrpc.CodeInvalidRequest, status: http.StatusRequestEntityTooLarge, sentence: "the request is too large"},
	BodyTimeout:          {code: jsonrpc.CodeInvalidRequest, status: http.StatusRequestTimeout, sentence: "the request's body did not arrive in time", frozen: true},
	BodyBroken:           {code: jsonrpc.CodeInvalidRequest, status: http.StatusBadRequest, sentence: "the request's body is not framed as HTTP demands", frozen: true},
	UnsupportedEncoding:  {code: jsonrpc.CodeInvalidRequest, status: http.StatusUnsupportedMediaType, sentence: "the body must not be encoded: send it without Content-Encoding", frozen: true},
	HostRefused:          {code: jsonrpc.CodeInvalidRequest, status: http.StatusForbidden, sentence: "the Host header is not allowed", frozen: true},
	OriginRefused:        {code: jsonrpc.CodeInvalidRequest, status: http.StatusForbidden, sentence: "the Origin header is not allowed", frozen: true},
	HTTPMethodRefused:    {code: jsonrpc.CodeInvalidRequest, status: http.StatusMethodNotAllowed, sentence: "only POST is served here", frozen: true},
	UnsupportedMediaType: {code: jsonrpc.CodeInvalidRequest, status: http.StatusUnsupportedMediaType, sentence: "the Content-Type must be application/json", frozen: true},
	NotAcceptable:        {code: jsonrpc.CodeInvalidRequest, status: http.StatusNotAcceptable, sentence: "the Accept header must list application/json and text/event-stream", frozen: true},
	Unauthenticated:      {code: jsonrpc.CodeInvalidRequest, status: http.StatusUnauthorized, sentence: "the caller is not authenticated", frozen: true},

	ParseError:           {code: jsonrpc.CodeParseError, status: http.StatusBadRequest, sentence: "the body is not strict JSON"},
	TooDeep:              {code: jsonrpc.CodeInvalidRequest, status: http.StatusBadRequest, sentence: "the body is nested too deeply"},
	InvalidRequest:       {code: jsonrpc.CodeInvalidRequest, status: http.StatusBadRequest, sentence: "the body is not a JSON-RPC request or notification"},
	InvalidMetadata:      {code: jsonrpc.CodeInvalidParams, status: http.StatusBadRequest, sentence: "the request's _meta is not valid"},
	UnsupportedRevision:  {code: jsonrpc.CodeUnsupportedProtocolVersion, status: http.StatusBadRequest, sentence: "unsupported protocol version"},
	HeaderMismatch:       {code: jsonrpc.CodeHeaderMismatch, status: http.StatusBadRequest, sentence: "header mismatch"},
	UnknownMethod:        {code: jsonrpc.CodeMethodNotFound, status: http.StatusNotFound, sentence: "method not found"},
	InvalidParams:        {code: jsonrpc.CodeInvalidParams, status: http.StatusOK, sentence: "the params are not valid"},
	UnknownTarget:        {code: jsonrpc.CodeInvalidParams, status: http.StatusOK, sentence: "there is nothing of that name"},
	TooManySubscriptions: {code: jsonrpc.CodeInternalError, status: http.StatusTooManyRequests, sentence: "there are too many subscriptions; end one first", frozen: true, retryAfter: time.Minute},
	ResourceNotFound:     {code: jsonrpc.CodeInvalidParams, status: http.StatusOK, sentence: "resource not found"},

	InvalidAnswer:       {code: jsonrpc.CodeInvalidParams, status: http.StatusOK, sentence: "an input response is not valid"},
	RequestStateRefused: {code: jsonrpc.CodeInvalidParams, status: http.StatusOK, sentence: "the requestState is not valid", frozen: true},
	CursorRefused:       {code: jsonrpc.CodeInvalidParams, status: http.StatusOK, sentence: "invalid cursor", frozen: true},
	MissingCapability:   {code: jsonrpc.CodeMissingClientCapability, status: http.StatusBadRequest, sentence: "a required client capability was not declared"},
	SealerUnavailable:   {code: jsonrpc.CodeInternalError, status: http.StatusServiceUnavailable, sentence: "this request cannot be served now; try again", frozen: true, retryAfter: time.Second, alarming: true},
	SealerFailed:        {code: jsonrpc.CodeInternalError, status: http.StatusOK, sentence: "internal error", frozen: true, alarming: true},

	HandlerUnavailable: {code: jsonrpc.CodeInternalError, status: http.StatusServiceUnavailable, sentence: "the service behind this request cannot be reached now; try again", retryAfter: time.Second, alarming: true},
	HandlerTimeout:     {code: jsonrpc.CodeInternalError, status: http.StatusOK, sentence: "the request took too long", frozen: true, alarming: true},
	HandlerTooLarge:    {code: jsonrpc.CodeInternalError, status: http.StatusOK, sentence: "the result is too large", frozen: true, alarming: true},
	HandlerMalformed:   {code: jsonrpc.CodeInternalError, status: http.StatusOK, sentence: "the service behind this request gave a malformed result", frozen: true, alarming: true},
	HandlerFailed:      {code: jsonrpc.CodeInternalError, status: http.StatusOK, sentence: "the service behind this request failed", frozen: true, alarming: true},
	HandlerError:       {code: jsonrpc.CodeInternalError, status: http.StatusOK, sentence: "the service behind this request reported an error"},

	Cancelled: {code: jsonrpc.CodeInternalError, status: 499, sentence: "the request was cancelled", frozen: true},

	Internal: {code: jsonrpc.CodeInternalError, status: http.StatusInternalServerError, sentence: "internal error", frozen: true, alarming: true},
}

// Reasons lists every reason.
func Reasons() []Reason {
	reasons := make([]Reason, 0, len(forms))
	for reason := range forms {
		reasons = append(reasons, reason)
	}
	return reasons
}

// Error is a request that was not served.
type Error struct {
	// Reason is the operator's name for it.
	Reason Reason
	// Message is a sentence for the client, in place of the reason's own; it must
	// hold no secret. Empty, or ignored where the reason is frozen.
	Message string
	// Data is the exact text of a JSON value for the client, or empty.
	Data []byte
	// Code is the JSON-RPC code where the reason leaves it open (HandlerError);
	// otherwise 0.
	Code int
	// Detail tells a reason's variants apart in logs: it is one of a closed set,
	// such as the sealer's name for a refusal. May be empty.
	Detail string
	// Cause is for the operator's log alone. May be nil.
	Cause error
}

// New returns an error whose client reads the reason's own sentence.
func New(reason Reason, cause error) *Error {
	return &Error{Reason: reason, Cause: cause}
}

// Newf returns an error whose client reads the sentence given.
func Newf(reason Reason, format string, arguments ...any) *Error {
	return &Error{Reason: reason, Message: fmt.Sprintf(format, arguments...)}
}

// Error is for the operator.
func (e *Error) Error() string {
	text := string(e.Reason)
	if e.Detail != "" {
		text += " (" + e.Detail + ")"
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Alarming says whether the failure is no client's doing, so that an operator
// should look.
func (e *Error) Alarming() bool { return forms[e.Reason].alarming }

// OfDecoding returns why a body is not a message: the error of jsonrpc.Decode.
func OfDecoding(err error) *Error {
	switch {
	case errors.Is(err, jsonrpc.ErrDepth):
		return New(TooDeep, err)
	case errors.Is(err, jsonrpc.ErrInvalid):
		return Newf(InvalidRequest, "%v", err)
	default:
		return New(ParseError, err)
	}
}

// Answer is what the client reads.
type Answer struct {
	// HTTPStatus is the status where nothing was sent yet.
	HTTPStatus int
	// RetryAfter, if not zero, is when the same request may succeed.
	RetryAfter time.Duration
	// Code, Message and Data are the members of the JSON-RPC error. Data is the
	// exact text of a JSON value, or empty.
	Code    int
	Message string
	Data    []byte
}

// Of returns the error as an *Error; one that is none is Internal.
func Of(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		if _, known := forms[e.Reason]; known {
			return e
		}
	}
	return New(Internal, err)
}

// AnswerTo turns an error into what the client reads.
func AnswerTo(err error) Answer {
	e := Of(err)
	form := forms[e.Reason]
	answer := Answer{HTTPStatus: form.status, RetryAfter: form.retryAfter, Code: form.code, Message: form.sentence}
	if form.frozen {
		return answer
	}
	if e.Message != "" {
		answer.Message = e.Message
	}
	if e.Code != 0 {
		answer.Code = e.Code
	}
	answer.Data = e.Data
	return answer
}
