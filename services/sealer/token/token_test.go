package token_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/countersign-mcp/countersign/services/sealer/token"
	"github.com/countersign-mcp/countersign/services/sealer/token/tokentest"
)

var purposes = []token.Purpose{token.RequestState, token.EncryptedRequestState, token.Cursor}

func drawContext(t *rapid.T, label string) token.Context {
	return token.Context{
		Audience:    rapid.StringN(0, 12, -1).Draw(t, label+" audience"),
		Tenant:      rapid.StringN(0, 12, -1).Draw(t, label+" tenant"),
		Environment: rapid.StringN(0, 12, -1).Draw(t, label+" environment"),
	}
}

func TestWhatIsSealedOpensInItsContextAndForItsPurposeAlone(t *testing.T) {
	t.Parallel()

	key := newKey(t, sequence(9, 32))

	rapid.Check(t, func(t *rapid.T) {
		purpose, otherPurpose := rapid.SampledFrom(purposes).Draw(t, "purpose"), rapid.SampledFrom(purposes).Draw(t, "other purpose")
		context, other := drawContext(t, "sealed"), drawContext(t, "other")
		claims := rapid.SliceOf(rapid.Byte()).Draw(t, "claims")

		draft, err := key.Draft(purpose, context, claims, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}

		text, err := draft.Seal(claims)
		if err != nil {
			t.Fatal(err)
		}

		parsed, err := token.Parse(text, purpose, len(text))
		if err != nil {
			t.Fatal(err)
		}

		opened, err := key.Open(parsed, context)
		if err != nil {
			t.Fatal(err)
		}

		if !bytes.Equal(opened.Claims, claims) || opened.ID() != draft.ID() || parsed.ID() != draft.ID() {
			t.Fatal("what was opened is not what was sealed")
		}

		_, err = key.Open(parsed, other)
		if (err == nil) != (context == other) || err != nil && !errors.Is(err, token.ErrNotAuthentic) {
			t.Fatalf("in another context: %v", err)
		}

		parsed, err = token.Parse(text, otherPurpose, len(text))
		if err == nil {
			_, err = key.Open(parsed, context)
		}

		if (err == nil) != (purpose == otherPurpose) {
			t.Fatalf("for another purpose: %v", err)
		}
	})
}

func TestTagsAreOfOneTokenAndOnePrincipal(t *testing.T) {
	t.Parallel()

	key := newKey(t, sequence(9, 32))

	rapid.Check(t, func(t *rapid.T) {
		principal := rapid.SliceOfN(rapid.StringN(0, 8, -1), 2, 2)
		one, other := principal.Draw(t, "one"), principal.Draw(t, "other")

		tag := func(draft *token.Draft, principal []string) []byte {
			tag, err := draft.Tags().Principal(principal[0], principal[1])
			if err != nil {
				t.Fatal(err)
			}

			return tag
		}
		newDraft := func() *token.Draft {
			draft, err := key.Draft(token.RequestState, token.Context{}, nil, rand.Reader)
			if err != nil {
				t.Fatal(err)
			}

			return draft
		}

		draft, next := newDraft(), newDraft()
		if bytes.Equal(tag(draft, one), tag(draft, other)) != slices.Equal(one, other) {
			t.Fatal("the tag does not tell principals apart")
		}

		if bytes.Equal(tag(draft, one), tag(next, one)) {
			t.Fatal("two tokens can be linked by their principal's tag")
		}
	})
}

func TestARandomSourceThatRepeatsItselfYieldsOtherTokensForOtherContents(t *testing.T) {
	t.Parallel()

	key := newKey(t, sequence(9, 32))
	id := func(purpose token.Purpose, context token.Context, claims string) token.ID {
		draft, err := key.Draft(purpose, context, []byte(claims), bytes.NewReader(make([]byte, 32)))
		if err != nil {
			t.Fatal(err)
		}

		return draft.ID()
	}
	seen := make(map[token.ID]bool)

	for _, each := range []token.ID{
		id(token.RequestState, token.Context{Audience: "a"}, "bc"),
		id(token.EncryptedRequestState, token.Context{Audience: "a"}, "bc"),
		id(token.RequestState, token.Context{Tenant: "a"}, "bc"),
		id(token.RequestState, token.Context{Audience: "ab"}, "c"),
		id(token.RequestState, token.Context{Audience: "a"}, "b"),
	} {
		if seen[each] {
			t.Errorf("the salt %s came twice", each)
		}

		seen[each] = true
	}
}

