// Package mirror knows the HTTP headers that mirror members of a request's body
// ("Request Metadata" of Streamable HTTP).
//
// A proxy in front routes, limits and logs by headers, because it does not read
// bodies. That is safe only if the headers say what the body says, so the edge
// refuses a request whose headers do not. A tool may name arguments of its own that
// a client must mirror, with `x-mcp-header` in the input schema: Params reads such a
// schema, and each Param checks one header.
//
// The limit: what a header mirrors is a string, an integer or a boolean that is
// reached through `properties` alone. An annotation anywhere else makes the schema
// invalid, because two readers could disagree about which value it means.
package mirror

import (
	"encoding/base64"
	"errors"
	"strings"
	"unicode/utf8"
)

// The marks of an encoded value ("Value Encoding").
const (
	encodedPrefix = "=?base64?"
	encodedSuffix = "?="
)

// Errors that say why a header says nothing.
var (
	errCharacters = errors.New("holds characters that a header must not have")
	errEncoding   = errors.New("is wrongly encoded")
)

// Plain returns the value of a header that is never encoded. It fails for
// characters that a header must not have.
func Plain(value string) (string, error) {
	for i := range len(value) {
		if c := value[i]; (c < ' ' || c > '~') && c != '\t' {
			return "", errCharacters
		}
	}
	return value, nil
}

// Decode returns what the value of a header says: the value itself, or what is
// encoded in it. It is the exact inverse of Encode, and fails for what no encoder
// makes.
func Decode(value string) (string, error) {
	value, err := Plain(value)
	if err != nil {
		return "", err
	}
	if !marked(value) {
		return value, nil
	}
	inner := value[len(encodedPrefix) : len(value)-len(encodedSuffix)]
	decoded, err := base64.StdEncoding.Strict().DecodeString(inner)
	if err != nil || !utf8.Valid(decoded) {
		return "", errEncoding
	}
	return string(decoded), nil
}

// Encode returns the value of a header that says s.
func Encode(s string) string {
	_, err := Plain(s)
	if err == nil && !marked(s) && strings.Trim(s, " \t") == s {
		return s
	}
	return encodedPrefix + base64.StdEncoding.EncodeToString([]byte(s)) + encodedSuffix
}

// marked says whether a value has the marks of an encoded one.
func marked(value string) bool {
	return len(value) >= len(encodedPrefix)+len(encodedSuffix) && strings.HasPrefix(value, encodedPrefix) && strings.HasSuffix(value, encodedSuffix)
}
