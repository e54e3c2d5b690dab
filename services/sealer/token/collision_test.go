package token_test

import (
	"bytes"
	"crypto/aes"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/countersign-mcp/countersign/services/sealer/token"
	"github.com/countersign-mcp/countersign/services/sealer/token/tokentest"
)

// AES-GCM does not commit to its key: its tag is linear in every block of the
// ciphertext, so with two known keys one block can be solved for that gives both
// the same tag (Dodis, Grubbs, Ristenpart and Woodage, "Fast Message Franking",
// section 3; Albertini and others, "How to Abuse and Fix Authenticated Encryption
// Without Key Commitment"). This file solves for it.

// element is an element of GF(2^128) in the bit order of GCM (NIST SP 800-38D,
// section 6.3): the most significant bit of high is the coefficient of x^0.
type element struct{ high, low uint64 }

func elementOf(block []byte) element {
	return element{binary.BigEndian.Uint64(block), binary.BigEndian.Uint64(block[8:])}
}

func (e element) bytes() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, e.high), e.low)
}

func (e element) plus(other element) element {
	return element{e.high ^ other.high, e.low ^ other.low}
}

func (e element) times(other element) element {
	var product element

	for position := range 128 {
		word := other.high
		if position >= 64 {
			word = other.low
		}

		if word>>(63-position%64)&1 == 1 {
			product = product.plus(e)
		}

		carry := e.low & 1
		e.low = e.low>>1 | e.high<<63
		e.high >>= 1

		if carry == 1 {
			e.high ^= 0xe1 << 56
		}
	}

	return product
}

// inverse raises to the power 2^128 - 2.
func (e element) inverse() element {
	result := element{high: 1 << 63}
	square := e

	for range 127 {
		square = square.times(square)
		result = result.times(square)
	}

	return result
}

// gcm is one key's half of the equation.
type gcm struct {
	hash, mask element
	stream     func(length int) []byte
}

func newGCM(t *testing.T, key, nonce []byte) gcm {
	t.Helper()

	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}

	counter := func(count uint32) []byte {
		output := make([]byte, aes.BlockSize)
		block.Encrypt(output, binary.BigEndian.AppendUint32(bytes.Clone(nonce), count))

		return output
	}
	hash := make([]byte, aes.BlockSize)
	block.Encrypt(hash, hash)

	return gcm{hash: elementOf(hash), mask: elementOf(counter(1)), stream: func(length int) []byte {
		var stream []byte
		for count := uint32(2); len(stream) < length; count++ {
			stream = append(stream, counter(count)...)
		}

		return stream[:length]
	}}
}

// tag is the tag of a ciphertext.
func (g gcm) tag(associated, ciphertext []byte) element {
	content := slices.Concat(padded(associated), padded(ciphertext))
	content = binary.BigEndian.AppendUint64(content, uint64(len(associated))*8)
	content = binary.BigEndian.AppendUint64(content, uint64(len(ciphertext))*8)

	var sum element
	for start := 0; start < len(content); start += aes.BlockSize {
		sum = sum.plus(elementOf(content[start:])).times(g.hash)
	}

	return sum.plus(g.mask)
}

// padded is the content and the zeros that fill its last block.
func padded(content []byte) []byte {
	return slices.Concat(content, make([]byte, (aes.BlockSize-len(content)%aes.BlockSize)%aes.BlockSize))
}

// solveCollision makes a ciphertext whose last block gives it the same tag under
// both keys, and which decrypts under key A to a text that begins with prefix.
func solveCollision(t *testing.T, keyA, keyB, nonce, associated, prefix []byte) (ciphertext, tag []byte) {
	t.Helper()

	first, second := newGCM(t, keyA, nonce), newGCM(t, keyB, nonce)
	ciphertext = make([]byte, len(prefix)+aes.BlockSize)

	for position, mask := range first.stream(len(prefix)) {
		ciphertext[position] = prefix[position] ^ mask
	}

	// The last block is multiplied by the square of each hash key: once for itself
	// and once for the block of lengths. With it zero, the tags differ by what it
	// must make up for.
	difference := first.tag(associated, ciphertext).plus(second.tag(associated, ciphertext))
	weight := first.hash.times(first.hash).plus(second.hash.times(second.hash))
	copy(ciphertext[len(prefix):], difference.times(weight.inverse()).bytes())

	return ciphertext, first.tag(associated, ciphertext).bytes()
}

func buildCollision(t *testing.T, opening tokentest.Opening, rootA, rootB []byte) tokentest.Collision {
	t.Helper()

	keyA, keyB := referenceKey("", rootA), referenceKey("", rootB)
	salt := bytes.Repeat([]byte{0x5a}, 32)
	header := bytes.Join([][]byte{{1, byte(token.AES256GCM)}, keyB.KeyID, salt}, nil)
	commitment := derive(keyA.PseudorandomKey, "countersign/v1/requeststate/commit", header)
	front := bytes.Join([][]byte{header, commitment}, nil)
	nonce := bytes.Repeat([]byte{0xa5}, 12)

	collision := tokentest.Collision{
		RootA: rootA, RootB: rootB, Nonce: nonce, Opening: opening, Reason: "WRONG_COMMITMENT",
		EncryptionKeyA: derive(keyA.PseudorandomKey, "countersign/v1/requeststate/enc", header),
		EncryptionKeyB: derive(keyB.PseudorandomKey, "countersign/v1/requeststate/enc", header),
		AssociatedData: lengthPrefixed(append([][]byte{front}, contextFields(opening.Context)...)...),
	}
	collision.Opening.Suite = int(token.AES256GCM)
	collision.Opening.Roots = []tokentest.Hex{rootB}
	collision.Ciphertext, collision.Tag = solveCollision(t, collision.EncryptionKeyA, collision.EncryptionKeyB,
		nonce, collision.AssociatedData, []byte("refund order 17 "))
	collision.PlaintextA = xor(collision.Ciphertext, newGCM(t, collision.EncryptionKeyA, nonce).stream(len(collision.Ciphertext)))
	collision.PlaintextB = xor(collision.Ciphertext, newGCM(t, collision.EncryptionKeyB, nonce).stream(len(collision.Ciphertext)))
	collision.Token = base64.RawURLEncoding.EncodeToString(bytes.Join([][]byte{front, nonce, collision.Ciphertext, collision.Tag}, nil))

	return collision
}

func xor(left, right []byte) []byte {
	combined := make([]byte, len(left))
	for position := range left {
		combined[position] = left[position] ^ right[position]
	}

	return combined
}
