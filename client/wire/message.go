package wire

import (
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// message is a JSON-RPC message from a server: a notification or a response.
type message struct {
	JSONRPC string         `json:"jsonrpc"`
	ID      jsontext.Value `json:"id"`
	Method  *string        `json:"method"`
	Params  jsontext.Value `json:"params"`
	Result  jsontext.Value `json:"result"`
	Error   jsontext.Value `json:"error"`
}

// decode reads a message. What it refuses, JSON-RPC or the revision forbids.
func decode(text []byte) (*message, error) {
	var m message
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, protocolErrorf("the server sent something other than a JSON-RPC message: %w", err)
	}
	switch {
	case m.JSONRPC != "2.0":
		return nil, protocolErrorf("the server sent a message that is not JSON-RPC 2.0")
	case m.Method != nil && m.ID != nil:
		return nil, protocolErrorf("the server sent a request of its own (%q), which revision %s forbids", *m.Method, Revision)
	case m.Method == nil && (m.Result == nil) == (m.Error == nil):
		return nil, protocolErrorf("the server sent a response that does not have exactly one of result and error")
	}
	return &m, nil
}

// isNotification tells a notification from a response.
func (m *message) isNotification() bool {
	return m.Method != nil
}

// resultOf returns the result of a response, or its error.
func (m *message) resultOf(id int64, method string) (Result, error) {
	if m.Error != nil {
		return Result{}, m.rpcError(id)
	}
	if string(m.ID) != strconv.FormatInt(id, 10) {
		return Result{}, protocolErrorf("the server answered request %s, but request %d was sent", m.ID, id)
	}
	if m.Result.Kind() != '{' {
		return Result{}, protocolErrorf("the result is not an object")
	}
	var typed struct {
		ResultType *string `json:"resultType"`
	}
	if err := json.Unmarshal(m.Result, &typed); err != nil {
		return Result{}, protocolErrorf("the result's resultType is not a string: %w", err)
	}
	switch {
	case typed.ResultType == nil || *typed.ResultType == "complete":
		return Result{JSON: m.Result}, nil
	case *typed.ResultType == "input_required" && mayAsk(method):
		return Result{JSON: m.Result, InputRequired: true}, nil
	case *typed.ResultType == "input_required":
		return Result{}, protocolErrorf("the server asked for input in reply to %s, which cannot ask", method)
	default:
		return Result{}, protocolErrorf("the server sent a result of the unknown type %q", *typed.ResultType)
	}
}

// mayAsk lists the methods that may be answered with input_required (basic/patterns/mrtr,
// "Supported Requests").
func mayAsk(method string) bool {
	return method == "tools/call" || method == "prompts/get" || method == "resources/read"
}

// rpcError decodes the error of a response. An error may come without an id,
// where the server could not read it.
func (m *message) rpcError(id int64) error {
	var rpcError RPCError
	if err := json.Unmarshal(m.Error, &rpcError); err != nil {
		return protocolErrorf("the server sent an error that cannot be read: %w", err)
	}
	if len(m.ID) > 0 && m.ID.Kind() != 'n' && string(m.ID) != strconv.FormatInt(id, 10) {
		return protocolErrorf("the server answered request %s, but request %d was sent", m.ID, id)
	}
	return &rpcError
}
