package token_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-mcp/countersign/services/sealer/token"
	"github.com/countersign-mcp/countersign/services/sealer/token/tokentest"
)

// buildVectors makes all vectors.
func buildVectors(t *testing.T) *tokentest.Vectors {
	t.Helper()

	var vectors tokentest.Vectors

	root := sequence(1, 32)
	vectors.Keys = []tokentest.Key{
		referenceKey("K", root),
		referenceKey("K followed by a zero byte", append(bytes.Clone(root), 0)),
		referenceKey("L", sequence(101, 32)),
		referenceKey("a root of 64 bytes", sequence(1, 64)),
		referenceKey("a root of 100 bytes", sequence(1, 100)),
	}

	vectors.Tokens = []tokentest.Token{
		plainVector("HMAC-SHA256", token.HMACSHA256, root),
		plainVector("AES-256-GCM", token.AES256GCM, root),
		emptyVector("HMAC-SHA256, nothing asked", token.HMACSHA256, root),
		emptyVector("AES-256-GCM, nothing asked", token.AES256GCM, root),
		cursorVector("cursor", root, tokentest.Principal{Issuer: "https://login.example", Subject: "user-1"}, "refund"),
		cursorVector("cursor of nobody", root, tokentest.Principal{}, "file:///ünïcode"),
	}

	for position := range vectors.Tokens {
		vectors.Tokens[position] = sealVector(t, vectors.Tokens[position])
	}

	for position := range 2 {
		vector := vectors.Tokens[position]
		for _, label := range []string{
			"countersign/v1/requeststate/enc", "countersign/v1/requeststate/commit", "countersign/v1/requeststate/mac",
			"countersign/v1/tag/principal", "countersign/v1/tag/params",
		} {
			vectors.Labels = append(vectors.Labels, labelVector(label, vectors.Keys[0], vector))
		}

		vectors.Alterations = append(vectors.Alterations, buildAlterations(t, vector))
		vectors.Refused = append(vectors.Refused, buildRefused(t, vector, vectors.Keys)...)
		vectors.Refused = append(vectors.Refused, buildRefusedClaims(t, vector)...)
	}

	cursor := vectors.Tokens[4]
	for _, label := range []string{"countersign/v1/cursor/mac", "countersign/v1/tag/principal"} {
		vectors.Labels = append(vectors.Labels, labelVector(label, vectors.Keys[0], cursor))
	}

	vectors.Refused = append(vectors.Refused, buildRefusedCursors(t, cursor, vectors.Tokens[:2])...)

	vectors.Collision = buildCollision(t, vectors.Tokens[1].Opening(), vectors.Keys[0].Root, vectors.Keys[2].Root)

	return &vectors
}

// labelVector is the key of one use within one token.
func labelVector(label string, key tokentest.Key, vector tokentest.Token) tokentest.Label {
	return tokentest.Label{
		Label: label, Suite: vector.Suite, PseudorandomKey: key.PseudorandomKey, Header: vector.Header,
		Derived: derive(key.PseudorandomKey, label, vector.Header),
	}
}

func sequence(first byte, length int) []byte {
	content := make([]byte, length)
	for position := range content {
		content[position] = first + byte(position)
	}

	return content
}

func plainVector(name string, suite token.Suite, root []byte) tokentest.Token {
	digest := sha256.Sum256([]byte(`{"arguments":{"order":"17"},"name":"refund"}`))
	question := sha256.Sum256([]byte("Refund order 17?"))

	return tokentest.Token{
		Name: name, Suite: int(suite), Root: root, Random: sequence(0x40, 32), Nonce: sequence(0xa0, 12),
		Context:      tokentest.Context{Audience: "https://tools.example/mcp", Tenant: "acme", Environment: "production"},
		Principal:    tokentest.Principal{Issuer: "https://login.example", Subject: "user-1"},
		ParamsDigest: digest[:],
		Decoded: tokentest.Claims{
			IssuedAt: vectorNow, ExpiresAt: vectorNow + 10*minute, Method: "tools/call", Target: "refund",
			ChainID: "chain-1", ChainStarted: vectorNow - minute, ChainExpires: vectorNow + 30*minute, Round: 2, Attempts: 3,
			Questions:    map[string]tokentest.Hex{"confirm": question[:]},
			Answers:      map[string]string{"items": `{"action":"accept","content":{"count":9007199254740993}}`},
			HandlerState: map[string]string{"quote": "ünïcode"},
			Handler:      "refunds", CatalogRevision: "r1",
		},
	}
}

