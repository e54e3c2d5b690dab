package token_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-mcp/countersign/services/sealer/token"
	"github.com/countersign-mcp/countersign/services/sealer/token/tokentest"
)

var update = flag.Bool("update", false, "write the vectors to testdata instead of comparing them")

const (
	vectorDirectory = "testdata/vectors"
	alphabet        = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

	minute = int64(60_000)
	// vectorNow is the time at which the vectors are sealed: 2026-10-01T00:00:00Z.
	vectorNow = int64(1_790_812_800_000)
)

// reasons are the refusals this package decides, as vectors name them.
var reasons = map[string]error{
	"TOO_LARGE":        token.ErrTooLarge,
	"MALFORMED":        token.ErrMalformed,
	"UNKNOWN_VERSION":  token.ErrUnknownVersion,
	"WRONG_SUITE":      token.ErrWrongSuite,
	"UNKNOWN_KEY":      errUnknownKey,
	"RETIRED_KEY":      errRetiredKey,
	"WRONG_COMMITMENT": token.ErrWrongCommitment,
	"NOT_AUTHENTIC":    token.ErrNotAuthentic,
}

var (
	errUnknownKey = errors.New("unknown key")
	errRetiredKey = errors.New("retired key")
)

func TestVectorsAreWhatTheReferenceMakes(t *testing.T) {
	t.Parallel()

	for name, content := range buildVectors(t).Encode(t) {
		path := filepath.Join(vectorDirectory, name)

		if *update {
			err := os.WriteFile(path, content, 0o644)
			if err != nil {
				t.Fatal(err)
			}

			continue
		}

		committed, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}

		if !bytes.Equal(committed, content) {
			t.Errorf("%s is stale: run go test -run TestVectorsAreWhatTheReferenceMakes -update", path)
		}
	}
}

func TestKeysAgreeWithTheVectors(t *testing.T) {
	t.Parallel()

	for _, vector := range tokentest.Load(t, vectorDirectory).Keys {
		if id := newKey(t, vector.Root).ID(); !bytes.Equal(id[:], vector.KeyID) {
			t.Errorf("%s: got key id %s", vector.Name, id)
		}
	}
}

func TestSealingAgreesWithTheVectors(t *testing.T) {
	t.Parallel()

	for _, vector := range tokentest.Load(t, vectorDirectory).Tokens {
		t.Run(vector.Name, func(t *testing.T) {
			t.Parallel()

			draft, err := newKey(t, vector.Root).Draft(token.Purpose(vector.For()), token.Context(vector.Context),
				vector.ClaimsBeforeTags, bytes.NewReader(vector.Random))
			if err != nil {
				t.Fatal(err)
			}

			if id := draft.ID(); !bytes.Equal(id[:], vector.TokenID) {
				t.Errorf("got token id %s", id)
			}

			checkTags(t, draft.Tags(), vector)

			sealed, err := draft.Seal(vector.Claims)
			if err != nil {
				t.Fatal(err)
			}

			if vector.Suite == int(token.AES256GCM) {
				// The nonce is random: what stands before it is not.
				front := base64.RawURLEncoding.EncodeToString(slices.Concat(vector.Header, vector.Commitment))
				if !strings.HasPrefix(sealed, front[:len(front)-1]) || len(sealed) != len(vector.Token) {
					t.Errorf("got %s", sealed)
				}
			} else if sealed != vector.Token {
				t.Errorf("got %s", sealed)
			}
		})
	}
}

func TestOpeningAgreesWithTheVectors(t *testing.T) {
	t.Parallel()

	for _, vector := range tokentest.Load(t, vectorDirectory).Tokens {
		t.Run(vector.Name, func(t *testing.T) {
			t.Parallel()

			opened, err := open(t, vector.Opening(), vector.Token)
			if err != nil {
				t.Fatal(err)
			}

			if !bytes.Equal(opened.Claims, vector.Claims) {
				t.Errorf("got claims %x", opened.Claims)
			}

			if id := opened.ID(); !bytes.Equal(id[:], vector.TokenID) {
				t.Errorf("got token id %s", id)
			}

			checkTags(t, opened.Tags(), vector)
		})
	}
}

func checkTags(t *testing.T, tags token.Tags, vector tokentest.Token) {
	t.Helper()

	principal, err := tags.Principal(vector.Principal.Issuer, vector.Principal.Subject)
	if err != nil || !bytes.Equal(principal, vector.PrincipalTag) {
		t.Errorf("got principal tag %x, %v", principal, err)
	}

	if vector.Purpose == tokentest.Cursor {
		return
	}

	params, err := tags.Params([sha256.Size]byte(vector.ParamsDigest))
	if err != nil || !bytes.Equal(params, vector.ParamsTag) {
		t.Errorf("got params tag %x, %v", params, err)
	}
}