func TestTheEncryptedSuiteHidesTheClaims(t *testing.T) {
	t.Parallel()

	claims := bytes.Repeat([]byte("canary"), 8)
	key := newKey(t, sequence(9, 32))

	for _, purpose := range purposes {
		draft, err := key.Draft(purpose, token.Context{}, claims, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}

		text, err := draft.Seal(claims)
		if err != nil {
			t.Fatal(err)
		}

		// The claims are 48 bytes at an offset that a group of three divides, or not:
		// one of the rotations shows in base64.
		readable := strings.Contains(text, "Y2FuYXJ5") || strings.Contains(text, "YW5hcnlj") || strings.Contains(text, "bmFyeWNh")
		if readable != (purpose.Suite() == token.HMACSHA256) {
			t.Errorf("purpose %d: readable is %t", purpose, readable)
		}
	}
}

func TestDraftFailsWithoutRandomness(t *testing.T) {
	t.Parallel()

	key := newKey(t, sequence(9, 32))
	broken := errors.New("broken")

	_, err := key.Draft(token.RequestState, token.Context{}, nil, iotest.ErrReader(broken))
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}

	_, err = key.Draft(token.RequestState, token.Context{}, nil, bytes.NewReader(make([]byte, 31)))
	if err == nil {
		t.Error("31 random bytes were enough")
	}

	_, err = key.Draft(0, token.Context{}, nil, rand.Reader)
	if err == nil {
		t.Error("a token for no purpose was drafted")
	}

	_, err = key.Draft(token.RequestState, token.Context{Audience: strings.Repeat("a", 1<<16)}, nil, rand.Reader)
	if err == nil {
		t.Error("a context that cannot be framed was accepted")
	}
}

func TestAShortRootIsNoKey(t *testing.T) {
	t.Parallel()

	_, err := token.NewKey(token.NewSecret(make([]byte, token.MinRootSize-1)))
	if err == nil {
		t.Error("a short root was accepted")
	}

	_, err = token.NewKey(token.Secret{})
	if err == nil {
		t.Error("the zero secret was accepted")
	}
}

func TestAKeyOpensNothingThatNamesAnotherKey(t *testing.T) {
	t.Parallel()

	key, other := newKey(t, sequence(9, 32)), newKey(t, sequence(10, 32))

	draft, err := key.Draft(token.RequestState, token.Context{}, nil, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	text, err := draft.Seal(nil)
	if err != nil {
		t.Fatal(err)
	}

	parsed, err := token.Parse(text, token.RequestState, len(text))
	if err != nil {
		t.Fatal(err)
	}

	_, err = other.Open(parsed, token.Context{})
	if !errors.Is(err, token.ErrOtherKey) {
		t.Errorf("got %v", err)
	}
}

// FuzzOpen lets the fuzzer alter the tokens of the vectors and finds a defect if
// anything but the exact text opens.
func FuzzOpen(f *testing.F) {
	genuine := make(map[token.Purpose]tokentest.Token)

	tokens := tokentest.Load(f, vectorDirectory).Tokens
	for position := range tokens {
		vector := &tokens[position]
		if _, found := genuine[token.Purpose(vector.For())]; found {
			continue
		}

		genuine[token.Purpose(vector.For())] = *vector

		f.Add(vector.Token, byte(vector.For()), 0)
		f.Add(vector.Token+"\n", byte(vector.For()), 0)
		f.Add("AQ", byte(vector.For()), 3)
	}

	key := newKey(f, genuine[token.RequestState].Root)

	f.Fuzz(func(t *testing.T, text string, wanted byte, splice int) {
		vector := genuine[token.Purpose(wanted)]

		// Half of the inputs are the genuine token with the fuzzer's text in it, so
		// that the fuzzer gets past the key id.
		if whole := vector.Token; splice > 0 && splice < len(whole) {
			text = whole[:splice] + text + whole[min(len(whole), splice+len(text)):]
		}

		parsed, err := token.Parse(text, token.Purpose(wanted), 4096)
		if err != nil {
			return
		}

		opened, err := key.Open(parsed, token.Context(vector.Context))
		if err == nil && (text != vector.Token || !bytes.Equal(opened.Claims, vector.Claims)) {
			t.Errorf("%q opened", text)
		}
	})
}
