package handler

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	"github.com/countersign-mcp/countersign/services/handlers/go/internal/fault"
)

type toolEntry struct {
	message  *handlerv1.Tool
	call     func(ctx *Context, arguments []byte) (*handlerv1.CallToolResult, error)
	defaults json.RawMessage // of the arguments: an object, or empty
}

// Tool offers a function that a model may call.
//
// In is a struct whose fields are the arguments: names from the json tags,
// descriptions from the jsonschema tags, optional with omitempty or omitzero. The
// tags of a form (see [Elicit]) mean the same here, in structs inside as well, and
// the edge refuses arguments that do not keep to them:
//
//	type search struct {
//		Words string `json:"words" jsonschema:"What to look for." minLength:"1"`
//		Order string `json:"order,omitempty" enum:"newest,oldest" default:"newest"`
//		Limit int    `json:"limit,omitempty" minimum:"1" maximum:"100" default:"20"`
//	}
//
// A format may be any of JSON Schema's. An argument that is left out has its default,
// or else its zero value. With an [InputSchema] the tags say nothing.
//
// Any other type needs an [InputSchema]; [encoding/json.RawMessage] is the exact text
// that the client sent. Numbers keep their digits: an int64 is exact, and a number in
// an any is an [encoding/json.Number].
//
// Out is one of:
//   - a struct or a map: structured content with a schema inferred from the json and
//     jsonschema tags, and a text block of the same JSON for clients that read only
//     text;
//   - [encoding/json.RawMessage]: the same with the exact text that the function
//     returns, and with a schema only if there is an [OutputSchema];
//   - string: a text block;
//   - *[Result]: put together by hand.
//
// An error of the function is a result with isError that a model reads: say what
// would help it, and nothing secret. An [*Error] instead refuses the request as a
// whole. A panic or a [*UsageError] is an internal error and a line in the log.
//
// Tool panics if the registration makes no sense, for example if the name is taken,
// a type has no JSON Schema, or a tag is misspelt.
func Tool[In, Out any](
	server *Server, name string, call func(ctx *Context, in In) (Out, error), options ...ToolOption,
) {
	if !toolName.MatchString(name) {
		panic(fmt.Sprintf("handler: the tool name %q is not 1 to 128 of A-Z a-z 0-9 _ - .", name))
	}
	entry := &toolEntry{message: &handlerv1.Tool{Name: name}}
	entry.call = func(ctx *Context, arguments []byte) (*handlerv1.CallToolResult, error) {
		in, err := decodeArguments[In](arguments, entry.defaults)
		if err != nil {
			fault.Report(ctx, fmt.Errorf("the arguments cannot be used: %w", err))
			return failed("the arguments cannot be used: " + err.Error()), nil
		}
		out, err := call(ctx, in)
		if err != nil {
			return nil, err
		}
		result, err := encodeOutput(out)
		if err != nil {
			return nil, internalError(fmt.Errorf("encode the result: %w", err))
		}
		return result, nil
	}
	for _, option := range options {
		if err := option.applyToTool(entry); err != nil {
			panic(fmt.Sprintf("handler: register the tool %q: %v", name, err))
		}
	}
	if entry.message.GetDescription() == "" {
		panic(fmt.Sprintf("handler: the tool %q has no description", name))
	}
	if err := entry.inferSchemas(reflect.TypeFor[In](), reflect.TypeFor[Out]()); err != nil {
		panic(fmt.Sprintf("handler: register the tool %q: %v", name, err))
	}
	server.register(&server.tools, "tool", name, entry)
}

// decodeArguments reads arguments over their defaults.
func decodeArguments[In any](arguments, defaults []byte) (In, error) {
	var in In
	if raw, isRaw := any(&in).(*json.RawMessage); isRaw {
		*raw = arguments
		return in, nil
	}
	if len(arguments) == 0 {
		arguments = []byte("{}")
	}
	if len(defaults) > 0 {
		if err := decodeJSON(defaults, &in); err != nil {
			return in, err
		}
	}
	err := decodeJSON(arguments, &in)
	return in, err
}

func encodeOutput(out any) (*handlerv1.CallToolResult, error) {
	switch out := out.(type) {
	case *Result:
		if out == nil {
			return new(handlerv1.CallToolResult), nil
		}
		return out.message()
	case string:
		return &handlerv1.CallToolResult{Content: []*handlerv1.ContentBlock{Text(out).block}}, nil
	}
	structured, err := encodeJSON(out)
	if err != nil {
		return nil, err
	}
	return &handlerv1.CallToolResult{
		Content:           []*handlerv1.ContentBlock{Text(string(structured)).block},
		StructuredContent: structured,
	}, nil
}

// failed is the result of a tool that ran and failed.
func failed(text string) *handlerv1.CallToolResult {
	return &handlerv1.CallToolResult{
		Content: []*handlerv1.ContentBlock{Text(text).block}, IsError: true,
	}
}

