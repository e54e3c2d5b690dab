// Package http is MCP's Streamable HTTP transport: one endpoint that takes a POST
// for each message.
//
// What can be refused without reading the body is refused first: the wrong method,
// a foreign Host or Origin (a page in the user's browser must not reach a server on
// the user's machine by DNS rebinding), a media type, a caller without a name. Then
// the body is read up to a limit, decoded strictly, and served.
//
// A reply is a JSON object. It becomes a stream of server-sent events when the
// handler reports progress or logs before it has finished: the first notification
// opens the stream, the reply ends it. Closing the connection cancels the request,
// and with it the handler's gRPC stream.
//
// The limit: streams cannot be resumed; the revision has no such thing. What is
// lost with a broken connection is the reply, and the client asks again.
package http

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/countersign-mcp/countersign/services/mcpedge/failure"
	"github.com/countersign-mcp/countersign/services/mcpedge/identity"
	"github.com/countersign-mcp/countersign/services/mcpedge/jsonrpc"
	"github.com/countersign-mcp/countersign/services/mcpedge/modern"
)

// readAhead is how much memory is set aside for a body before it arrives.
const readAhead = 64 << 10

// AnyHost in AllowedHosts allows every Host: for a server whose proxy in front has
// checked it.
const AnyHost = "*"

// Options are what a Handler needs.
type Options struct {
	// Server serves requests.
	Server *modern.Server
	// Principals establishes on whose behalf a request is made.
	Principals identity.Source
	// Logger logs what is refused here.
	Logger *slog.Logger
	// Refused counts what is refused before it reaches the server.
	Refused func(reason failure.Reason)
	// MaxBodyBytes bounds a body, MaxDepth its nesting.
	MaxBodyBytes int64
	MaxDepth     int
	// BodyTimeout bounds the time in which a body must arrive.
	BodyTimeout time.Duration
	// WriteTimeout bounds one write to a client. One that does not read in this time
	// has gone away, as far as this server can tell.
	WriteTimeout time.Duration
	// AllowedHosts are the host names, without port, that a Host header may have,
	// or AnyHost.
	AllowedHosts []string
	// AllowedOrigins are the origins (scheme, host and port) that an Origin header
	// may have beside those on an allowed host.
	AllowedOrigins []string
}

// Handler is the endpoint.
type Handler struct {
	Options
}

// NewHandler returns a Handler.
func NewHandler(options Options) *Handler { return &Handler{Options: options} }

// ServeHTTP serves one message.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	reply := &reply{w: w, timeout: h.WriteTimeout}
	principal, body, err := h.receive(w, r)
	if err != nil {
		h.refuse(r, reply, nil, err)
		return
	}
	message, err := jsonrpc.Decode(body, h.MaxDepth)
	if err != nil {
		h.refuse(r, reply, message.ID, failure.OfDecoding(err))
		return
	}
	if message.IsNotification() {
		// The revision defines none from client to server on this transport; one that
		// comes is accepted and has no effect.
		w.WriteHeader(http.StatusAccepted)
		return
	}
	result, err := h.Server.Serve(r.Context(), modern.Request{Message: message, Header: r.Header, Principal: principal}, reply)
	if err != nil {
		reply.fail(message.ID, err)
		return
	}
	reply.finish(http.StatusOK, jsonrpc.AppendResult(make([]byte, 0, len(result)+len(message.ID)+64), message.ID, result))
}

// receive checks what stands before the body, and reads it.
func (h *Handler) receive(w http.ResponseWriter, r *http.Request) (identity.Principal, []byte, error) {
	var nobody identity.Principal
	if !h.allowedHost(r.Host) {
		return nobody, nil, failure.New(failure.HostRefused, nil)
	}
	if !h.allowedOrigin(r.Header.Values("Origin")) {
		return nobody, nil, failure.New(failure.OriginRefused, nil)
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return nobody, nil, failure.New(failure.HTTPMethodRefused, nil)
	}
	if contentType := r.Header.Get("Content-Type"); contentType != "application/json" {
		if mediaType, _, err := mime.ParseMediaType(contentType); err != nil || mediaType != "application/json" {
			return nobody, nil, failure.New(failure.UnsupportedMediaType, err)
		}
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nobody, nil, failure.New(failure.UnsupportedEncoding, nil)
	}
	if accept := r.Header.Values("Accept"); !accepts(accept, "application/json") || !accepts(accept, "text/event-stream") {
		return nobody, nil, failure.New(failure.NotAcceptable, nil)
	}
	principal, err := h.Principals.Principal(r)
	if err != nil {
		return nobody, nil, failure.New(failure.Unauthenticated, err)
	}
	body, err := h.read(w, r)
	return principal, body, err
}

