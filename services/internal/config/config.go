// Package config reads the configuration file of a service.
//
// The problem: a misspelt key in a YAML file is silently ignored by most
// decoders, and the service then runs with a default that nobody chose. The
// mechanism: a file is decoded strictly into a typed struct that already holds
// the defaults; an unknown key, a key given twice, a value of another type and a
// second document are errors that name the file, the line and the field.
//
// The limit: what a value means is for the service to check, after Load. What is
// lost: the value itself never appears in an error, because a configuration file
// may hold secrets, so the reader of the error has to look at the line it names.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Load reads the YAML file at path into the struct that into points to. Fields
// the file does not name keep the value they have.
func Load(path string, into any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}

	return Decode(path, content, into)
}

// Decode is Load for content that is already in memory. Name is what errors call
// the file.
func Decode(name string, content []byte, into any) error {
	file, err := parser.ParseBytes(content, 0)
	if err != nil {
		return &Error{File: name, Line: lineOf(err), Problem: problem(err)}
	}

	document, err := only(file)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}

	if document == nil {
		return nil
	}

	decoder := yaml.NewDecoder(bytes.NewReader(content), yaml.Strict())

	err = decoder.Decode(into)
	if err != nil {
		return &Error{File: name, Line: lineOf(err), Field: fieldOf(document, err), Problem: problem(err)}
	}

	return nil
}

// Error says where a configuration file is wrong and how, never what it holds
// there.
type Error struct {
	// File is the file's name.
	File string
	// Line is the line, counted from 1; 0 if it is not known.
	Line int
	// Field is the path of the field, for example `keys.refresh`; empty if it is
	// not known.
	Field string
	// Problem is what is wrong, as half a sentence.
	Problem string
}

// Error implements error.
func (e *Error) Error() string {
	var text strings.Builder

	text.WriteString(e.File)

	if e.Line > 0 {
		fmt.Fprintf(&text, ":%d", e.Line)
	}

	text.WriteString(": ")

	if e.Field != "" {
		fmt.Fprintf(&text, "field %q: ", e.Field)
	}

	text.WriteString(e.Problem)

	return text.String()
}

// only returns the one document of a file, or nil for a file that has none.
func only(file *ast.File) (ast.Node, error) {
	var found ast.Node

	for _, document := range file.Docs {
		if document.Body == nil {
			continue
		}

		if _, comments := document.Body.(*ast.CommentGroupNode); comments {
			continue
		}

		if found != nil {
			return nil, errors.New("holds more than one YAML document")
		}

		found = document.Body
	}

	return found, nil
}

// problem words a decoder's error without the text that it was made from.
func problem(err error) string {
	var (
		value     *valueError
		unknown   *yaml.UnknownFieldError
		duplicate *yaml.DuplicateKeyError
		mismatch  *yaml.TypeError
		overflow  *yaml.OverflowError
		shape     *yaml.UnexpectedNodeTypeError
	)

	switch {
	case errors.As(err, &value):
		return value.problem
	case errors.As(err, &unknown):
		return "is not a field of this configuration"
	case errors.As(err, &duplicate):
		return "is given more than once"
	case errors.As(err, &mismatch):
		return fmt.Sprintf("has a value of the wrong type, want %s", mismatch.DstType.Kind())
	case errors.As(err, &overflow):
		return fmt.Sprintf("is a number that does not fit %s", overflow.DstType.Kind())
	case errors.As(err, &shape):
		return fmt.Sprintf("has the wrong shape, want a YAML %s and not a %s", shape.Expected.YAMLName(), shape.Actual.YAMLName())
	default:
		return "is not valid YAML"
	}
}

// tokenOf returns the place in the file that an error is about.
func tokenOf(err error) *token.Token {
	if value, found := errors.AsType[*valueError](err); found {
		return value.at
	}

	if positioned, found := errors.AsType[yaml.Error](err); found {
		return positioned.GetToken()
	}

	return nil
}

func lineOf(err error) int {
	at := tokenOf(err)
	if at == nil || at.Position == nil {
		return 0
	}

	return at.Position.Line
}

// fieldOf returns the path of the field that an error is about.
func fieldOf(document ast.Node, err error) string {
	at := tokenOf(err)
	if at == nil || at.Position == nil {
		return ""
	}

	search := pathSearch{offset: at.Position.Offset}
	ast.Walk(&search, document)

	return strings.TrimPrefix(search.path, "$.")
}

// pathSearch finds the path of the node that starts at an offset.
type pathSearch struct {
	offset int
	path   string
}

// Visit implements ast.Visitor.
func (s *pathSearch) Visit(node ast.Node) ast.Visitor {
	if s.path != "" {
		return nil
	}

	at := node.GetToken()
	if at == nil || at.Position == nil || at.Position.Offset != s.offset {
		return s
	}

	// A mapping's own token is that of its first key or of a colon: the path
	// wanted is that of the scalar.
	switch node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return s
	default:
		s.path = node.GetPath()

		return nil
	}
}