// inferSchemas fills in what no option gave.
func (e *toolEntry) inferSchemas(in, out reflect.Type) error {
	if e.message.InputSchema == nil {
		schema, err := inferObject(in)
		if err != nil {
			return fmt.Errorf("infer the input schema: %w (give an InputSchema)", err)
		}
		if err := tagArguments(schema, in); err != nil {
			return err
		}
		if e.defaults, err = argumentDefaults(schema); err != nil {
			return err
		}
		if e.message.InputSchema, err = json.Marshal(schema); err != nil {
			return fmt.Errorf("encode the input schema: %w", err)
		}
	}
	isExplicit := out == reflect.TypeFor[*Result]() || out == reflect.TypeFor[json.RawMessage]() ||
		out.Kind() == reflect.String
	if e.message.OutputSchema == nil && !isExplicit {
		schema, err := inferObject(out)
		if err != nil {
			return fmt.Errorf("infer the output schema: %w", err)
		}
		if e.message.OutputSchema, err = json.Marshal(schema); err != nil {
			return fmt.Errorf("encode the output schema: %w", err)
		}
	}
	return nil
}

// ownSchemas are the types of encoding/json whose schema does not follow from
// their Go kind.
var ownSchemas = map[reflect.Type]*jsonschema.Schema{
	reflect.TypeFor[json.RawMessage](): {},
	reflect.TypeFor[json.Number]():     {Type: "number"},
	reflect.TypeFor[[]byte]():          {Type: "string", ContentEncoding: "base64"},
}

// inferObject is the JSON Schema of a type whose JSON is an object.
func inferObject(of reflect.Type) (*jsonschema.Schema, error) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct && of.Kind() != reflect.Map {
		return nil, fmt.Errorf("%s is not an object in JSON", of)
	}
	schema, err := jsonschema.ForType(of, &jsonschema.ForOptions{TypeSchemas: ownSchemas})
	if err != nil {
		return nil, err
	}
	if schema.Type != "object" {
		return nil, fmt.Errorf("%s is not an object in JSON", of)
	}
	refuseNullLists(schema)
	return schema, nil
}

// refuseNullLists takes back that a list may be null, which is inferred for every
// slice: this kit writes a nil slice as an empty list.
func refuseNullLists(schema *jsonschema.Schema) {
	if schema == nil {
		return
	}
	if slices.Equal(schema.Types, []string{"null", "array"}) {
		schema.Type, schema.Types = "array", nil
	}
	refuseNullLists(schema.Items)
	refuseNullLists(schema.AdditionalProperties)
	for _, property := range schema.Properties {
		refuseNullLists(property)
	}
}

type toolOptionFunc func(*toolEntry) error

func (f toolOptionFunc) applyToTool(entry *toolEntry) error { return f(entry) }

// InputSchema replaces the schema that is inferred from In. The edge checks
// arguments against it and passes it on unaltered.
func InputSchema(schema json.RawMessage) ToolOption {
	return toolOptionFunc(func(entry *toolEntry) error {
		if !isJSONObject(schema) {
			return errors.New("the input schema must be a JSON object")
		}
		entry.message.InputSchema = schema
		return nil
	})
}

// OutputSchema replaces the schema that is inferred from Out, or adds one where
// none is.
func OutputSchema(schema json.RawMessage) ToolOption {
	return toolOptionFunc(func(entry *toolEntry) error {
		if !isJSONObject(schema) {
			return errors.New("the output schema must be a JSON object")
		}
		entry.message.OutputSchema = schema
		return nil
	})
}

// hint makes an option of one hint.
func hint(set func(*handlerv1.ToolAnnotations)) ToolOption {
	return toolOptionFunc(func(entry *toolEntry) error {
		if entry.message.GetAnnotations() == nil {
			entry.message.Annotations = new(handlerv1.ToolAnnotations)
		}
		set(entry.message.GetAnnotations())
		return nil
	})
}

// ReadOnly says that the tool leaves its environment as it is.
func ReadOnly() ToolOption {
	return hint(func(annotations *handlerv1.ToolAnnotations) {
		annotations.ReadOnlyHint, annotations.DestructiveHint = new(true), new(false)
	})
}

// Destructive says that the tool may destroy something: money, data, trust. The
// edge then uses an answer only if it has shown the question before.
func Destructive() ToolOption {
	return hint(func(annotations *handlerv1.ToolAnnotations) { annotations.DestructiveHint = new(true) })
}

// NonDestructive says that the tool only adds to its environment. Without it a
// client must suppose the worse.
func NonDestructive() ToolOption {
	return hint(func(annotations *handlerv1.ToolAnnotations) { annotations.DestructiveHint = new(false) })
}

// Idempotent says that calling the tool again with the same arguments changes
// nothing more.
func Idempotent() ToolOption {
	return hint(func(annotations *handlerv1.ToolAnnotations) { annotations.IdempotentHint = new(true) })
}

// ClosedWorld says that the tool deals with nothing outside its own domain.
func ClosedWorld() ToolOption {
	return hint(func(annotations *handlerv1.ToolAnnotations) { annotations.OpenWorldHint = new(false) })
}

// AsksMustBeShown says that an answer counts only if the question was shown: the
// edge ignores answers that a client volunteers. A [Destructive] tool behaves like
// this in any case.
func AsksMustBeShown() ToolOption {
	return toolOptionFunc(func(entry *toolEntry) error {
		entry.message.AsksMustBeShown = true
		return nil
	})
}
