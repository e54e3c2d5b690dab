package modern

import (
	"encoding/base64"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/countersign-mcp/countersign/services/mcpedge/failure"
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
		if err := c.checkHeader(headerRevision, c.meta.revision, false); err != nil {
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
	if err := c.checkHeader(headerMethod, c.Message.Method, false); err != nil {
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
	return c.checkHeader(headerName, want, true)
}

// checkHeader checks that a header is there once and has the value wanted.
func (c *call) checkHeader(name, want string, mayBeEncoded bool) error {
	values := c.Header[http.CanonicalHeaderKey(name)]
	if len(values) != 1 {
		return headerMismatch("%s must be there once, and is there %d times", name, len(values))
	}
	got, ok := values[0], plain(values[0])
	if ok && mayBeEncoded {
		got, ok = decodeHeader(got)
	}
	if !ok {
		return headerMismatch("%s holds characters that a header must not have, or is wrongly encoded", name)
	}
	if got != want {
		return headerMismatch("%s does not say what the body says", name)
	}
	return nil
}

// plain says whether a value holds nothing but visible ASCII, spaces and tabs.
func plain(value string) bool {
	for i := range len(value) {
		if c := value[i]; (c < 0x20 || c > 0x7e) && c != '\t' {
			return false
		}
	}
	return true
}

// The marks of an encoded value ("Value Encoding").
const (
	encodedPrefix = "=?base64?"
	encodedSuffix = "?="
)

// decodeHeader returns what a header's value says: the value itself, or what is
// encoded in it. It reports false for an encoding that no encoder makes.
func decodeHeader(value string) (string, bool) {
	inner, hasPrefix := strings.CutPrefix(value, encodedPrefix)
	inner, hasSuffix := strings.CutSuffix(inner, encodedSuffix)
	if !hasPrefix || !hasSuffix {
		return value, true
	}
	decoded, err := base64.StdEncoding.Strict().DecodeString(inner)
	return string(decoded), err == nil && utf8.Valid(decoded)
}
