package modern

import (
	"net/http"

	"github.com/countersign-mcp/countersign/services/mcpedge/failure"
	"github.com/countersign-mcp/countersign/services/mcpedge/mirror"
)

// The headers that mirror members of the body ("Standard Request Headers").
const (
	headerRevision = "Mcp-Protocol-Version"
	headerMethod   = "Mcp-Method"
	headerName     = "Mcp-Name"
)

func headerMismatch(format string, arguments ...any) error {
	return failure.Newf(failure.HeaderMismatch, "header mismatch: "+format, arguments...)
}

// checkRevision checks that the header, where there are headers, and the body name
// the same revision, and that it is served. A mismatch is judged first.
func (c *call) checkRevision() error {
	if c.Header != nil {
		if err := c.checkHeader(headerRevision, c.meta.revision, mirror.Plain); err != nil {
			return err
		}
	}
	if c.meta.revision != Revision {
		return unsupportedRevision(c.meta.revision)
	}
	return nil
}

// checkHeaders checks that the headers name the method and the target that the
// body names: a proxy in front may have decided by them.
func (c *call) checkHeaders() error {
	if c.Header == nil {
		return nil
	}
	if err := c.checkHeader(headerMethod, c.Message.Method, mirror.Plain); err != nil {
		return err
	}
	var member string
	var value []byte
	switch c.Message.Method {
	case "tools/call", "prompts/get":
		member, value = "name", c.name
	case "resources/read":
		member, value = "uri", c.uri
	default:
		return nil
	}
	want, err := target(member, value)
	if err != nil {
		return err
	}
	return c.checkHeader(headerName, want, mirror.Decode)
}

// checkHeader checks that a header is there once and says what is wanted. decode
// reads its value.
func (c *call) checkHeader(name, want string, decode func(string) (string, error)) error {
	values := c.Header[http.CanonicalHeaderKey(name)]
	if len(values) != 1 {
		return headerMismatch("%s must be there once, and is there %d times", name, len(values))
	}
	got, err := decode(values[0])
	if err != nil {
		return headerMismatch("%s %v", name, err)
	}
	if got != want {
		return headerMismatch("%s does not say what the body says", name)
	}
	return nil
}

// checkParams checks the headers that mirror arguments of a tool.
func (c *call) checkParams(params []mirror.Param, arguments []byte) error {
	if c.Header == nil {
		return nil
	}
	for _, param := range params {
		if err := param.Check(c.Header, arguments); err != nil {
			return headerMismatch("%v", err)
		}
	}
	return nil
}
