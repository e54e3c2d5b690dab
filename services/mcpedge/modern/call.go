package modern

import (
	"bytes"

	"github.com/countersign-mcp/countersign/services/mcpedge/catalog"
	"github.com/countersign-mcp/countersign/services/mcpedge/failure"
	"github.com/countersign-mcp/countersign/services/mcpedge/jsonrpc"
	"github.com/countersign-mcp/countersign/services/mcpedge/state"
)

// call is a request whose metadata, headers and members have been read. Values
// that belong to somebody else are slices of the body.
type call struct {
	Request

	meta metadata
	// invocation is what the request asked of a handler; nil until it does.
	invocation *invocation
	// outcome is set when the request was served.
	outcome outcome

	// Members of the params that methods use; nil where absent.
	name, uri, arguments         []byte
	ref, argument, context       []byte
	notifications                []byte
	inputResponses, requestState []byte
	cursor                       []byte
}

// newCall reads a request. It checks in this order: `_meta` is there and well
// formed, the revision is served, the headers say what the body says. With an error
// comes what had been read until then.
func newCall(request Request) (*call, error) {
	c := &call{Request: request}
	var meta []byte
	if request.Message.Params != nil {
		err := jsonrpc.EachMember(request.Message.Params, func(name string, value []byte) error {
			switch name {
			case "_meta":
				meta = value
			case "name":
				c.name = value
			case "uri":
				c.uri = value
			case "arguments":
				c.arguments = value
			case "ref":
				c.ref = value
			case "argument":
				c.argument = value
			case "context":
				c.context = value
			case "notifications":
				c.notifications = value
			case "inputResponses":
				c.inputResponses = present(value)
			case "requestState":
				c.requestState = present(value)
			case "cursor":
				c.cursor = present(value)
			}
			return nil
		})
		if err != nil {
			return c, failure.New(failure.Internal, err)
		}
	}
	var err error
	if c.meta, err = readMetadata(meta); err != nil {
		err = c.withoutMetadata(err)
		return c, err
	}
	if err := c.checkRevision(); err != nil {
		return c, err
	}
	err = c.checkHeaders()
	return c, err
}

// present returns a value, or nil where it is null: an explicit null says the same
// as an absent member.
func present(value []byte) []byte {
	if bytes.Equal(value, []byte("null")) {
		return nil
	}
	return value
}

// withoutMetadata is the answer to a request without the metadata it needs. A
// client of an earlier revision that opens with `initialize` learns from it which
// revisions are served, since it has no other way to.
func (c *call) withoutMetadata(err error) error {
	if c.Message.Method != "initialize" {
		return err
	}
	requested := ""
	_ = jsonrpc.EachMember(c.Message.Params, func(name string, value []byte) error {
		if name == "protocolVersion" {
			requested, _ = jsonrpc.Unquote(value)
		}
		return nil
	})
	return unsupportedRevision(requested)
}

func unsupportedRevision(requested string) error {
	data := jsonrpc.AppendString([]byte(`{"supported":["`+Revision+`"],"requested":`), requested)
	return &failure.Error{
		Reason:  failure.UnsupportedRevision,
		Message: "unsupported protocol version; this server speaks " + Revision,
		Data:    append(data, '}'),
	}
}

// target reads the member that a method is applied to.
func target(member string, value []byte) (string, error) {
	if value == nil {
		return "", failure.Newf(failure.InvalidParams, "params.%s is missing", member)
	}
	text, err := jsonrpc.Unquote(value)
	if err != nil || text == "" {
		return "", failure.Newf(failure.InvalidParams, "params.%s is not a non-empty string", member)
	}
	if len(text) > catalog.MaxNameBytes {
		return "", failure.Newf(failure.InvalidParams, "params.%s is longer than %d bytes", member, catalog.MaxNameBytes)
	}
	return text, nil
}

// responses returns the client's responses by key, each as exact text.
func (c *call) responses() (map[string][]byte, error) {
	if c.inputResponses == nil {
		return nil, nil //nolint:nilnil // no responses is an answer
	}
	if c.inputResponses[0] != '{' {
		return nil, failure.Newf(failure.InvalidAnswer, "params.inputResponses is not an object")
	}
	responses := map[string][]byte{}
	err := jsonrpc.EachMember(c.inputResponses, func(key string, value []byte) error {
		responses[key] = value
		return nil
	})
	if err != nil {
		return nil, failure.New(failure.Internal, err)
	}
	return responses, nil
}

// token returns the request state that the client sent, and whether it sent one.
func (c *call) token() (string, bool, error) {
	if c.requestState == nil {
		return "", false, nil
	}
	token, err := jsonrpc.Unquote(c.requestState)
	if err != nil {
		return "", true, state.Refused()
	}
	return token, true, nil
}
