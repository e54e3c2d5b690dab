package token

import (
	"bytes"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// redacted is all that a Secret ever shows.
const redacted = "[redacted]"

var errSecret = errors.New("a secret is not serialized")

// Secret is key material: a root, or what is derived from it once per root.
//
// It prints `[redacted]` under every verb of package fmt and in slog, and refuses
// to be marshalled. The bytes are held in a function, which neither reflection nor
// a printer can look into, also when the Secret is an unexported field of what is
// printed, and which the compiler refuses to compare with ==. Reveal is the only
// way to the bytes: search for it to find every use.
//
// The limit: the bytes are in the process's memory, and the runtime may copy
// them. A core dump or a debugger shows them.
type Secret struct {
	reveal func() []byte
}

// NewSecret copies the bytes into a Secret.
func NewSecret(content []byte) Secret {
	kept := bytes.Clone(content)

	return Secret{reveal: func() []byte { return kept }}
}

// Reveal returns the bytes. The caller changes, keeps and prints none of them.
func (s Secret) Reveal() []byte {
	if s.reveal == nil {
		return nil
	}

	return s.reveal()
}

// Equal compares two secrets in a time that depends on their lengths alone.
func (s Secret) Equal(other Secret) bool {
	return subtle.ConstantTimeCompare(s.Reveal(), other.Reveal()) == 1
}

// Format implements fmt.Formatter for every verb.
func (s Secret) Format(state fmt.State, _ rune) {
	_, _ = io.WriteString(state, redacted) // A printer's own buffer; it has no way to report an error.
}

// String implements fmt.Stringer.
func (s Secret) String() string { return redacted }

// GoString implements fmt.GoStringer.
func (s Secret) GoString() string { return redacted }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON refuses.
func (s Secret) MarshalJSON() ([]byte, error) { return nil, errSecret }

// MarshalText refuses.
func (s Secret) MarshalText() ([]byte, error) { return nil, errSecret }

// MarshalBinary refuses.
func (s Secret) MarshalBinary() ([]byte, error) { return nil, errSecret }

// GobEncode refuses.
func (s Secret) GobEncode() ([]byte, error) { return nil, errSecret }
