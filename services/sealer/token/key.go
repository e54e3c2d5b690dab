package token

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"

	"golang.org/x/crypto/cryptobyte"
)

// MinRootSize is the least number of bytes a root may have.
const MinRootSize = 32

// Key is a root made ready for use. It is safe for use by several goroutines.
type Key struct {
	id            KeyID
	pseudorandom  Secret
	saltGenerator Secret
}

// NewKey makes a Key of a root of at least MinRootSize uniformly random bytes.
func NewKey(root Secret) (*Key, error) {
	if len(root.Reveal()) < MinRootSize {
		return nil, fmt.Errorf("make key: the root has %d bytes, want at least %d", len(root.Reveal()), MinRootSize)
	}

	salt := sha256.Sum256([]byte(labelExtract))

	pseudorandom, err := hkdf.Extract(sha256.New, root.Reveal(), salt[:])
	if err != nil {
		return nil, fmt.Errorf("make key: extract: %w", err)
	}

	id, err := hkdf.Expand(sha256.New, pseudorandom, labelKeyID, keyIDSize)
	if err != nil {
		return nil, fmt.Errorf("make key: expand key id: %w", err)
	}

	saltGenerator, err := hkdf.Expand(sha256.New, pseudorandom, labelSalt, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("make key: expand salt key: %w", err)
	}

	return &Key{
		id:            KeyID(id),
		pseudorandom:  NewSecret(pseudorandom),
		saltGenerator: NewSecret(saltGenerator),
	}, nil
}

// ID returns the key's name, as tokens carry it.
func (k *Key) ID() KeyID { return k.id }

// derive returns the key of one use within one token.
func (k *Key) derive(label string, header []byte) ([]byte, error) {
	derived, err := hkdf.Expand(sha256.New, k.pseudorandom.Reveal(), label+"\x00"+string(header), sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive %q: %w", label, err)
	}

	return derived, nil
}

// mac returns the HMAC of claims that may be read.
func (k *Key) mac(purpose Purpose, header []byte, context Context, claims []byte) ([]byte, error) {
	label := labelMAC
	if purpose == Cursor {
		label = labelCursorMAC
	}

	key, err := k.derive(label, header)
	if err != nil {
		return nil, err
	}

	message, err := associatedData(header, context)
	if err != nil {
		return nil, fmt.Errorf("frame context: %w", err)
	}

	message.AddUint32LengthPrefixed(func(child *cryptobyte.Builder) { child.AddBytes(claims) })

	framed, err := message.Bytes()
	if err != nil {
		return nil, fmt.Errorf("frame claims: %w", err)
	}

	return hmacSHA256(key, framed), nil
}

// Tags makes the tags that tie a token to a principal and to parameters. They are
// keyed for one token alone.
type Tags struct {
	key    *Key
	header []byte
}

// Principal returns the tag of a principal: 32 bytes.
func (t Tags) Principal(issuer, subject string) ([]byte, error) {
	key, err := t.key.derive(labelPrincipalTag, t.header)
	if err != nil {
		return nil, err
	}

	message := cryptobyte.NewBuilder(nil)
	appendText(message, issuer)
	appendText(message, subject)

	framed, err := message.Bytes()
	if err != nil {
		return nil, fmt.Errorf("frame principal: %w", err)
	}

	return hmacSHA256(key, framed), nil
}

// Params returns the tag of the parameters that have this digest: 32 bytes.
func (t Tags) Params(digest [sha256.Size]byte) ([]byte, error) {
	key, err := t.key.derive(labelParamsTag, t.header)
	if err != nil {
		return nil, err
	}

	return hmacSHA256(key, digest[:]), nil
}

func hmacSHA256(key, message []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(message)

	return mac.Sum(nil)
}