// read reads the body up to the limit.
func (h *Handler) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	tooLarge := failure.Newf(failure.BodyTooLarge, "the request is larger than %d bytes", h.MaxBodyBytes)
	if r.ContentLength > h.MaxBodyBytes {
		return nil, tooLarge
	}
	// The deadline is for the body alone. Left in place, it would end the server's
	// watch for a client that goes away, and with it a long request.
	controller := http.NewResponseController(w)
	if err := controller.SetReadDeadline(time.Now().Add(h.BodyTimeout)); err != nil {
		return nil, failure.New(failure.Internal, fmt.Errorf("set the deadline of the body: %w", err))
	}
	var body bytes.Buffer
	if r.ContentLength > 0 {
		// What a client announces is not what it sends: memory follows what arrived.
		body.Grow(int(min(r.ContentLength, readAhead)) + bytes.MinRead)
	}
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, h.MaxBodyBytes))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, tooLarge
	}
	if err == nil {
		err = controller.SetReadDeadline(time.Time{})
	}
	cause := fmt.Errorf("read the body: %w", err)
	switch {
	case err == nil:
		return body.Bytes(), nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, failure.New(failure.BodyTimeout, cause)
	case r.Context().Err() != nil || errors.Is(err, io.ErrUnexpectedEOF):
		return nil, failure.New(failure.Cancelled, cause)
	default:
		return nil, failure.New(failure.BodyBroken, cause)
	}
}

// refuse answers a message that does not reach the server.
func (h *Handler) refuse(r *http.Request, reply *reply, id jsonrpc.ID, err error) {
	e := failure.Of(err)
	h.Refused(e.Reason)
	h.Logger.LogAttrs(r.Context(), slog.LevelInfo, "message refused", slog.String("reason", string(e.Reason)))
	reply.fail(id, e)
}

// reply writes the answer to one request: a JSON object, or a stream of events
// from the first notification on.
type reply struct {
	w http.ResponseWriter
	// timeout bounds one write.
	timeout time.Duration

	mu sync.Mutex
	// streaming: the stream has begun.
	streaming bool
}

// Notify sends a notification as an event, and begins the stream with the first.
func (r *reply) Notify(method string, params []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.streaming {
		header := r.w.Header()
		header.Set("Content-Type", "text/event-stream")
		header.Set("Cache-Control", "no-cache, no-transform")
		// Proxies such as nginx would otherwise hold events back.
		header.Set("X-Accel-Buffering", "no")
		r.w.WriteHeader(http.StatusOK)
		r.streaming = true
	}
	return r.event(jsonrpc.AppendNotification(nil, method, params))
}

// KeepAlive sends a comment, if the stream has begun.
func (r *reply) KeepAlive() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.streaming {
		return nil
	}
	return r.write([]byte(":\n\n"))
}

// event writes one message as one event.
func (r *reply) event(message []byte) error {
	message = jsonrpc.OneLine(message)
	frame := make([]byte, 0, len(message)+len("event: message\ndata: \n\n"))
	frame = append(append(append(frame, "event: message\ndata: "...), message...), '\n', '\n')
	return r.write(frame)
}

// write writes an event and sees that it leaves.
func (r *reply) write(frame []byte) error {
	return r.within(func() error {
		if _, err := r.w.Write(frame); err != nil {
			return fmt.Errorf("write an event: %w", err)
		}
		if err := http.NewResponseController(r.w).Flush(); err != nil {
			return fmt.Errorf("flush an event: %w", err)
		}
		return nil
	})
}

// within runs a write within the timeout. The deadline is taken away again: the
// connection may serve other requests.
func (r *reply) within(write func() error) error {
	controller := http.NewResponseController(r.w)
	if err := controller.SetWriteDeadline(time.Now().Add(r.timeout)); err != nil {
		return fmt.Errorf("set the deadline of a write: %w", err)
	}
	if err := write(); err != nil {
		return err
	}
	return controller.SetWriteDeadline(time.Time{})
}

// finish writes the message that answers the request.
func (r *reply) finish(status int, message []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.streaming {
		// A client that has gone away does not read it, and nobody else waits.
		_ = r.event(message)
		return
	}
	r.w.Header().Set("Content-Type", "application/json")
	r.w.Header().Set("Content-Length", strconv.Itoa(len(message)))
	r.w.WriteHeader(status)
	_ = r.within(func() error {
		_, err := r.w.Write(message)
		return err
	})
}

// fail writes the error that answers the request.
func (r *reply) fail(id jsonrpc.ID, err error) {
	answer := failure.AnswerTo(err)
	r.mu.Lock()
	if !r.streaming && answer.RetryAfter > 0 {
		r.w.Header().Set("Retry-After", strconv.Itoa(int(answer.RetryAfter.Seconds())))
	}
	r.mu.Unlock()
	r.finish(answer.HTTPStatus, jsonrpc.AppendError(nil, id, answer.Code, answer.Message, answer.Data))
}
