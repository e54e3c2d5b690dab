// Package tokentest reads the known-answer vectors of the token format, for the
// tests of everything that makes or opens tokens.
//
// The files are JSON, so that an implementation in any language can be checked
// against them: bytes are in hexadecimal, tokens are text as they travel, times
// are milliseconds since the Unix epoch, and a reason is the name of a refusal
// reason in seal.proto without its prefix.
package tokentest

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Hex is bytes that JSON holds in hexadecimal.
type Hex []byte

// MarshalText implements encoding.TextMarshaler.
func (h Hex) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(h)), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Hex) UnmarshalText(text []byte) error {
	decoded, err := hex.DecodeString(string(text))
	if err != nil {
		return fmt.Errorf("decode hexadecimal: %w", err)
	}

	*h = decoded

	return nil
}

// Key is what is derived from a root alone.
type Key struct {
	Name            string `json:"name"`
	Root            Hex    `json:"root"`
	PseudorandomKey Hex    `json:"pseudorandomKey"`
	KeyID           Hex    `json:"keyId"`
	SaltKey         Hex    `json:"saltKey"`
}

// Label is a key derived for one use within one token.
type Label struct {
	Label           string `json:"label"`
	Suite           int    `json:"suite"`
	PseudorandomKey Hex    `json:"pseudorandomKey"`
	Header          Hex    `json:"header"`
	Derived         Hex    `json:"derived"`
}

// Context is the deployment a token belongs to.
type Context struct {
	Audience    string `json:"audience"`
	Tenant      string `json:"tenant"`
	Environment string `json:"environment"`
}

// Principal is on whose behalf a request is made.
type Principal struct {
	Issuer  string `json:"issuer"`
	Subject string `json:"subject"`
}

// Cursor is the value of a vector's purpose where the token is a cursor. Elsewhere
// there is none, and the token is request state, of the suite's kind.
const Cursor = "cursor"

// purposeOf returns the number of a purpose in seal.proto and in package token.
func purposeOf(name string, suite int) int {
	if name == Cursor {
		return 3
	}

	return suite
}

// Token is a good token with every value on the way to it. Which fields are absent
// depends on the suite and on the purpose.
type Token struct {
	Name             string    `json:"name"`
	Purpose          string    `json:"purpose,omitempty"`
	Suite            int       `json:"suite"`
	Root             Hex       `json:"root"`
	Random           Hex       `json:"random"`
	Context          Context   `json:"context"`
	Principal        Principal `json:"principal"`
	ParamsDigest     Hex       `json:"paramsDigest,omitempty"`
	ClaimsBeforeTags Hex       `json:"claimsBeforeTags"`
	SaltInput        Hex       `json:"saltInput"`
	Salt             Hex       `json:"salt"`
	TokenID          Hex       `json:"tokenId"`
	Header           Hex       `json:"header"`
	PrincipalTagKey  Hex       `json:"principalTagKey"`
	PrincipalTag     Hex       `json:"principalTag"`
	ParamsTagKey     Hex       `json:"paramsTagKey,omitempty"`
	ParamsTag        Hex       `json:"paramsTag,omitempty"`
	Claims           Hex       `json:"claims"`
	Commitment       Hex       `json:"commitment,omitempty"`
	EncryptionKey    Hex       `json:"encryptionKey,omitempty"`
	MACKey           Hex       `json:"macKey,omitempty"`
	AssociatedData   Hex       `json:"associatedData"`
	Nonce            Hex       `json:"nonce,omitempty"`
	Token            string    `json:"token"`
	// Decoded are the claims of request state, DecodedCursor those of a cursor.
	Decoded       Claims       `json:"decoded,omitzero"`
	DecodedCursor CursorClaims `json:"decodedCursor,omitzero"`
}

// For returns the number of the purpose that the token is for.
func (t *Token) For() int { return purposeOf(t.Purpose, t.Suite) }

// Opening returns the opening that the token was made for, at the time at which it
// was sealed.
func (t *Token) Opening() Opening {
	opening := Opening{
		Purpose: t.Purpose, Suite: t.Suite, Roots: []Hex{t.Root}, Context: t.Context, Principal: t.Principal, ParamsDigest: t.ParamsDigest,
		Method: t.Decoded.Method, Target: t.Decoded.Target, MaxRound: 8, MaxLength: 16384, Now: t.Decoded.IssuedAt,
	}
	if t.Purpose == Cursor {
		opening.Method, opening.MaxRound, opening.Now = t.DecodedCursor.Method, 0, t.DecodedCursor.IssuedAt
	}

	return opening
}

// CursorClaims are a cursor's claims in words, without the tag.
type CursorClaims struct {
	IssuedAt  int64  `json:"issuedAtMs"`
	ExpiresAt int64  `json:"expiresAtMs"`
	Method    string `json:"method"`
	After     string `json:"after"`
}