func emptyVector(name string, suite token.Suite, root []byte) tokentest.Token {
	vector := plainVector(name, suite, root)
	vector.Context = tokentest.Context{Audience: "a"}
	vector.Principal = tokentest.Principal{}
	vector.Decoded = tokentest.Claims{
		IssuedAt: vectorNow, ExpiresAt: vectorNow + 1, Method: "resources/read", Target: "file:///a",
		ChainID: "c", ChainStarted: vectorNow, ChainExpires: vectorNow + 1, Round: 1, Attempts: 1,
	}

	return vector
}

func buildAlterations(t *testing.T, vector tokentest.Token) tokentest.Alterations {
	t.Helper()

	built := tokentest.Alterations{
		Token: vector.Token, Opening: vector.Opening(), Truncations: make(map[string][]int),
	}

	for position := range vector.Token {
		refusals := make(map[string]string)

		for _, character := range alphabet + "+/=" {
			if byte(character) == vector.Token[position] {
				continue
			}

			reason := reasonFor(t, built.Opening, vector.Token[:position]+string(character)+vector.Token[position+1:])
			refusals[reason] += string(character)
		}

		built.Changes = append(built.Changes, refusals)

		reason := reasonFor(t, built.Opening, vector.Token[:position])
		built.Truncations[reason] = append(built.Truncations[reason], position)
	}

	return built
}

// refusals collects tokens that are refused, made from one good token.
type refusals struct {
	vector tokentest.Token
	built  []tokentest.Refused
}

// add adds a token that is refused when it is opened as the good one is, but for
// the change.
func (r *refusals) add(name, reason, text string, change func(*tokentest.Opening)) {
	opening := r.vector.Opening()
	if change != nil {
		change(&opening)
	}

	r.built = append(r.built, tokentest.Refused{Name: r.vector.Name + ": " + name, Opening: opening, Token: text, Reason: reason})
}

