// Package token makes and opens the tokens that travel through a client and come
// back: version 1 of the format that docs/token.md describes for implementers in
// other languages.
//
// The problem: a client holds the state of a request between two rounds, or its
// place in a list, and must not be able to change it, to present it elsewhere, or,
// where that is wanted, to read it. The mechanism: every token has a salt of its
// own, and every key that touches a token is derived with HKDF from the root key,
// the use (which names the purpose) and the token's header.
// Suite HMACSHA256 authenticates the claims; suite AES256GCM also encrypts them
// and carries a commitment to the key, because one AES-GCM ciphertext can be made
// to open under two keys. The context (audience, tenant, environment) is
// authenticated with the claims and not carried. Tags of the principal and of the
// parameters are made with keys of the same token, so they say nothing to whoever
// reads the claims and link no two tokens.
//
// The limit: this package sees claims as bytes. It knows neither clocks nor
// requests; package server decides about those. Since the root never meets more
// than HKDF, and an AES-GCM key never seals a second message, the number of tokens
// per root has no practical bound. The salt is hedged: it is an HMAC over fresh
// random bytes, the context and the claims, so that a random source that repeats
// itself yields equal tokens only for equal contents.
//
// What is lost: suite HMACSHA256 leaves the claims readable. Nothing here prevents
// a token from being presented twice; the token's ID is there for whoever must.
package token

import (
	"encoding/hex"
	"errors"

	"golang.org/x/crypto/cryptobyte"
)

// Version is the first byte of every token of this format.
const Version = 0x01

// Purpose is what a token is for. It fixes the suite and the labels of the keys: a
// token made for one purpose never opens for another. The numbers are those of
// seal.proto.
type Purpose byte

const (
	// RequestState is the state of a request, which the client may read.
	RequestState Purpose = iota + 1
	// EncryptedRequestState is the state of a request, hidden from the client.
	EncryptedRequestState
	// Cursor is where a list goes on, which the client may read.
	Cursor
)

// Suite returns the suite that the purpose fixes, or 0 for what is no purpose.
func (p Purpose) Suite() Suite {
	switch p {
	case RequestState, Cursor:
		return HMACSHA256
	case EncryptedRequestState:
		return AES256GCM
	default:
		return 0
	}
}

// Suite is the second byte of a token: how its claims are protected. What a token
// is for fixes the suite; a token never chooses.
type Suite byte

const (
	// HMACSHA256 authenticates claims that anyone may read.
	HMACSHA256 Suite = 0x01
	// AES256GCM encrypts and authenticates, with a commitment to the key.
	AES256GCM Suite = 0x02
)

// The layout of a token. The commitment and the nonce belong to AES256GCM alone.
const (
	suiteOffset      = 1
	keyIDOffset      = 2
	saltOffset       = keyIDOffset + keyIDSize
	headerSize       = saltOffset + saltSize
	commitmentOffset = headerSize
	nonceOffset      = commitmentOffset + commitmentSize

	keyIDSize      = 8
	saltSize       = 32
	commitmentSize = 32
	nonceSize      = 12
	gcmTagSize     = 16
	macSize        = 32
)

// The labels of key derivation. No two uses of a root share one.
const (
	labelExtract      = "countersign/v1/extract"
	labelKeyID        = "countersign/v1/key-id"
	labelSalt         = "countersign/v1/salt"
	labelEncrypt      = "countersign/v1/requeststate/enc"
	labelCommit       = "countersign/v1/requeststate/commit"
	labelMAC          = "countersign/v1/requeststate/mac"
	labelCursorMAC    = "countersign/v1/cursor/mac"
	labelPrincipalTag = "countersign/v1/tag/principal"
	labelParamsTag    = "countersign/v1/tag/params"
)

// The reasons for which a token is refused, in the order in which they are
// checked.
var (
	// ErrTooLarge means that the token is longer than the caller allows.
	ErrTooLarge = errors.New("token: too large")
	// ErrMalformed means that the text is not canonical base64url without padding,
	// or too short to be a token of the suite.
	ErrMalformed = errors.New("token: malformed")
	// ErrUnknownVersion means that the format is not version 1.
	ErrUnknownVersion = errors.New("token: unknown version")
	// ErrWrongSuite means that the token is of another suite than is wanted.
	ErrWrongSuite = errors.New("token: wrong suite")
	// ErrOtherKey means that the token names another key than the one it is opened
	// with.
	ErrOtherKey = errors.New("token: made with another key")
	// ErrWrongCommitment means that the token's commitment is not of this key.
	ErrWrongCommitment = errors.New("token: wrong commitment")
	// ErrNotAuthentic means that the token was altered, or made in another context or
	// for another purpose.
	ErrNotAuthentic = errors.New("token: not authentic")
)

// KeyID names the root that a token was made with. It is derived from the root and
// says nothing about it.
type KeyID [keyIDSize]byte

// String returns the id in hexadecimal.
func (i KeyID) String() string { return hex.EncodeToString(i[:]) }

// ID names a token in logs and for once-only redemption: the first half of its
// salt.
type ID [16]byte

// String returns the id in hexadecimal.
func (i ID) String() string { return hex.EncodeToString(i[:]) }

// Context names the deployment that a token belongs to. It opens in no other. No
// field may be longer than 65,535 bytes.
type Context struct {
	Audience    string
	Tenant      string
	Environment string
}

// appendTo writes each field after its length, so that no two contexts read the
// same.
func (c Context) appendTo(builder *cryptobyte.Builder) {
	appendText(builder, c.Audience)
	appendText(builder, c.Tenant)
	appendText(builder, c.Environment)
}

func appendText(builder *cryptobyte.Builder, text string) {
	builder.AddUint16LengthPrefixed(func(child *cryptobyte.Builder) { child.AddBytes([]byte(text)) })
}

// associatedData is what is authenticated beside the claims: everything in front
// of the nonce or the claims, and the context.
func associatedData(front []byte, context Context) (*cryptobyte.Builder, error) {
	builder := cryptobyte.NewBuilder(nil)
	builder.AddUint16LengthPrefixed(func(child *cryptobyte.Builder) { child.AddBytes(front) })
	context.appendTo(builder)

	_, err := builder.Bytes()

	return builder, err
}
