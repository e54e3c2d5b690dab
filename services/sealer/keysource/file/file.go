// Package file is a source of keys that reads them from one file.
//
// It serves an installation without a key service: the file is made with `sealer
// keys new`, rotated with `sealer keys rotate`, and given to every replica. It is
// YAML, or JSON, which is YAML too:
//
//	minVersion: 1
//	versions:
//	  - number: 1
//	    created: 2026-10-01T00:00:00Z
//	    root: uniformly random bytes in base64, at least 32
//
// The file is read anew every time the source is asked. Versions below minVersion
// are retired: they stay in the file so that a token made with one is told from a
// foreign one, and they open nothing. A file that others than its owner may read
// is refused.
//
// The limit: the file protects the keys as well as the file system does. What is
// lost: nothing rotates by itself, and whoever replaces the file must see to it
// that all replicas get it within the hard age.
package file

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/countersign-mcp/countersign/services/internal/config"
	"github.com/countersign-mcp/countersign/services/internal/regularfile"
	"github.com/countersign-mcp/countersign/services/sealer/keyring"
	"github.com/countersign-mcp/countersign/services/sealer/token"
)

// maxSize bounds a key file; a version needs some hundred bytes.
const maxSize = 1 << 20

// Source reads versions from a file.
type Source struct{ path string }

// New makes a source of the file at path. It reads nothing yet.
func New(path string) *Source { return &Source{path: path} }

// Versions implements keyring.Source.
func (s *Source) Versions(ctx context.Context) ([]keyring.Version, error) {
	err := ctx.Err()
	if err != nil {
		return nil, fmt.Errorf("read key file %q: %w", s.path, err)
	}

	return Read(s.path)
}

// Read returns the versions in a key file, in the order of the file.
func Read(path string) ([]keyring.Version, error) {
	content, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("read key file %q: %w", path, err)
	}

	found, err := parse(path, content)
	if err != nil {
		return nil, fmt.Errorf("read key file: %w", err)
	}

	return found.keys(path)
}

// document is the content of a key file.
type document struct {
	MinVersion uint64    `yaml:"minVersion"`
	Versions   []version `yaml:"versions"`
}

type version struct {
	Number  uint64   `yaml:"number"`
	Created string   `yaml:"created"`
	Root    rootText `yaml:"root"`
}

// knownField matches the paths of the fields of a document.
var knownField = regexp.MustCompile(`^(minVersion|versions(\[\d+\](\.(number|created|root))?)?)$`)

// rootText is the text of a root, kept where it does not print.
type rootText struct{ text token.Secret }

// UnmarshalYAML takes the text of any scalar.
func (r *rootText) UnmarshalYAML(node ast.Node) error {
	r.text = token.NewSecret([]byte(node.GetToken().Value))

	return nil
}

func parse(path string, content []byte) (*document, error) {
	var found document

	err := config.Decode(path, content, &found)

	// A field's name is shown only if it is one: in a file that is broken, a root may
	// stand where a name should.
	if positioned, ok := errors.AsType[*config.Error](err); ok && !knownField.MatchString(positioned.Field) {
		positioned.Field = ""
	}

	if err != nil {
		return nil, err
	}

	return &found, nil
}

// keys decodes the versions.
func (d *document) keys(path string) ([]keyring.Version, error) {
	versions := make([]keyring.Version, 0, len(d.Versions))

	for _, each := range d.Versions {
		created, err := time.Parse(time.RFC3339, each.Created)
		if err != nil {
			return nil, fmt.Errorf("key file %q: version %d: created is not a time such as 2026-10-01T00:00:00Z", path, each.Number)
		}

		root, err := base64.StdEncoding.Strict().AppendDecode(nil, each.Root.text.Reveal())
		if err != nil {
			return nil, fmt.Errorf("key file %q: version %d: root is not base64", path, each.Number)
		}

		if len(root) < token.MinRootSize {
			return nil, fmt.Errorf("key file %q: version %d: root has %d bytes, want at least %d", path, each.Number, len(root), token.MinRootSize)
		}

		versions = append(versions, keyring.Version{
			Number: each.Number, Created: created, Root: token.NewSecret(root), Retired: each.Number < d.MinVersion,
		})
	}

	return versions, nil
}

// read returns the content of a file that its owner alone may read.
func read(path string) ([]byte, error) {
	return regularfile.Read(path, maxSize, func(mode fs.FileMode) error {
		const others fs.FileMode = 0o077
		if mode.Perm()&others != 0 {
			return fmt.Errorf("others than its owner may use it: its mode is %04o, want 0600 or 0400", mode.Perm())
		}

		return nil
	})
}