func TestRefusedVectorsAreRefused(t *testing.T) {
	t.Parallel()

	for _, vector := range tokentest.Load(t, vectorDirectory).Refused {
		t.Run(vector.Name, func(t *testing.T) {
			t.Parallel()

			_, err := open(t, vector.Opening, vector.Token)

			// Any other reason is for whoever reads the claims: the token itself is
			// authentic.
			if want := reasons[vector.Reason]; !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		})
	}
}

func TestEveryAlterationIsRefused(t *testing.T) {
	t.Parallel()

	for _, vector := range tokentest.Load(t, vectorDirectory).Alterations {
		if len(vector.Changes) != len(vector.Token) {
			t.Errorf("%d positions of %d are changed", len(vector.Changes), len(vector.Token))
		}

		for position, refusals := range vector.Changes {
			changed := 0

			for reason, characters := range refusals {
				for _, character := range characters {
					altered := vector.Token[:position] + string(character) + vector.Token[position+1:]
					changed++

					_, err := open(t, vector.Opening, altered)
					if !errors.Is(err, reasons[reason]) {
						t.Fatalf("position %d changed to %q: got %v, want %s", position, character, err, reason)
					}
				}
			}

			if changed < len(alphabet)-1 {
				t.Errorf("position %d has only %d changes", position, changed)
			}
		}

		cut := 0

		for reason, lengths := range vector.Truncations {
			for _, length := range lengths {
				cut++

				_, err := open(t, vector.Opening, vector.Token[:length])
				if !errors.Is(err, reasons[reason]) {
					t.Fatalf("cut to %d characters: got %v, want %s", length, err, reason)
				}
			}
		}

		if cut != len(vector.Token) {
			t.Errorf("%d lengths of %d are cut to", cut, len(vector.Token))
		}
	}
}

func TestACiphertextThatOpensUnderTwoKeysIsRefusedByItsCommitment(t *testing.T) {
	t.Parallel()

	vector := tokentest.Load(t, vectorDirectory).Collision

	for _, half := range []struct{ key, plaintext []byte }{
		{vector.EncryptionKeyA, vector.PlaintextA}, {vector.EncryptionKeyB, vector.PlaintextB},
	} {
		block, err := aes.NewCipher(half.key)
		if err != nil {
			t.Fatal(err)
		}

		opener, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			t.Fatal(err)
		}

		plaintext, err := opener.Open(nil, nil, slices.Concat(vector.Nonce, vector.Ciphertext, vector.Tag), vector.AssociatedData)
		if err != nil || !bytes.Equal(plaintext, half.plaintext) {
			t.Errorf("plain AES-GCM gave %x, %v", plaintext, err)
		}
	}

	_, err := open(t, vector.Opening, vector.Token)
	if !errors.Is(err, token.ErrWrongCommitment) {
		t.Errorf("with the commitment: got %v", err)
	}
}

// open finds the key among those of the opening and opens the token as package
// server does.
func open(tb testing.TB, opening tokentest.Opening, text string) (*token.Opened, error) {
	tb.Helper()

	parsed, err := token.Parse(text, token.Purpose(opening.For()), opening.MaxLength)
	if err != nil {
		return nil, err
	}

	for _, root := range opening.Roots {
		if key := newKey(tb, root); key.ID() == parsed.KeyID() {
			return key.Open(parsed, token.Context(opening.Context))
		}
	}

	for _, root := range opening.RetiredRoots {
		if newKey(tb, root).ID() == parsed.KeyID() {
			return nil, errRetiredKey
		}
	}

	return nil, errUnknownKey
}

func newKey(tb testing.TB, root []byte) *token.Key {
	tb.Helper()

	key, err := token.NewKey(token.NewSecret(root))
	if err != nil {
		tb.Fatal(err)
	}

	return key
}

// reasonFor returns the name of the reason for which this package refuses.
func reasonFor(t *testing.T, opening tokentest.Opening, text string) string {
	t.Helper()

	_, err := open(t, opening, text)

	for name, reason := range reasons {
		if errors.Is(err, reason) {
			return name
		}
	}

	t.Fatalf("%s opened: %v", fmt.Sprintf("%.20s…", text), err)

	return ""
}