// buildRefused makes the tokens that are refused before anybody reads their claims.
func buildRefused(t *testing.T, vector tokentest.Token, keys []tokentest.Key) []tokentest.Refused {
	t.Helper()

	list := refusals{vector: vector}
	refuse := list.add
	middle := len(vector.Token) / 2
	for name, insertion := range map[string]string{
		"CR": "\r", "LF": "\n", "CRLF": "\r\n", "padding": "=", "double padding": "==", "space": " ", "zero": "\x00", "non-ASCII": "é",
	} {
		refuse(name+" at the start", "MALFORMED", insertion+vector.Token, nil)
		refuse(name+" in the middle", "MALFORMED", vector.Token[:middle]+insertion+vector.Token[middle:], nil)
		refuse(name+" at the end", "MALFORMED", vector.Token+insertion, nil)
	}

	// The last character holds bits that no byte uses. They must be zero.
	last := strings.IndexByte(alphabet, vector.Token[len(vector.Token)-1])
	for bits := 1; bits < 1<<(len(vector.Token)*6%8); bits++ {
		refuse("trailing bits "+string(rune('0'+bits/10))+string(rune('0'+bits%10)), "MALFORMED",
			vector.Token[:len(vector.Token)-1]+string(alphabet[last+bits]), nil)
	}

	rewrite := func(change func([]byte)) string {
		decoded, err := base64.RawURLEncoding.DecodeString(vector.Token)
		if err != nil {
			t.Fatal(err)
		}

		change(decoded)

		return base64.RawURLEncoding.EncodeToString(decoded)
	}

	refuse("empty", "MALFORMED", "", nil)
	refuse("in the standard alphabet", "MALFORMED", "+/+/"+vector.Token[4:], nil)
	refuse("longer than allowed", "TOO_LARGE", vector.Token, func(o *tokentest.Opening) { o.MaxLength = len(vector.Token) - 1 })
	refuse("longer than allowed and malformed", "TOO_LARGE", vector.Token+"=", func(o *tokentest.Opening) { o.MaxLength = len(vector.Token) })
	refuse("version 0", "UNKNOWN_VERSION", rewrite(func(b []byte) { b[0] = 0 }), nil)
	refuse("version 2", "UNKNOWN_VERSION", rewrite(func(b []byte) { b[0] = 2 }), nil)
	refuse("suite swapped in the token", "WRONG_SUITE", rewrite(func(b []byte) { b[1] ^= 3 }), nil)
	refuse("suite swapped in the token and in what is wanted", map[int]string{1: "WRONG_COMMITMENT", 2: "NOT_AUTHENTIC"}[vector.Suite],
		rewrite(func(b []byte) { b[1] ^= 3 }), func(o *tokentest.Opening) { o.Suite ^= 3 })
	refuse("opened for the other purpose", "WRONG_SUITE", vector.Token, func(o *tokentest.Opening) { o.Suite ^= 3 })
	refuse("key id of another known key", map[int]string{1: "NOT_AUTHENTIC", 2: "WRONG_COMMITMENT"}[vector.Suite],
		rewrite(func(b []byte) { copy(b[2:], keys[2].KeyID) }),
		func(o *tokentest.Opening) { o.Roots = []tokentest.Hex{vector.Root, keys[2].Root} })
	refuse("invented key id", "UNKNOWN_KEY", rewrite(func(b []byte) { b[2] ^= 0x80 }), nil)
	refuse("root followed by a zero byte", "UNKNOWN_KEY", vector.Token, func(o *tokentest.Opening) { o.Roots = []tokentest.Hex{keys[1].Root} })
	refuse("key id of the root followed by a zero byte", map[int]string{1: "NOT_AUTHENTIC", 2: "WRONG_COMMITMENT"}[vector.Suite],
		rewrite(func(b []byte) { copy(b[2:], keys[1].KeyID) }), func(o *tokentest.Opening) { o.Roots = []tokentest.Hex{keys[1].Root} })
	refuse("retired key", "RETIRED_KEY", vector.Token, func(o *tokentest.Opening) { o.RetiredRoots, o.Roots = o.Roots, []tokentest.Hex{} })
	refuse("another audience", "NOT_AUTHENTIC", vector.Token, func(o *tokentest.Opening) { o.Context.Audience += "/" })
	refuse("another tenant", "NOT_AUTHENTIC", vector.Token, func(o *tokentest.Opening) { o.Context.Tenant = "other" })
	refuse("another environment", "NOT_AUTHENTIC", vector.Token, func(o *tokentest.Opening) { o.Context.Environment = "staging" })

	moved := vector
	moved.Context = tokentest.Context{Audience: "ab", Tenant: "c"}
	moved = sealVector(t, moved)
	refuse("context boundary moved", "NOT_AUTHENTIC", moved.Token, func(o *tokentest.Opening) { o.Context = tokentest.Context{Audience: "a", Tenant: "bc"} })

	// The insertions come from a map.
	slices.SortFunc(list.built, func(a, b tokentest.Refused) int { return strings.Compare(a.Name, b.Name) })

	return list.built
}

