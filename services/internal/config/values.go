package config

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Duration is a length of time, written as Go writes it: `30s`, `1h5m`.
type Duration time.Duration

// Duration returns the value as the standard library's type.
func (d Duration) Duration() time.Duration { return time.Duration(d) }

// String returns the text that reads back as the same value.
func (d Duration) String() string { return time.Duration(d).String() }

// UnmarshalYAML reads a duration from a YAML scalar.
func (d *Duration) UnmarshalYAML(node ast.Node) error {
	text, at := scalar(node)

	value, err := time.ParseDuration(text)
	if err != nil {
		return &valueError{at: at, problem: "is not a duration such as 30s or 1h5m"}
	}

	*d = Duration(value)

	return nil
}

// Bytes is a number of bytes, written as a number or with a binary unit: `512`,
// `16KiB`, `4MiB`, `1GiB`.
type Bytes int64

// Int64 returns the number of bytes.
func (b Bytes) Int64() int64 { return int64(b) }

// String returns the text that reads back as the same value.
func (b Bytes) String() string {
	for _, unit := range units {
		if b != 0 && int64(b)%unit.size == 0 {
			return strconv.FormatInt(int64(b)/unit.size, 10) + unit.name
		}
	}

	return strconv.FormatInt(int64(b), 10)
}

// UnmarshalYAML reads a number of bytes from a YAML scalar.
func (b *Bytes) UnmarshalYAML(node ast.Node) error {
	text, at := scalar(node)
	size := int64(1)

	for _, unit := range units {
		if rest, found := strings.CutSuffix(text, unit.name); found {
			text, size = rest, unit.size

			break
		}
	}

	count, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return &valueError{at: at, problem: "is not a number of bytes such as 512, 16KiB or 4MiB"}
	}

	if count > math.MaxInt64/uint64(size) {
		return &valueError{at: at, problem: "is more bytes than can be counted"}
	}

	*b = Bytes(int64(count) * size)

	return nil
}

// units are the suffixes of Bytes, largest first.
var units = []struct {
	name string
	size int64
}{
	{name: "GiB", size: 1 << 30},
	{name: "MiB", size: 1 << 20},
	{name: "KiB", size: 1 << 10},
}

// scalar returns the text of a scalar node, or an empty text for any other node,
// with its place in the file.
func scalar(node ast.Node) (string, *token.Token) {
	at := node.GetToken()

	switch node.(type) {
	case *ast.StringNode, *ast.IntegerNode:
		return at.Value, at
	default:
		return "", at
	}
}

// valueError is a value that one of this package's types does not accept.
type valueError struct {
	at      *token.Token
	problem string
}

// Error implements error.
func (e *valueError) Error() string { return e.problem }
