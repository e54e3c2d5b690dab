package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// The codes that the revision defines and this client acts on.
const (
	// CodeHeaderMismatch is the error of a request whose headers do not mirror its
	// body.
	CodeHeaderMismatch = -32020
	// CodeMissingClientCapability is the error of a request that needs a capability
	// which the client did not declare.
	CodeMissingClientCapability = -32021
	// CodeUnsupportedProtocolVersion is the error of a revision that the server
	// does not have.
	CodeUnsupportedProtocolVersion = -32022
)

// RPCError is an error that the server answered with.
type RPCError struct {
	// Code says which error.
	Code int64 `json:"code"`
	// Message is one sentence, the server's.
	Message string `json:"message"`
	// Data is more about it as exact JSON text, or empty.
	Data jsontext.Value `json:"data"`
}

// Error names the code and the server's sentence. The sentence is not to be
// trusted with a terminal.
func (e *RPCError) Error() string {
	if len(e.Data) == 0 {
		return fmt.Sprintf("the server answered with error %d: %s", e.Code, e.Message)
	}
	return fmt.Sprintf("the server answered with error %d: %s %s", e.Code, e.Message, e.Data)
}

// HTTPError is an HTTP response that is not an MCP reply.
type HTTPError struct {
	// Status is the HTTP status code.
	Status int
	// ContentType is the response's media type, as the server wrote it.
	ContentType string
	// Location is where a redirect would have led.
	Location string
	// Excerpt is the beginning of the body.
	Excerpt string
}

// Error says what came and, where the status has a likely cause, which.
func (e *HTTPError) Error() string {
	text := fmt.Sprintf("the server answered with HTTP status %d", e.Status)
	if name := http.StatusText(e.Status); name != "" {
		text += " " + name
	}
	switch {
	case e.Location != "":
		text += fmt.Sprintf(", a redirect to %q that is not followed", e.Location)
	case e.Status == http.StatusOK:
		text += fmt.Sprintf(" and the content type %q, which is no MCP reply", e.ContentType)
	case e.Status == http.StatusUnauthorized:
		text += "; it may want an Authorization header"
	case e.Status == http.StatusBadRequest || e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed:
		text += " and no JSON-RPC error: this is not an MCP endpoint, or it is one that does not speak revision " + Revision
	}
	if e.Excerpt != "" {
		text += ": " + e.Excerpt
	}
	return text
}

// httpError describes a response that is not an MCP reply. The body is what has
// been read of it, or nil.
func httpError(response *http.Response, body []byte) error {
	const excerptBytes = 200
	if body == nil {
		body, _ = io.ReadAll(io.LimitReader(response.Body, excerptBytes+1)) // an excerpt is a courtesy: what cannot be read is left out
	}
	excerpt := string(body)
	if len(excerpt) > excerptBytes {
		excerpt = excerpt[:excerptBytes] + "…"
	}
	return &HTTPError{
		Status:      response.StatusCode,
		ContentType: response.Header.Get("Content-Type"),
		Location:    response.Header.Get("Location"),
		Excerpt:     excerpt,
	}
}

// ProtocolError says that the server broke the protocol.
type ProtocolError struct {
	reason error
}

// Error says what the server did.
func (e *ProtocolError) Error() string { return e.reason.Error() }

// Unwrap returns the cause, where there is one.
func (e *ProtocolError) Unwrap() error { return errors.Unwrap(e.reason) }

// protocolErrorf makes a [*ProtocolError].
func protocolErrorf(format string, arguments ...any) error {
	return &ProtocolError{reason: fmt.Errorf(format, arguments...)}
}

// TimeoutError says that no result came in time.
type TimeoutError struct {
	// After is how long was waited.
	After time.Duration
}

// Error says how long was waited.
func (e *TimeoutError) Error() string {
	return fmt.Sprintf("no result came within %s", e.After)
}

// causeOf puts the reason why a context ended in the place of an error that
// followed from it.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
