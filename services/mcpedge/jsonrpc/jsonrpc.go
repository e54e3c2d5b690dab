// Package jsonrpc reads and writes JSON-RPC 2.0 messages as MCP uses them.
//
// What a request says must be the same to everybody who looks at it: to a proxy
// in front, to this edge and to the handler behind. So decoding is strict. Member
// names match exactly (the standard library would take "ID" for "id", and
// "requeſtState" for "requestState"), a name may stand in an object only once,
// text must be valid UTF-8 without lone surrogates, and nesting is bounded before
// anything is parsed. Values that belong to somebody else are never decoded: they
// are slices of the body, passed on as they are, so that no digit is lost.
//
// An id keeps its JSON type and spelling: 1 and "1" are two ids.
package jsonrpc

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The error codes of JSON-RPC 2.0 (section 5.1) and of MCP 2026-07-28 ("Error
// Codes").
const (
	CodeParseError                 = -32700
	CodeInvalidRequest             = -32600
	CodeMethodNotFound             = -32601
	CodeInvalidParams              = -32602
	CodeInternalError              = -32603
	CodeHeaderMismatch             = -32020
	CodeMissingClientCapability    = -32021
	CodeUnsupportedProtocolVersion = -32022
)

// MaxTokenBytes is how long the text of an id or a progress token may be.
const MaxTokenBytes = 256

// Errors that say why a body is not a message.
var (
	// ErrSyntax: not strict JSON.
	ErrSyntax = errors.New("the body is not strict JSON")
	// ErrDepth: nested deeper than allowed.
	ErrDepth = errors.New("the body is nested too deeply")
	// ErrInvalid: JSON, and not a JSON-RPC request or notification.
	ErrInvalid = errors.New("the body is not a JSON-RPC request or notification")
)

// ID is the id of a request: the exact text of a JSON string or integer, or nil
// for a notification or where none could be read.
type ID []byte

// Message is a request or a notification. Its fields are slices of the body.
type Message struct {
	// ID is nil for a notification.
	ID ID
	// Method is the name of the method.
	Method string
	// Params is the exact text of an object, or nil where there are none.
	Params []byte
}

// IsNotification says whether nobody waits for an answer.
func (m Message) IsNotification() bool { return m.ID == nil }

// Decode reads the one message in body, nested at most maxDepth deep. It fails
// with ErrSyntax, ErrDepth or ErrInvalid; with ErrInvalid the message holds the
// id if one could be read.
func Decode(body []byte, maxDepth int) (Message, error) {
	if depth(body) > maxDepth {
		return Message{}, ErrDepth
	}
	if !Valid(body, 0) {
		return Message{}, fmt.Errorf("%w: %w", ErrSyntax, syntaxError(body))
	}
	var message Message
	var version, method []byte
	var invalid error
	err := EachMember(body, func(name string, value []byte) error {
		switch name {
		case "jsonrpc":
			version = value
		case "id":
			if !ValidToken(value) {
				invalid = fmt.Errorf("%w: the id is not a string or integer", ErrInvalid)
				return nil
			}
			message.ID = value
		case "method":
			method = value
		case "params":
			if value[0] != '{' {
				invalid = fmt.Errorf("%w: params is not an object", ErrInvalid)
				return nil
			}
			message.Params = value
		case "result", "error":
			invalid = fmt.Errorf("%w: it is a response, and this server asked for none", ErrInvalid)
		}
		return nil
	})
	switch {
	case err != nil:
		return Message{}, fmt.Errorf("%w: it is not an object", ErrInvalid)
	case invalid != nil:
		return message, invalid
	case string(version) != `"2.0"`:
		return message, fmt.Errorf(`%w: jsonrpc is not "2.0"`, ErrInvalid)
	case len(method) == 0 || method[0] != '"':
		return message, fmt.Errorf("%w: the method is not a string", ErrInvalid)
	}
	message.Method, err = Unquote(method)
	return message, err
}

// syntaxError says what is wrong with a text that is not strict JSON.
func syntaxError(text []byte) error {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(text))
	if _, err := decoder.ReadValue(); err != nil {
		return err
	}
	return errors.New("something follows the value")
}

// ValidToken says whether a value may be an id or a progress token: a string or an
// integer of at most MaxTokenBytes.
func ValidToken(value []byte) bool {
	if len(value) > MaxTokenBytes {
		return false
	}
	switch jsontext.Value(value).Kind() {
	case '"':
		return true
	case '0':
		return !bytes.ContainsAny(value, ".eE")
	default:
		return false
	}
}

// depth is how deeply arrays and objects are nested in text, whether or not the
// text is JSON.
func depth(text []byte) int {
	deepest, current := 0, 0
	inString := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			current++
			deepest = max(deepest, current)
		case c == '}' || c == ']':
			current--
		}
	}
	return deepest
}

