// Package wire sends one MCP request of revision 2026-07-28 over Streamable HTTP
// and returns what the server answered, byte for byte.
//
// The problem. The official Go SDK has a client, and this program was meant to
// stand on it. Tried against a server that says difficult things, version 1.8.0
// of it gave back 9007199254740992 for 9007199254740993 and 1.1 for 1.10,
// because foreign JSON is decoded into float64; passed on a result of an unknown
// resultType, which the revision calls invalid; took an input_required reply
// with nothing but a requestState for the final result; dropped the JSON-RPC
// error and the Retry-After of a 503; and answers the asks of a round in
// parallel, which one terminal cannot.
//
// The mechanism. Each call is one POST with a new id, the request's metadata in
// `_meta` and mirrored in headers, answered by a JSON object or by a stream of
// server-sent events. Members that belong to somebody else stay JSON text from
// end to end. A 503 that says when to come back is tried again, a few times and
// within a bound. Cancelling the context closes the response, and that is how a
// server learns of it.
//
// The limit. This speaks one revision: a server that knows only revisions with
// an `initialize` handshake is an error that says so. Replies with duplicate
// member names or invalid UTF-8 are refused. A stream that breaks is not resumed,
// because the revision has no way to, and the request is not sent again, because
// nobody knows how far the server got. Redirects are not followed: the headers
// may hold credentials for the one server that was named.
package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Revision is the protocol revision that this package speaks.
const Revision = "2026-07-28"

// maxMessageBytes bounds one reply or one event. A server that sends more has
// gone wrong, or means harm.
const maxMessageBytes = 64 << 20

// Implementation names a program in its own words.
type Implementation struct {
	// Name is the program's name.
	Name string `json:"name"`
	// Version is its version.
	Version string `json:"version"`
}

// Client sends requests to one MCP endpoint. Its methods may be called at the
// same time; its fields must not change once the first has been.
type Client struct {
	// Endpoint is the URL of the MCP endpoint.
	Endpoint string
	// Header is sent with every request. It must not name a header of the
	// protocol; see [Reserved].
	Header http.Header
	// Info says who is calling.
	Info Implementation
	// Capabilities is the ClientCapabilities object that goes with every request,
	// as JSON text.
	Capabilities jsontext.Value
	// LogLevel is the lowest level of log messages wanted, or empty for none.
	LogLevel string
	// Timeout bounds one exchange, from the request to the result. Zero is no
	// bound.
	Timeout time.Duration
	// Retry says how often to come back to a server that asked for it.
	Retry Retry

	lastID atomic.Int64
	http   *http.Client
}

// NewClient returns a client of the endpoint. The caller sets the other fields
// before the first call and ends with Close.
func NewClient(endpoint string) *Client {
	transport, ok := http.DefaultTransport.(*http.Transport)
	if ok {
		transport = transport.Clone()
	} else {
		transport = &http.Transport{Proxy: http.ProxyFromEnvironment}
	}
	return &Client{
		Endpoint:     endpoint,
		Capabilities: jsontext.Value(`{}`),
		http: &http.Client{
			Transport: transport,
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			},
		},
	}
}

// Close closes the connections that are idle.
func (c *Client) Close() {
	c.http.CloseIdleConnections()
}

// Request is one request of a method.
type Request struct {
	// Method is the JSON-RPC method.
	Method string
	// Name is the tool, the prompt or the resource's URI that the method is
	// applied to, for the methods that have one. It is mirrored in Mcp-Name.
	Name string
	// Params holds the members of the parameters except `_meta`.
	Params map[string]jsontext.Value
	// Mirrored holds the arguments that the tool wants as headers.
	Mirrored []MirroredArgument
	// Progress says whether to ask for progress notifications.
	Progress bool
	// Unbounded lifts the client's timeout, for a stream that stays open.
	Unbounded bool
	// Notify is called with each notification that comes before the result, in
	// order and never at the same time. It may be nil.
	Notify func(Notification)
}

// Notification is what a server says before its result.
type Notification struct {
	// Method is the notification's method.
	Method string
	// Params is the parameters object as exact text, or empty.
	Params jsontext.Value
}

// Result is the result of a request.
type Result struct {
	// InputRequired says that the server stopped to ask something. Only
	// tools/call, prompts/get and resources/read can be answered like this.
	InputRequired bool
	// JSON is the result object exactly as the server wrote it.
	JSON jsontext.Value
}

// Call sends a request and waits for its result. Errors are [*RPCError],
// [*HTTPError], [*TimeoutError], [*ProtocolError], those of the context and
// those of the network.
func (c *Client) Call(ctx context.Context, request Request) (Result, error) {
	for attempt := 1; ; attempt++ {
		result, comeBack, err := c.exchange(ctx, request)
		if err == nil || comeBack == nil {
			return result, err
		}
		if waitErr := c.Retry.wait(ctx, attempt, *comeBack); waitErr != nil {
			return Result{}, errors.Join(waitErr, err)
		}
	}
}

