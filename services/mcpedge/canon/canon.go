// Package canon gives JSON a canonical form, so that a digest says whether two
// requests mean the same.
//
// A request state is bound to the parameters of the request it belongs to. The
// client sends them again on the retry, perhaps with members in another order or
// with other white space, and the binding must hold for what is equal and break
// for what is not. RFC 8785 is not enough: it reads numbers as doubles, so that
// 9007199254740993 and 9007199254740992 would be the same order number.
//
// The canonical form is made from tokens: members sorted by the UTF-8 bytes of
// their names, no white space, strings escaped only where JSON demands it, and a
// number as its significant digits and a decimal exponent, so that 1, 1.0 and
// 10e-1 are one number and no digit is ever lost. Duplicate names, invalid UTF-8
// and lone surrogates are refused, because two parsers may read them differently.
//
// The limit: an exponent beyond ±MaxExponent is refused. No such number means
// anything, and arithmetic on one is a way to stop a server. What is lost is the
// spelling: the form is for digests, never for passing on.
package canon

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth is how deeply arrays and objects may be nested.
const MaxDepth = 256

// Errors that say why a text has no canonical form.
var (
	// ErrSyntax: not one JSON value of valid UTF-8 with unique member names.
	ErrSyntax = errors.New("not a strict JSON value")
	// ErrDepth: nested deeper than MaxDepth.
	ErrDepth = fmt.Errorf("nested deeper than %d", MaxDepth)
	// ErrExponent: a number whose decimal exponent is beyond ±MaxExponent.
	ErrExponent = fmt.Errorf("a number's exponent is beyond ±%d", MaxExponent)
)

// unbound are the members of a request's parameters that change from one round
// to the next and are therefore no part of what a request state is bound to.
var unbound = map[string]bool{"_meta": true, "inputResponses": true, "requestState": true}

// Append appends the canonical form of the one JSON value in text to dst.
// It fails with ErrSyntax, ErrDepth or ErrExponent.
func Append(dst, text []byte) ([]byte, error) {
	return appendDocument(dst, text, nil)
}

// ParamsDigest is the SHA-256 digest of a request's parameters in canonical form,
// without the members `_meta`, `inputResponses` and `requestState`. Absent
// parameters (an empty text) are an empty object. It fails as Append does.
func ParamsDigest(params []byte) ([sha256.Size]byte, error) {
	if len(params) == 0 {
		params = []byte("{}")
	}
	form, err := appendDocument(nil, params, unbound)
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	return sha256.Sum256(form), nil
}

// Digest is the SHA-256 digest of a JSON value in canonical form. It fails as
// Append does.
func Digest(text []byte) ([sha256.Size]byte, error) {
	form, err := Append(nil, text)
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	return sha256.Sum256(form), nil
}

func appendDocument(dst, text []byte, leaveOut map[string]bool) ([]byte, error) {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(text))
	dst, err := appendValue(dst, decoder, leaveOut)
	if err != nil {
		return nil, err
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, ErrSyntax
	}
	return dst, nil
}

func appendValue(dst []byte, decoder *jsontext.Decoder, leaveOut map[string]bool) ([]byte, error) {
	token, err := decoder.ReadToken()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSyntax, err)
	}
	switch token.Kind() {
	case '{':
		return appendObject(dst, decoder, leaveOut)
	case '[':
		return appendArray(dst, decoder)
	case '"':
		return appendString(dst, token.String())
	case '0':
		return appendNumber(dst, token.String())
	default: // null, true, false
		return append(dst, token.String()...), nil
	}
}

func appendArray(dst []byte, decoder *jsontext.Decoder) ([]byte, error) {
	if decoder.StackDepth() > MaxDepth {
		return nil, ErrDepth
	}
	dst = append(dst, '[')
	for i := 0; decoder.PeekKind() != ']'; i++ {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendValue(dst, decoder, nil); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), closeContainer(decoder)
}

// member is one member of an object: its name, and the canonical form of name
// and value as the bytes from start to end of the text made so far.
type member struct {
	name       string
	start, end int
}

func appendObject(dst []byte, decoder *jsontext.Decoder, leaveOut map[string]bool) ([]byte, error) {
	if decoder.StackDepth() > MaxDepth {
		return nil, ErrDepth
	}
	var members []member
	var text []byte
	for decoder.PeekKind() != '}' {
		token, err := decoder.ReadToken()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrSyntax, err)
		}
		name, start := token.String(), len(text)
		if text, err = appendString(text, name); err != nil {
			return nil, err
		}
		if text, err = appendValue(append(text, ':'), decoder, nil); err != nil {
			return nil, err
		}
		if leaveOut[name] {
			text = text[:start]
			continue
		}
		members = append(members, member{name, start, len(text)})
	}
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	dst = append(dst, '{')
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, text[m.start:m.end]...)
	}
	return append(dst, '}'), closeContainer(decoder)
}

// closeContainer reads the end of the array or object that the decoder is in.
func closeContainer(decoder *jsontext.Decoder) error {
	if _, err := decoder.ReadToken(); err != nil {
		return fmt.Errorf("%w: %w", ErrSyntax, err)
	}
	return nil
}

func appendString(dst []byte, s string) ([]byte, error) {
	dst, err := jsontext.AppendQuote(dst, s)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSyntax, err)
	}
	return dst, nil
}
