package token_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	sealv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/seal/v1"
	"github.com/countersign-mcp/countersign/services/sealer/token"
	"github.com/countersign-mcp/countersign/services/sealer/token/tokentest"
)

// The format once more, written down plainly and sharing nothing with the package
// but the hash: the vectors are made with it, and the package must agree.

func mac(key []byte, parts ...[]byte) []byte {
	hash := hmac.New(sha256.New, key)
	for _, part := range parts {
		hash.Write(part)
	}

	return hash.Sum(nil)
}

// expand is HKDF-Expand of RFC 5869 for at most one block of output.
func expand(pseudorandom []byte, information string, size int) []byte {
	return mac(pseudorandom, []byte(information), []byte{1})[:size]
}

func lengthPrefixed(parts ...[]byte) []byte {
	var framed []byte
	for _, part := range parts {
		framed = binary.BigEndian.AppendUint16(framed, uint16(len(part)))
		framed = append(framed, part...)
	}

	return framed
}

func referenceKey(name string, root []byte) tokentest.Key {
	salt := sha256.Sum256([]byte("countersign/v1/extract"))
	pseudorandom := mac(salt[:], root)

	return tokentest.Key{
		Name: name, Root: root, PseudorandomKey: pseudorandom,
		KeyID:   expand(pseudorandom, "countersign/v1/key-id", 8),
		SaltKey: expand(pseudorandom, "countersign/v1/salt", 32),
	}
}

func derive(pseudorandom []byte, label string, header []byte) []byte {
	return expand(pseudorandom, label+"\x00"+string(header), 32)
}

func contextFields(context tokentest.Context) [][]byte {
	return [][]byte{[]byte(context.Audience), []byte(context.Tenant), []byte(context.Environment)}
}

// draftVector fills in everything of a token but the token and its nonce.
func draftVector(t *testing.T, vector tokentest.Token) tokentest.Token {
	t.Helper()

	key := referenceKey("", vector.Root)
	vector.PrincipalTag, vector.ParamsTag = nil, nil
	vector.ClaimsBeforeTags = protobufClaims(t, vector)

	vector.SaltInput = bytes.Join([][]byte{
		{byte(vector.Suite)}, vector.Random, lengthPrefixed(contextFields(vector.Context)...), vector.ClaimsBeforeTags,
	}, nil)
	vector.Salt = mac(key.SaltKey, vector.SaltInput)
	vector.TokenID = vector.Salt[:16]
	vector.Header = bytes.Join([][]byte{{1, byte(vector.Suite)}, key.KeyID, vector.Salt}, nil)

	vector.PrincipalTagKey = derive(key.PseudorandomKey, "countersign/v1/tag/principal", vector.Header)
	vector.PrincipalTag = mac(vector.PrincipalTagKey, lengthPrefixed([]byte(vector.Principal.Issuer), []byte(vector.Principal.Subject)))

	if vector.Purpose != tokentest.Cursor {
		vector.ParamsTagKey = derive(key.PseudorandomKey, "countersign/v1/tag/params", vector.Header)
		vector.ParamsTag = mac(vector.ParamsTagKey, vector.ParamsDigest)
	}

	vector.Claims = protobufClaims(t, vector)

	front := []byte(vector.Header)

	switch {
	case vector.Purpose == tokentest.Cursor:
		vector.MACKey = derive(key.PseudorandomKey, "countersign/v1/cursor/mac", vector.Header)
	case vector.Suite == int(token.AES256GCM):
		vector.EncryptionKey = derive(key.PseudorandomKey, "countersign/v1/requeststate/enc", vector.Header)
		vector.Commitment = derive(key.PseudorandomKey, "countersign/v1/requeststate/commit", vector.Header)
		front = bytes.Join([][]byte{vector.Header, vector.Commitment}, nil)
	default:
		vector.MACKey = derive(key.PseudorandomKey, "countersign/v1/requeststate/mac", vector.Header)
	}

	vector.AssociatedData = lengthPrefixed(append([][]byte{front}, contextFields(vector.Context)...)...)

	return vector
}

// sealVector fills in everything of a token.
func sealVector(t *testing.T, vector tokentest.Token) tokentest.Token {
	t.Helper()

	return sealClaims(t, draftVector(t, vector))
}

// sealClaims makes the token of a draft, whatever its claims are.
func sealClaims(t *testing.T, vector tokentest.Token) tokentest.Token {
	t.Helper()

	if vector.Suite == int(token.HMACSHA256) {
		vector.Nonce = nil
		tag := mac(vector.MACKey, vector.AssociatedData,
			binary.BigEndian.AppendUint32(nil, uint32(len(vector.Claims))), vector.Claims)
		vector.Token = base64.RawURLEncoding.EncodeToString(slices.Concat(vector.Header, vector.Claims, tag))

		return vector
	}

	cipher := newGCM(t, vector.EncryptionKey, vector.Nonce)
	ciphertext := xor(vector.Claims, cipher.stream(len(vector.Claims)))
	tag := cipher.tag(vector.AssociatedData, ciphertext).bytes()
	vector.Token = base64.RawURLEncoding.EncodeToString(
		slices.Concat(vector.Header, vector.Commitment, vector.Nonce, ciphertext, tag))

	return vector
}

func encode(t *testing.T, claims proto.Message) []byte {
	t.Helper()

	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}

	return encoded
}

// protobufClaims encodes the claims of a vector with the tags that it has.
func protobufClaims(t *testing.T, vector tokentest.Token) []byte {
	t.Helper()

	if cursor := vector.DecodedCursor; vector.Purpose == tokentest.Cursor {
		return encode(t, &sealv1.CursorClaims{
			IssuedAtMs: cursor.IssuedAt, ExpiresAtMs: cursor.ExpiresAt, Method: cursor.Method,
			PrincipalTag: vector.PrincipalTag, Cursor: &sealv1.Cursor{After: cursor.After},
		})
	}

	claims := vector.Decoded
	state := &sealv1.RequestState{
		ChainId: claims.ChainID, ChainStartedMs: claims.ChainStarted, ChainExpiresMs: claims.ChainExpires,
		Round: claims.Round, Attempts: claims.Attempts, Handler: claims.Handler, CatalogRevision: claims.CatalogRevision,
	}

	for key, digest := range claims.Questions {
		state.Questions = append(state.Questions, &sealv1.AskedQuestion{Key: key, Digest: digest})
	}

	for key, response := range claims.Answers {
		state.Answers = append(state.Answers, &sealv1.RecordedAnswer{Key: key, Response: []byte(response)})
	}

	for key, value := range claims.HandlerState {
		state.HandlerState = append(state.HandlerState, &sealv1.StateEntry{Key: key, Value: value})
	}

	return encode(t, &sealv1.RequestStateClaims{
		IssuedAtMs: claims.IssuedAt, ExpiresAtMs: claims.ExpiresAt,
		Method: claims.Method, Target: claims.Target, RequestState: state,
		PrincipalTag: vector.PrincipalTag, ParamsTag: vector.ParamsTag,
	})
}