// exchange is one POST and what came back. Where the server named a time at
// which to try again, that time comes with the error.
func (c *Client) exchange(ctx context.Context, request Request) (Result, *time.Duration, error) {
	if c.Timeout > 0 && !request.Unbounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.Timeout, &TimeoutError{After: c.Timeout})
		defer cancel()
	}
	id := c.lastID.Add(1)
	httpRequest, err := c.post(ctx, id, request)
	if err != nil {
		return Result{}, nil, err
	}
	response, err := c.http.Do(httpRequest)
	if err != nil {
		return Result{}, nil, causeOf(ctx, fmt.Errorf("send %s: %w", request.Method, err))
	}
	defer func() { _ = response.Body.Close() }()

	result, err := receive(response, id, request)
	if err == nil {
		return result, nil, nil
	}
	return Result{}, comeBackIn(response), causeOf(ctx, err)
}

// post builds the HTTP request.
func (c *Client) post(ctx context.Context, id int64, request Request) (*http.Request, error) {
	body, err := c.body(id, request)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", request.Method, err)
	}
	httpRequest, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make a request for %q: %w", c.Endpoint, err)
	}
	for name, values := range c.Header {
		httpRequest.Header[name] = append([]string(nil), values...)
	}
	httpRequest.Header.Set("Content-Type", "application/json")
	httpRequest.Header.Set("Accept", "application/json, text/event-stream")
	httpRequest.Header.Set("Mcp-Protocol-Version", Revision)
	httpRequest.Header.Set("Mcp-Method", request.Method)
	if request.Name != "" {
		httpRequest.Header.Set("Mcp-Name", EncodeHeaderValue(request.Name))
	}
	for _, argument := range request.Mirrored {
		httpRequest.Header.Set("Mcp-Param-"+argument.Header, EncodeHeaderValue(argument.Value))
	}
	return httpRequest, nil
}

// body encodes the JSON-RPC request.
func (c *Client) body(id int64, request Request) ([]byte, error) {
	meta := map[string]any{
		"io.modelcontextprotocol/protocolVersion":    Revision,
		"io.modelcontextprotocol/clientInfo":         c.Info,
		"io.modelcontextprotocol/clientCapabilities": c.Capabilities,
	}
	if c.LogLevel != "" {
		meta["io.modelcontextprotocol/logLevel"] = c.LogLevel
	}
	if request.Progress {
		meta["progressToken"] = id
	}
	params := map[string]any{"_meta": meta}
	for name, value := range request.Params {
		params[name] = value
	}
	return json.Marshal(struct {
		JSONRPC string         `json:"jsonrpc"`
		ID      int64          `json:"id"`
		Method  string         `json:"method"`
		Params  map[string]any `json:"params"`
	}{"2.0", id, request.Method, params}, json.Deterministic(true))
}

// receive reads the HTTP response up to the result.
func receive(response *http.Response, id int64, request Request) (Result, error) {
	mediaType, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil {
		mediaType = ""
	}
	switch {
	case mediaType == "text/event-stream" && response.StatusCode == http.StatusOK:
		return receiveEvents(response.Body, id, request)
	case mediaType == "application/json":
		return receiveObject(response, id, request)
	default:
		return Result{}, httpError(response, nil)
	}
}

// receiveObject reads a reply that is one JSON object.
func receiveObject(response *http.Response, id int64, request Request) (Result, error) {
	body, err := io.ReadAll(io.LimitReader(response.Body, maxMessageBytes+1))
	if err != nil {
		return Result{}, fmt.Errorf("read the reply to %s: %w", request.Method, err)
	}
	if len(body) > maxMessageBytes {
		return Result{}, protocolErrorf("the reply is longer than %d bytes", maxMessageBytes)
	}
	received, err := decode(body)
	if err != nil || received.isNotification() {
		if response.StatusCode != http.StatusOK {
			return Result{}, httpError(response, body)
		}
		if err == nil {
			err = protocolErrorf("the reply is a notification, not a response")
		}
		return Result{}, err
	}
	result, err := received.resultOf(id, request.Method)
	if err == nil && response.StatusCode != http.StatusOK {
		return Result{}, protocolErrorf("the server sent a result with HTTP status %d", response.StatusCode)
	}
	return result, err
}

// receiveEvents reads a reply that is a stream of events.
func receiveEvents(body io.Reader, id int64, request Request) (Result, error) {
	events := newEventReader(body)
	for {
		data, err := events.next()
		if errors.Is(err, io.EOF) {
			return Result{}, protocolErrorf("the response stream ended before the result of %s came", request.Method)
		}
		if err != nil {
			return Result{}, fmt.Errorf("read the response stream of %s: %w", request.Method, err)
		}
		received, err := decode(data)
		if err != nil {
			return Result{}, err
		}
		if !received.isNotification() {
			return received.resultOf(id, request.Method)
		}
		if request.Notify != nil && received.concerns(id) {
			request.Notify(Notification{Method: *received.Method, Params: received.Params})
		}
	}
}

// concerns is false for progress on a token that this request did not give.
func (m *message) concerns(id int64) bool {
	if *m.Method != "notifications/progress" {
		return true
	}
	var params struct {
		Token jsontext.Value `json:"progressToken"`
	}
	if err := json.Unmarshal(m.Params, &params); err != nil {
		return false
	}
	return string(params.Token) == strconv.FormatInt(id, 10)
}
