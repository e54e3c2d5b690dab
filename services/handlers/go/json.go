package handler

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// exactNumbers keeps the digits of a number where the Go type leaves a choice:
// in an any it becomes an encoding/json.Number instead of a float64.
var exactNumbers = json.JoinUnmarshalers(
	json.UnmarshalFromFunc(func(decoder *jsontext.Decoder, number *stdjson.Number) error {
		if decoder.PeekKind() != '0' {
			return &json.SemanticError{JSONKind: decoder.PeekKind(), GoType: reflect.TypeFor[stdjson.Number]()}
		}
		value, err := decoder.ReadValue()
		if err != nil {
			return err
		}
		*number = stdjson.Number(value)
		return nil
	}),
	json.UnmarshalFromFunc(func(decoder *jsontext.Decoder, target *any) error {
		if decoder.PeekKind() != '0' {
			return errors.ErrUnsupported
		}
		value, err := decoder.ReadValue()
		if err != nil {
			return err
		}
		*target = stdjson.Number(value)
		return nil
	}),
)

// exactNumber writes an encoding/json.Number as the number it spells.
var exactNumber = json.MarshalToFunc(func(encoder *jsontext.Encoder, number stdjson.Number) error {
	return encoder.WriteValue(jsontext.Value(number))
})

// decodeOptions are the rules of encoding/json for tags and types, without its
// leniency: names match exactly, a name occurs once, unknown members and invalid
// UTF-8 are refused.
var decodeOptions = json.JoinOptions(
	jsonv1.DefaultOptionsV1(),
	jsonv1.MergeWithLegacySemantics(false),
	jsonv1.ReportErrorsWithLegacySemantics(false),
	json.MatchCaseInsensitiveNames(false),
	json.RejectUnknownMembers(true),
	jsontext.AllowDuplicateNames(false),
	jsontext.AllowInvalidUTF8(false),
	json.WithUnmarshalers(exactNumbers),
)

// encodeOptions are the rules of encoding/json, except that a nil slice or map
// is an empty one, as the inferred schema says, and that `<` stays `<`.
var encodeOptions = json.JoinOptions(
	jsonv1.DefaultOptionsV1(),
	jsonv1.ReportErrorsWithLegacySemantics(false),
	json.FormatNilSliceAsNull(false),
	json.FormatNilMapAsNull(false),
	jsontext.EscapeForHTML(false),
	jsontext.EscapeForJS(false),
	jsontext.AllowInvalidUTF8(false),
	json.Deterministic(true),
	json.WithMarshalers(exactNumber),
)

// decodeJSON decodes one JSON value into target, strictly. Its errors name the
// place and the types and never quote a value: a model or a client reads them.
func decodeJSON(data []byte, target any) error {
	return decodeWith(decodeOptions, data, target)
}

// decodeExtensible is decodeJSON for what MCP defines and may extend: unknown
// members are passed over. Names still match exactly, so that the handler reads what
// the edge has checked, and no member that only looks like it.
func decodeExtensible(data []byte, target any) error {
	return decodeWith(json.JoinOptions(decodeOptions, json.RejectUnknownMembers(false)), data, target)
}

func decodeWith(options json.Options, data []byte, target any) error {
	err := json.Unmarshal(data, target, options)
	if err == nil {
		return nil
	}
	if semantic, ok := errors.AsType[*json.SemanticError](err); ok {
		return describeSemanticError(semantic)
	}
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return describeSyntacticError(syntactic)
	}
	return errors.New("the JSON cannot be read")
}

func describeSemanticError(err *json.SemanticError) error {
	place := string(err.JSONPointer)
	if place == "" {
		place = "/"
	}
	if errors.Is(err.Err, json.ErrUnknownName) {
		return fmt.Errorf("at %q: there is no such member", place)
	}
	if err.GoType == nil || err.JSONKind == 0 {
		return fmt.Errorf("at %q: the value does not fit", place)
	}
	return fmt.Errorf("at %q: %s is not %s", place, kindName(err.JSONKind), wantedName(err.GoType))
}

func describeSyntacticError(err *jsontext.SyntacticError) error {
	if errors.Is(err.Err, jsontext.ErrDuplicateName) {
		return fmt.Errorf("at %q: the member occurs twice", string(err.JSONPointer))
	}
	return fmt.Errorf("malformed JSON at byte %d", err.ByteOffset)
}

// kindName is what JSON calls a value of this kind.
func kindName(kind jsontext.Kind) string {
	switch kind {
	case 'n':
		return "null"
	case 'f', 't':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "the number"
	case '[':
		return "an array"
	default:
		return "an object"
	}
}

// wantedName is what JSON calls the values that fit into a Go type.
func wantedName(wanted reflect.Type) string {
	switch {
	case wanted == reflect.TypeFor[stdjson.Number](), wanted.Kind() == reflect.Float32, wanted.Kind() == reflect.Float64:
		return "a number that can be used here"
	case wanted.Kind() == reflect.String:
		return "a string"
	case wanted.Kind() == reflect.Bool:
		return "a boolean"
	case wanted.Kind() == reflect.Slice, wanted.Kind() == reflect.Array:
		return "an array"
	case wanted.Kind() == reflect.Struct, wanted.Kind() == reflect.Map:
		return "an object"
	case wanted.ConvertibleTo(reflect.TypeFor[int64]()):
		return fmt.Sprintf("an integer of %d bits", wanted.Bits())
	default:
		return "a value that can be used here"
	}
}

// encodeJSON encodes value as compact JSON, the same text for the same value. Where
// the value holds a text that is not strict JSON, the error says where and does not
// quote it: it is logged.
func encodeJSON(value any) ([]byte, error) {
	encoded, err := json.Marshal(value, encodeOptions)
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return nil, describeSyntacticError(syntactic)
	}
	return encoded, err
}

// canonicalJSON is the text of a JSON value with sorted member names and without
// white space, so that two spellings of one question have one key. Numbers keep
// their spelling.
func canonicalJSON(data []byte) ([]byte, error) {
	value := jsontext.Value(bytes.Clone(data))
	if err := value.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)); err != nil {
		return nil, errors.New("malformed JSON")
	}
	return value, nil
}

// isJSONObject reports whether data is exactly one JSON object.
func isJSONObject(data []byte) bool {
	value := jsontext.Value(data)
	return value.IsValid() && value.Kind() == '{'
}
