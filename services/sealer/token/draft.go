package token

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"fmt"
	"io"

	"golang.org/x/crypto/cryptobyte"
)

// randomSize is the number of fresh random bytes in a salt.
const randomSize = 32

// encoding is base64url without padding. Strict refuses trailing bits that are not
// zero, and skips CR and LF all the same: Parse refuses those.
var encoding = base64.RawURLEncoding.Strict()

// Draft is a token that has its salt and not yet its claims, because the tags in
// the claims are made with the salt.
type Draft struct {
	key     *Key
	purpose Purpose
	context Context
	header  []byte
}

// Draft begins a token. The claims are those to be sealed, without the tags: they
// go into the salt.
func (k *Key) Draft(purpose Purpose, context Context, claims []byte, random io.Reader) (*Draft, error) {
	suite := purpose.Suite()
	if suite == 0 {
		return nil, fmt.Errorf("draft token: %d is no purpose", purpose)
	}

	var fresh [randomSize]byte

	_, err := io.ReadFull(random, fresh[:])
	if err != nil {
		return nil, fmt.Errorf("draft token: read random bytes: %w", err)
	}

	message := cryptobyte.NewBuilder(nil)
	message.AddUint8(byte(suite))
	message.AddBytes(fresh[:])
	context.appendTo(message)
	message.AddBytes(claims)

	framed, err := message.Bytes()
	if err != nil {
		return nil, fmt.Errorf("draft token: frame context: %w", err)
	}

	header := make([]byte, 0, headerSize)
	header = append(header, Version, byte(suite))
	header = append(header, k.id[:]...)
	header = append(header, hmacSHA256(k.saltGenerator.Reveal(), framed)...)

	return &Draft{key: k, purpose: purpose, context: context, header: header}, nil
}

// ID names the token.
func (d *Draft) ID() ID { return ID(d.header[saltOffset:]) }

// Tags makes the tags that go into the claims.
func (d *Draft) Tags() Tags { return Tags{key: d.key, header: d.header} }

// Seal finishes the token with the claims, tags included.
func (d *Draft) Seal(claims []byte) (string, error) {
	if d.purpose.Suite() == AES256GCM {
		return d.encrypt(claims)
	}

	mac, err := d.key.mac(d.purpose, d.header, d.context, claims)
	if err != nil {
		return "", fmt.Errorf("seal token: %w", err)
	}

	framed := make([]byte, 0, headerSize+len(claims)+macSize)
	framed = append(framed, d.header...)
	framed = append(framed, claims...)
	framed = append(framed, mac...)

	return encoding.EncodeToString(framed), nil
}

func (d *Draft) encrypt(claims []byte) (string, error) {
	commitment, err := d.key.derive(labelCommit, d.header)
	if err != nil {
		return "", fmt.Errorf("seal token: %w", err)
	}

	framed := make([]byte, 0, nonceOffset+nonceSize+len(claims)+gcmTagSize)
	framed = append(framed, d.header...)
	framed = append(framed, commitment...)

	sealer, associated, err := d.key.encryption(framed, d.context)
	if err != nil {
		return "", fmt.Errorf("seal token: %w", err)
	}

	// The nonce is drawn by the standard library and stands before the ciphertext.
	framed = sealer.Seal(framed, nil, claims, associated) //nolint:gosec // G407: no nonce is given.

	return encoding.EncodeToString(framed), nil
}

// encryption returns the cipher and the associated data of a token that begins
// with front: its header and its commitment.
func (k *Key) encryption(front []byte, context Context) (cipher.AEAD, []byte, error) {
	key, err := k.derive(labelEncrypt, front[:headerSize])
	if err != nil {
		return nil, nil, err
	}

	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, nil, fmt.Errorf("make block cipher: %w", err)
	}

	sealer, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, nil, fmt.Errorf("make cipher: %w", err)
	}

	builder, err := associatedData(front, context)
	if err != nil {
		return nil, nil, fmt.Errorf("frame context: %w", err)
	}

	return sealer, builder.BytesOrPanic(), nil
}