// buildRefusedClaims makes authentic tokens whose claims are refused.
func buildRefusedClaims(t *testing.T, vector tokentest.Token) []tokentest.Refused {
	t.Helper()

	list := refusals{vector: vector}
	refuse := list.add
	withClaims := func(claims []byte) string {
		changed := vector
		changed.Claims = claims

		return sealClaims(t, changed).Token
	}

	refuse("no claims", "UNREADABLE_CLAIMS", withClaims(nil), nil)
	refuse("claims that are no protobuf", "UNREADABLE_CLAIMS", withClaims([]byte("no protobuf")), nil)
	refuse("claims cut short", "UNREADABLE_CLAIMS", withClaims(vector.Claims[:len(vector.Claims)-1]), nil)
	refuse("an unknown field", "UNREADABLE_CLAIMS", withClaims(slices.Concat(vector.Claims, []byte{0x40, 0x01})), nil)
	// Field 7 again, with a field that RequestState does not have: protobuf merges
	// it into the first.
	refuse("an unknown field within the request state", "UNREADABLE_CLAIMS",
		withClaims(slices.Concat(vector.Claims, []byte{0x3a, 0x02, 0x58, 0x01})), nil)
	refuse("a field of another wire type", "UNREADABLE_CLAIMS", withClaims(slices.Concat(vector.Claims, []byte{0x1d, 1, 2, 3, 4})), nil)
	refuse("no tags", "UNREADABLE_CLAIMS", withClaims(vector.ClaimsBeforeTags), nil)
	refuse("a tag one byte short", "UNREADABLE_CLAIMS",
		withClaims(slices.Concat(vector.Claims, []byte{0x2a, 31}, vector.PrincipalTag[:31])), nil)
	refuse("a method that is not UTF-8", "UNREADABLE_CLAIMS", withClaims(slices.Concat(vector.Claims, []byte{0x1a, 1, 0xff})), nil)

	refuse("sealed a minute and a millisecond from now", "NOT_YET_VALID", vector.Token,
		func(o *tokentest.Opening) { o.Now = vector.Decoded.IssuedAt - minute - 1 })
	refuse("at the end of its time", "EXPIRED", vector.Token, func(o *tokentest.Opening) { o.Now = vector.Decoded.ExpiresAt })
	refuse("expired and for another method", "EXPIRED", vector.Token,
		func(o *tokentest.Opening) { o.Now, o.Method = vector.Decoded.ExpiresAt+1, "prompts/get" })

	beyond := vector
	beyond.Decoded.ExpiresAt = beyond.Decoded.ChainExpires + minute
	refuse("at the end of its chain", "CHAIN_EXPIRED", sealVector(t, beyond).Token,
		func(o *tokentest.Opening) { o.Now = vector.Decoded.ChainExpires })

	refuse("another method", "OTHER_METHOD", vector.Token, func(o *tokentest.Opening) { o.Method = "prompts/get" })
	refuse("another target", "OTHER_TARGET", vector.Token, func(o *tokentest.Opening) { o.Target = "Refund" })
	refuse("another subject", "OTHER_PRINCIPAL", vector.Token, func(o *tokentest.Opening) { o.Principal.Subject = "user-2" })
	refuse("another issuer", "OTHER_PRINCIPAL", vector.Token, func(o *tokentest.Opening) { o.Principal.Issuer += "/" })
	refuse("nobody", "OTHER_PRINCIPAL", vector.Token, func(o *tokentest.Opening) { o.Principal = tokentest.Principal{} })
	refuse("principal boundary moved", "OTHER_PRINCIPAL", vector.Token, func(o *tokentest.Opening) {
		o.Principal = tokentest.Principal{Issuer: vector.Principal.Issuer + "u", Subject: vector.Principal.Subject[1:]}
	})
	refuse("other parameters", "OTHER_PARAMS", vector.Token, func(o *tokentest.Opening) {
		o.ParamsDigest = slices.Concat(vector.ParamsDigest[:31], []byte{vector.ParamsDigest[31] ^ 1})
	})
	refuse("another principal and other parameters", "OTHER_PRINCIPAL", vector.Token, func(o *tokentest.Opening) {
		o.Principal.Subject, o.ParamsDigest = "user-2", sequence(0, 32)
	})
	refuse("a round too many", "TOO_MANY_ROUNDS", vector.Token, func(o *tokentest.Opening) { o.MaxRound = vector.Decoded.Round - 1 })
	refuse("a round too many, other parameters", "OTHER_PARAMS", vector.Token, func(o *tokentest.Opening) {
		o.MaxRound, o.ParamsDigest = vector.Decoded.Round-1, sequence(0, 32)
	})

	return list.built
}