// Claims are the claims of request state in words, without the tags.
type Claims struct {
	IssuedAt        int64             `json:"issuedAtMs"`
	ExpiresAt       int64             `json:"expiresAtMs"`
	Method          string            `json:"method"`
	Target          string            `json:"target"`
	ChainID         string            `json:"chainId"`
	ChainStarted    int64             `json:"chainStartedMs"`
	ChainExpires    int64             `json:"chainExpiresMs"`
	Round           uint32            `json:"round"`
	Attempts        uint32            `json:"attempts"`
	Questions       map[string]Hex    `json:"questions"`
	Answers         map[string]string `json:"answers"`
	HandlerState    map[string]string `json:"handlerState"`
	Handler         string            `json:"handler"`
	CatalogRevision string            `json:"catalogRevision"`
}

// Opening is everything that decides whether a token opens.
type Opening struct {
	Purpose      string    `json:"purpose,omitempty"`
	Suite        int       `json:"suite"`
	Roots        []Hex     `json:"roots"`
	RetiredRoots []Hex     `json:"retiredRoots,omitempty"`
	Context      Context   `json:"context"`
	Principal    Principal `json:"principal"`
	ParamsDigest Hex       `json:"paramsDigest,omitempty"`
	Method       string    `json:"method"`
	Target       string    `json:"target,omitempty"`
	MaxRound     uint32    `json:"maxRound,omitempty"`
	MaxLength    int       `json:"maxLength"`
	Now          int64     `json:"nowMs"`
}

// For returns the number of the purpose that the token must be for.
func (o *Opening) For() int { return purposeOf(o.Purpose, o.Suite) }

// Refused is a token that must not open, and why.
type Refused struct {
	Name    string  `json:"name"`
	Opening Opening `json:"opening"`
	Token   string  `json:"token"`
	Reason  string  `json:"reason"`
}

// Alterations are all single-character changes and all truncations of one token.
type Alterations struct {
	Token   string  `json:"token"`
	Opening Opening `json:"opening"`
	// Changes has an entry for each position: the characters that may stand there
	// instead, by the reason for which the altered token is refused.
	Changes []map[string]string `json:"changes"`
	// Truncations holds the lengths to which the token may be cut, by the reason
	// for which the cut token is refused.
	Truncations map[string][]int `json:"truncations"`
}

// Collision is one AES-GCM ciphertext that opens under the keys of two roots. The
// token names root B and carries the commitment of root A.
type Collision struct {
	RootA          Hex     `json:"rootA"`
	RootB          Hex     `json:"rootB"`
	EncryptionKeyA Hex     `json:"encryptionKeyA"`
	EncryptionKeyB Hex     `json:"encryptionKeyB"`
	AssociatedData Hex     `json:"associatedData"`
	Nonce          Hex     `json:"nonce"`
	Ciphertext     Hex     `json:"ciphertext"`
	Tag            Hex     `json:"tag"`
	PlaintextA     Hex     `json:"plaintextA"`
	PlaintextB     Hex     `json:"plaintextB"`
	Token          string  `json:"token"`
	Opening        Opening `json:"opening"`
	Reason         string  `json:"reason"`
}

// Vectors are all vectors.
type Vectors struct {
	Keys        []Key
	Labels      []Label
	Tokens      []Token
	Refused     []Refused
	Alterations []Alterations
	Collision   Collision
}

// files names the file of each part.
func (v *Vectors) files() map[string]any {
	return map[string]any{
		"keys.json":        &v.Keys,
		"labels.json":      &v.Labels,
		"tokens.json":      &v.Tokens,
		"refused.json":     &v.Refused,
		"alterations.json": &v.Alterations,
		"collision.json":   &v.Collision,
	}
}

// Load reads the vectors in the directory and fails the test if one is missing.
func Load(tb testing.TB, directory string) *Vectors {
	tb.Helper()

	var vectors Vectors

	for name, part := range vectors.files() {
		content, err := os.ReadFile(filepath.Join(directory, name))
		if err != nil {
			tb.Fatal(err)
		}

		decoder := json.NewDecoder(bytes.NewReader(content))
		decoder.DisallowUnknownFields()

		err = decoder.Decode(part)
		if err != nil {
			tb.Fatalf("%s: %v", name, err)
		}
	}

	return &vectors
}

// Encode returns the content of each file.
func (v *Vectors) Encode(tb testing.TB) map[string][]byte {
	tb.Helper()

	encoded := make(map[string][]byte)

	for name, part := range v.files() {
		var content bytes.Buffer

		encoder := json.NewEncoder(&content)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", " ")

		err := encoder.Encode(part)
		if err != nil {
			tb.Fatal(err)
		}

		encoded[name] = content.Bytes()
	}

	return encoded
}
