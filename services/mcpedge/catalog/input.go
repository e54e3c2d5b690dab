package catalog

import (
	"errors"
	"fmt"

	"github.com/countersign-mcp/countersign/services/mcpedge/jsonrpc"
	"github.com/countersign-mcp/countersign/services/mcpedge/schema"
)

var (
	errToolName = errors.New("a tool's name must be 1 to 128 letters, digits, underscores, hyphens and dots")
	errNoName   = errors.New("it has no name")
	errLong     = fmt.Errorf("its name is longer than %d bytes", MaxNameBytes)
	errTwice    = errors.New("the handler offers it twice")
)

// compileInput compiles the schema of a tool's arguments, which must say that
// they are an object.
func compileInput(text []byte) (*schema.Schema, error) {
	if !jsonrpc.Valid(text, '{') {
		return nil, errors.New("the input schema is not a strict JSON object")
	}
	isObject := false
	err := jsonrpc.EachMember(text, func(name string, value []byte) error {
		isObject = isObject || name == "type" && string(value) == `"object"`
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the input schema: %w", err)
	}
	if !isObject {
		return nil, errors.New(`the input schema's type is not "object"`)
	}
	return schema.Compile(text)
}

// compileOutput compiles the schema of a tool's structured content.
func compileOutput(text []byte) (*schema.Schema, error) { return schema.Compile(text) }

func validToolName(name string) bool {
	if len(name) < 1 || len(name) > 128 {
		return false
	}
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-', c == '.':
		default:
			return false
		}
	}
	return true
}
