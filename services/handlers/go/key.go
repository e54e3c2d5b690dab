package handler

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
)

// assignKey gives a question without a key a derived one, and refuses a key that
// this attempt has asked before: the answer of one would be the answer of both.
//
// A derived key is the kind, 32 bits of a hash of the canonical question, and the
// ordinal among the equal questions of this attempt from the second on. It is the
// same on every attempt and in every process that asks the same questions in the
// same order.
func (a *attempt) assignKey(question *handlerv1.Question, prefix string) error {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if question.GetKey() == "" {
		digest, err := questionDigest(question)
		if err != nil {
			return err
		}
		derived := prefix + "-" + hex.EncodeToString(digest[:4])
		a.ordinals[derived]++
		if ordinal := a.ordinals[derived]; ordinal > 1 {
			derived = fmt.Sprintf("%s-%d", derived, ordinal)
		}
		question.Key = derived
	}
	if a.keys[question.GetKey()] {
		return fmt.Errorf("the key %q was asked before in this attempt", question.GetKey())
	}
	a.keys[question.GetKey()] = true
	return nil
}

// questionDigest hashes the kind and the canonical content of a question.
func questionDigest(question *handlerv1.Question) ([sha256.Size]byte, error) {
	switch kind := question.GetKind().(type) {
	case *handlerv1.Question_ElicitForm:
		schema, err := canonicalJSON(kind.ElicitForm.GetRequestedSchema())
		if err != nil {
			return [sha256.Size]byte{}, fmt.Errorf("read the schema of a form: %w", err)
		}
		return digest("form", kind.ElicitForm.GetMessage(), string(schema)), nil
	case *handlerv1.Question_ElicitUrl:
		return digest("url", kind.ElicitUrl.GetMessage(), kind.ElicitUrl.GetUrl()), nil
	case *handlerv1.Question_Sample:
		params, err := canonicalJSON(kind.Sample.GetParams())
		if err != nil {
			return [sha256.Size]byte{}, fmt.Errorf("read the parameters of sampling: %w", err)
		}
		return digest("sample", string(params)), nil
	default:
		return digest("roots"), nil
	}
}

// digest hashes the parts with their lengths, so that no boundary can move.
func digest(parts ...string) [sha256.Size]byte {
	var framed []byte
	for _, part := range parts {
		framed = binary.BigEndian.AppendUint64(framed, uint64(len(part)))
		framed = append(framed, part...)
	}
	return sha256.Sum256(framed)
}
