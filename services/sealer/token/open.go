package token

import (
	"crypto/hmac"
	"crypto/subtle"
	"fmt"
	"strings"
)

// Parsed is a token that is well formed and not yet known to be authentic. Nothing
// it says may be relied on, except to find the key to open it with.
type Parsed struct {
	purpose Purpose
	framed  []byte
}

// Opened is an authentic token.
type Opened struct {
	// Claims are the bytes that were sealed.
	Claims []byte

	key    *Key
	header []byte
}

// Parse reads a token for the purpose and of at most maxLength characters. It
// returns ErrTooLarge, ErrMalformed, ErrUnknownVersion or ErrWrongSuite.
func Parse(text string, purpose Purpose, maxLength int) (*Parsed, error) {
	if len(text) > maxLength {
		return nil, ErrTooLarge
	}

	if strings.ContainsAny(text, "\r\n") {
		return nil, ErrMalformed
	}

	suite := purpose.Suite()

	framed, err := encoding.DecodeString(text)
	if err != nil || len(framed) < minSize(suite) {
		return nil, ErrMalformed
	}

	if framed[0] != Version {
		return nil, ErrUnknownVersion
	}

	if suite == 0 || Suite(framed[suiteOffset]) != suite {
		return nil, ErrWrongSuite
	}

	return &Parsed{purpose: purpose, framed: framed}, nil
}

// KeyID says which key the token claims to be made with.
func (p *Parsed) KeyID() KeyID { return KeyID(p.framed[keyIDOffset:]) }

// ID names the token.
func (p *Parsed) ID() ID { return ID(p.framed[saltOffset:]) }

// Open returns what the token holds, if the key made it in this context for the
// purpose that it was parsed for. It returns ErrOtherKey, ErrWrongCommitment or
// ErrNotAuthentic; any other error is a failure of the machine and says nothing
// about the token.
func (k *Key) Open(parsed *Parsed, context Context) (*Opened, error) {
	if parsed.KeyID() != k.id {
		return nil, ErrOtherKey
	}

	claims, err := k.open(parsed, context)
	if err != nil {
		return nil, err
	}

	return &Opened{Claims: claims, key: k, header: parsed.framed[:headerSize:headerSize]}, nil
}

// ID names the token.
func (o *Opened) ID() ID { return ID(o.header[saltOffset:]) }

// Tags makes the tags that the claims must hold.
func (o *Opened) Tags() Tags { return Tags{key: o.key, header: o.header} }

func (k *Key) open(parsed *Parsed, context Context) ([]byte, error) {
	if parsed.purpose.Suite() == AES256GCM {
		return k.decrypt(parsed.framed, context)
	}

	header, claims := parsed.framed[:headerSize], parsed.framed[headerSize:len(parsed.framed)-macSize]

	mac, err := k.mac(parsed.purpose, header, context, claims)
	if err != nil {
		return nil, fmt.Errorf("open token: %w", err)
	}

	if !hmac.Equal(mac, parsed.framed[len(parsed.framed)-macSize:]) {
		return nil, ErrNotAuthentic
	}

	return claims, nil
}

func (k *Key) decrypt(framed []byte, context Context) ([]byte, error) {
	commitment, err := k.derive(labelCommit, framed[:headerSize])
	if err != nil {
		return nil, fmt.Errorf("open token: %w", err)
	}

	if subtle.ConstantTimeCompare(commitment, framed[commitmentOffset:nonceOffset]) != 1 {
		return nil, ErrWrongCommitment
	}

	opener, associated, err := k.encryption(framed[:nonceOffset], context)
	if err != nil {
		return nil, fmt.Errorf("open token: %w", err)
	}

	claims, err := opener.Open(nil, nil, framed[nonceOffset:], associated)
	if err != nil {
		// The cipher says no more than that it does not open.
		return nil, ErrNotAuthentic
	}

	return claims, nil
}

// minSize is the length of a token of the suite with no claims.
func minSize(suite Suite) int {
	if suite == AES256GCM {
		return nonceOffset + nonceSize + gcmTagSize
	}

	return headerSize + macSize
}
