// Package client sends single requests of the Model Context Protocol, revision
// 2026-07-28, and shows the replies as they came.
//
// The official clients hide what a test of a server must see: HTTP status and
// headers, the code and the bytes of an error, the request state. Here nothing is
// retried, answered or interpreted; a test says what to send. The limit: a reply
// with events is read to its end and only its last message is kept.
package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// Revision is the protocol revision that the requests declare.
const Revision = "2026-07-28"

// maxReplyBytes bounds what is read of one reply.
const maxReplyBytes = 16 << 20

// Client sends requests to one server.
type Client struct {
	// URL is the MCP endpoint.
	URL string
	// HTTP sends the requests.
	HTTP *http.Client
	// Capabilities are declared with every request; nil declares none.
	Capabilities map[string]any
	// Header is sent with every request beside what the protocol wants.
	Header http.Header

	requests atomic.Int64
}

// New returns a client that declares that it can show forms. Its connections are
// its own; close them with Client.HTTP.CloseIdleConnections.
func New(url string) *Client {
	return &Client{
		URL:          url,
		HTTP:         &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute}},
		Capabilities: map[string]any{"elicitation": map[string]any{}},
	}
}

// Reply is what came back.
type Reply struct {
	// Status is the HTTP status.
	Status int
	// Header is the HTTP header.
	Header http.Header
	// Body is the body as it came.
	Body []byte
	// Message is the JSON-RPC response in it as it came.
	Message []byte
	// Result is the `result` of the response, if it is one.
	Result *Result
	// Error is the `error` of the response, if it is one.
	Error *Error
}

// Result is the part of a result that the tests look at.
type Result struct {
	// Type is `complete` or `input_required`.
	Type string `json:"resultType"`
	// Content is what a tool says.
	Content []struct {
		Text string `json:"text"`
	} `json:"content"`
	// StructuredContent is what a tool returns.
	StructuredContent json.RawMessage `json:"structuredContent"`
	// IsError says that a tool failed.
	IsError bool `json:"isError"`
	// InputRequests are the questions by key.
	InputRequests map[string]json.RawMessage `json:"inputRequests"`
	// RequestState comes back with the answers.
	RequestState string `json:"requestState"`
}

// Error is a JSON-RPC error.
type Error struct {
	// Code is the error's code.
	Code int `json:"code"`
	// Message is the sentence for the client.
	Message string `json:"message"`
	// Data is anything more.
	Data json.RawMessage `json:"data"`
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("error %d: %s", e.Code, e.Message) }

// CallTool calls a tool with arguments, and on a retry with the answers and the
// request state; both may be empty.
func (c *Client) CallTool(
	ctx context.Context, name string, arguments, answers map[string]any, requestState string,
) (*Reply, error) {
	params := map[string]any{"name": name, "arguments": arguments}
	if answers != nil {
		params["inputResponses"] = answers
	}
	if requestState != "" {
		params["requestState"] = requestState
	}
	return c.Send(ctx, "tools/call", name, params)
}

// Accept is the answer of a user who accepts a form.
func Accept(content map[string]any) map[string]any {
	return map[string]any{"action": "accept", "content": content}
}

// Send sends one request and reads the reply. Name is what the method is applied
// to, and may be empty. Params gets the `_meta` that the revision wants.
func (c *Client) Send(ctx context.Context, method, name string, params map[string]any) (*Reply, error) {
	response, err := c.Open(ctx, method, name, params) //nolint:bodyclose // receive closes it
	if err != nil {
		return nil, err
	}
	return receive(response)
}

// SendText is Send with the exact text of the params, which must be an object with
// a `_meta`; see Meta.
func (c *Client) SendText(ctx context.Context, method, name, params string) (*Reply, error) {
	response, err := c.open(ctx, method, name, []byte(params)) //nolint:bodyclose // receive closes it
	if err != nil {
		return nil, err
	}
	return receive(response)
}

// receive reads a response to its end.
func receive(response *http.Response) (*Reply, error) {
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxReplyBytes))
	if err != nil {
		return nil, fmt.Errorf("read reply: %w", err)
	}
	return read(response, body)
}

// Meta is the `_meta` that the revision wants.
func (c *Client) Meta() map[string]any {
	capabilities := c.Capabilities
	if capabilities == nil {
		capabilities = map[string]any{}
	}
	return map[string]any{
		"io.modelcontextprotocol/protocolVersion":    Revision,
		"io.modelcontextprotocol/clientCapabilities": capabilities,
		"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "countersign-test", "version": "1.0.0"},
	}
}

// Open sends one request and returns the response while it is still coming.
func (c *Client) Open(ctx context.Context, method, name string, params map[string]any) (*http.Response, error) {
	params["_meta"] = c.Meta()
	text, err := json.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("encode params: %w", err)
	}
	return c.open(ctx, method, name, text)
}

// open sends one request, put together by hand: the encoder would tidy up params
// that are meant to be sent as they are.
func (c *Client) open(ctx context.Context, method, name string, params []byte) (*http.Response, error) {
	body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":`, c.requests.Add(1), method)
	body = append(append(body, params...), '}')
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	maps.Copy(request.Header, c.Header)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	request.Header.Set("Mcp-Protocol-Version", Revision)
	request.Header.Set("Mcp-Method", method)
	if name != "" {
		request.Header.Set("Mcp-Name", name)
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		return nil, fmt.Errorf("send request: %w", err)
	}
	return response, nil
}

// read makes a reply of a response and its body.
func read(response *http.Response, body []byte) (*Reply, error) {
	reply := &Reply{Status: response.StatusCode, Header: response.Header, Body: body}
	message := body
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		message = lastEvent(body)
	}
	var parsed struct {
		Result *Result `json:"result"`
		Error  *Error  `json:"error"`
	}
	if err := json.Unmarshal(message, &parsed); err != nil {
		return nil, fmt.Errorf("read reply with status %d: %w", response.StatusCode, err)
	}
	if (parsed.Result == nil) == (parsed.Error == nil) {
		return nil, errors.New("the reply is neither a result nor an error")
	}
	reply.Message = message
	reply.Result, reply.Error = parsed.Result, parsed.Error
	return reply, nil
}

// lastEvent returns the data of the last event that has any.
func lastEvent(body []byte) []byte {
	var last []byte
	scanner := bufio.NewScanner(bytes.NewReader(body))
	scanner.Buffer(nil, maxReplyBytes)
	for scanner.Scan() {
		if data, found := bytes.CutPrefix(scanner.Bytes(), []byte("data:")); found {
			last = bytes.Clone(data)
		}
	}
	return last
}
