// Package render writes what handlers say as the JSON that MCP clients read.
//
// Typed fields are written by hand, member by member, because most of a result is
// somebody else's JSON that must be passed on as it is: schemas, structured
// content, `_meta`. Such text is spliced in once it is known to be one strict JSON
// value; a handler that sends anything else has broken the contract, and the error
// names the field. Binary content becomes base64 here, once.
//
// The limit: the schema of a result is the modern revision's, 2026-07-28.
package render

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	"github.com/countersign-mcp/countersign/services/mcpedge/jsonrpc"
)

// object writes the members of a JSON object.
type object struct {
	text []byte
	// open is the length of the text up to the object's brace.
	open int
	// err is the first field that could not be written.
	err error
}

func newObject(dst []byte) *object {
	dst = append(dst, '{')
	return &object{text: dst, open: len(dst)}
}

// close ends the object and returns the text with it.
func (o *object) close() ([]byte, error) {
	return append(o.text, '}'), o.err
}

func (o *object) name(name string) {
	if len(o.text) > o.open {
		o.text = append(o.text, ',')
	}
	o.text = append(append(append(o.text, '"'), name...), '"', ':')
}

func (o *object) string(name, value string) {
	o.name(name)
	o.text = jsonrpc.AppendString(o.text, value)
}

// optional writes a string unless it is empty.
func (o *object) optional(name, value string) {
	if value != "" {
		o.string(name, value)
	}
}

func (o *object) strings(name string, values []string) {
	o.array(name, len(values), func(i int) { o.text = jsonrpc.AppendString(o.text, values[i]) })
}

func (o *object) bool(name string, value bool) {
	o.name(name)
	o.text = strconv.AppendBool(o.text, value)
}

// hint writes a boolean unless it is absent.
func (o *object) hint(name string, value *bool) {
	if value != nil {
		o.bool(name, *value)
	}
}

func (o *object) uint(name string, value uint64) {
	o.name(name)
	o.text = strconv.AppendUint(o.text, value, 10)
}

func (o *object) float(name string, value float64) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		o.fail(name, "is not a finite number")
		return
	}
	o.name(name)
	o.text = strconv.AppendFloat(o.text, value, 'g', -1, 64)
}

func (o *object) base64(name string, data []byte) {
	o.name(name)
	o.text = append(base64.StdEncoding.AppendEncode(append(o.text, '"'), data), '"')
}

// array writes an array of n elements; element writes one onto o.text.
func (o *object) array(name string, n int, element func(i int)) {
	o.name(name)
	o.text = append(o.text, '[')
	for i := range n {
		if i > 0 {
			o.text = append(o.text, ',')
		}
		element(i)
	}
	o.text = append(o.text, ']')
}

// raw splices in somebody else's JSON unless it is empty; kind is '{' for an
// object and 0 for any value.
func (o *object) raw(name string, text []byte, kind byte) {
	if len(text) == 0 {
		return
	}
	if !jsonrpc.Valid(text, kind) {
		o.fail(name, "is not strict JSON of its kind")
		return
	}
	o.name(name)
	o.text = append(o.text, text...)
}

// append writes one value with a function that may fail.
func (o *object) append(f func(dst []byte) ([]byte, error)) {
	text, err := f(o.text)
	if err != nil {
		o.keep(err)
		return
	}
	o.text = text
}

// member writes a member whose value a function writes.
func (o *object) member(name string, f func(dst []byte) ([]byte, error)) {
	o.name(name)
	o.append(f)
}

func (o *object) fail(name, problem string) {
	o.keep(fmt.Errorf("%s %s", name, problem))
}

func (o *object) keep(err error) {
	if o.err == nil {
		o.err = err
	}
}

func role(r handlerv1.Role) string {
	if r == handlerv1.Role_ROLE_ASSISTANT {
		return "assistant"
	}
	return "user"
}