// errNotObject: the value is JSON and not an object.
var errNotObject = errors.New("not an object")

// EachMember calls f with the name and the exact text of each member of an
// object, in order. The object must be part of a text that Decode or Valid has
// accepted. It stops at the first error of f and returns it; a value that is not
// an object is an error too.
func EachMember(object []byte, f func(name string, value []byte) error) error {
	at := space(object, 0)
	if at == len(object) || object[at] != '{' {
		return errNotObject
	}
	for at = space(object, at+1); object[at] != '}'; {
		end := skip(object, at)
		name, err := Unquote(object[at:end])
		if err != nil {
			return err
		}
		at = space(object, space(object, end)+1) // behind the colon
		end = skip(object, at)
		if err := f(name, object[at:end:end]); err != nil {
			return err
		}
		at = next(object, end)
	}
	return nil
}

// EachElement is EachMember for the elements of an array.
func EachElement(array []byte, f func(value []byte) error) error {
	at := space(array, 0)
	if at == len(array) || array[at] != '[' {
		return errors.New("not an array")
	}
	for at = space(array, at+1); array[at] != ']'; {
		end := skip(array, at)
		if err := f(array[at:end:end]); err != nil {
			return err
		}
		at = next(array, end)
	}
	return nil
}

// The text was read strictly before: what follows only finds its way in it.

// space returns where the white space that begins at a place ends.
func space(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t') {
		at++
	}
	return at
}

// next returns where the next member or element begins, or the end of its object
// or array, after one that ends at a place.
func next(text []byte, at int) int {
	at = space(text, at)
	if text[at] == ',' {
		return space(text, at+1)
	}
	return at
}

// skip returns where the value that begins at a place ends.
func skip(text []byte, at int) int {
	switch text[at] {
	case '"':
		return skipString(text, at)
	case '{', '[':
	default:
		for at < len(text) && strings.IndexByte(",]} \n\r\t", text[at]) < 0 {
			at++
		}
		return at
	}
	for depth := 0; ; at++ {
		switch text[at] {
		case '"':
			at = skipString(text, at) - 1
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				return at + 1
			}
		}
	}
}

// skipString returns where the string that begins at a place ends.
func skipString(text []byte, at int) int {
	for at++; text[at] != '"'; at++ {
		if text[at] == '\\' {
			at++
		}
	}
	return at + 1
}

// Valid says whether a text from outside is one strict JSON value of the kind
// given: '{' an object, '[' an array, 0 any.
func Valid(text []byte, kind byte) bool {
	value := jsontext.Value(text)
	return value.IsValid() && (kind == 0 || byte(value.Kind()) == kind)
}

// Unquote returns the string that a JSON string says. The text must be part of
// one that Decode or Valid has accepted.
func Unquote(text []byte) (string, error) {
	if len(text) < 2 || text[0] != '"' {
		return "", errors.New("not a string")
	}
	inner := text[1 : len(text)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), nil
	}
	unquoted, err := jsontext.AppendUnquote(nil, text)
	if err != nil {
		return "", fmt.Errorf("unquote a string: %w", err)
	}
	return string(unquoted), nil
}

// AppendString appends s as a JSON string. What is not UTF-8 in it becomes
// U+FFFD.
func AppendString(dst []byte, s string) []byte {
	// The only error is the one about invalid UTF-8, which is replaced.
	dst, _ = jsontext.AppendQuote(dst, s)
	return dst
}

// AppendResult appends a response with a result, which is the exact text of an
// object.
func AppendResult(dst []byte, id ID, result []byte) []byte {
	dst = append(append(dst, `{"jsonrpc":"2.0","id":`...), id...)
	return append(append(append(dst, `,"result":`...), result...), '}')
}

// AppendError appends a response with an error. A nil id is left out, as MCP
// demands where none could be read; data is the exact text of a value, or empty.
func AppendError(dst []byte, id ID, code int, message string, data []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0",`...)
	if id != nil {
		dst = append(append(append(dst, `"id":`...), id...), ',')
	}
	dst = fmt.Appendf(dst, `"error":{"code":%d,"message":`, code)
	dst = AppendString(dst, message)
	if len(data) > 0 {
		dst = append(append(dst, `,"data":`...), data...)
	}
	return append(dst, "}}"...)
}

// AppendNotification appends a notification; params is the exact text of an
// object.
func AppendNotification(dst []byte, method string, params []byte) []byte {
	dst = AppendString(append(dst, `{"jsonrpc":"2.0","method":`...), method)
	return append(append(append(dst, `,"params":`...), params...), '}')
}

// OneLine makes a message one line, in place: white space between JSON tokens may
// hold line breaks, and no string does.
func OneLine(message []byte) []byte {
	for i, c := range message {
		if c == '\n' || c == '\r' {
			message[i] = ' '
		}
	}
	return message
}
