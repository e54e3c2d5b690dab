package token_test

import (
	"bytes"
	"encoding/base64"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/countersign-mcp/countersign/services/sealer/token"
)

// canary is a root that is easy to find.
var canary = []byte("canary-canary-canary-canary-canary")

// shows says whether a text holds the canary in any form a printer may give it.
func shows(text string) bool {
	for _, form := range []string{
		"canary", hex.EncodeToString([]byte("canary")), strings.ToUpper(hex.EncodeToString([]byte("canary"))),
		base64.StdEncoding.EncodeToString(canary)[:16], "99 97 110 97", "99, 97, 110", "0x63, 0x61",
	} {
		if strings.Contains(text, form) {
			return true
		}
	}

	return false
}

// holder has the secret where no method of it can be called.
type holder struct{ secret token.Secret }

func TestASecretPrintsUnderNoVerb(t *testing.T) {
	t.Parallel()

	secret := token.NewSecret(canary)
	key := newKey(t, canary)

	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%d", "%b", "%o", "%c", "%U", "%t", "%e", "%T", "%p", "%w"} {
		for _, value := range []any{
			secret, &secret,
			[]token.Secret{secret},
			map[string]token.Secret{"a": secret},
			holder{secret},
			&holder{secret},
			[]holder{{secret}},
			key, *key,
			[]*token.Key{key},
		} {
			if text := fmt.Sprintf(verb, value); shows(text) {
				t.Errorf("%s of %T shows it: %s", verb, value, text)
			}
		}
	}

	if got := fmt.Sprintf("%v %s %x %#v", secret, secret, secret, secret); strings.Count(got, "[redacted]") != 4 {
		t.Errorf("got %s", got)
	}

	if secret.String() != "[redacted]" || secret.GoString() != "[redacted]" {
		t.Error("a method called directly shows something else")
	}
}

func TestASecretIsNotLogged(t *testing.T) {
	t.Parallel()

	var logged bytes.Buffer

	secret := token.NewSecret(canary)
	for _, handler := range []slog.Handler{slog.NewTextHandler(&logged, nil), slog.NewJSONHandler(&logged, nil)} {
		slog.New(handler).Error("message", "secret", secret, "pointer", &secret, "holder", holder{secret}, "key", newKey(t, canary),
			"group", slog.GroupValue(slog.Any("inner", secret)), "error", errors.Join(fmt.Errorf("with %v", secret)))
	}

	if shows(logged.String()) || !strings.Contains(logged.String(), "[redacted]") {
		t.Errorf("the log shows %s", logged.String())
	}
}

func TestASecretIsNotMarshalled(t *testing.T) {
	t.Parallel()

	secret := token.NewSecret(canary)

	for name, marshal := range map[string]func() ([]byte, error){
		"JSON":            func() ([]byte, error) { return json.Marshal(secret) },
		"JSON in a field": func() ([]byte, error) { return json.Marshal(map[string]token.Secret{"secret": secret}) },
		"XML":             func() ([]byte, error) { return xml.Marshal(secret) },
		"text":            secret.MarshalText,
		"binary":          secret.MarshalBinary,
		"gob": func() ([]byte, error) {
			var content bytes.Buffer
			err := gob.NewEncoder(&content).Encode(secret)

			return content.Bytes(), err
		},
	} {
		content, err := marshal()
		if err == nil || shows(string(content)) {
			t.Errorf("%s: got %q, %v", name, content, err)
		}
	}
}

func TestASecretIsACopyAndComparesByContent(t *testing.T) {
	t.Parallel()

	content := bytes.Clone(canary)
	secret := token.NewSecret(content)
	content[0] ^= 1

	if !bytes.Equal(secret.Reveal(), canary) {
		t.Error("the secret changed with the slice it was made of")
	}

	if !secret.Equal(token.NewSecret(canary)) || secret.Equal(token.NewSecret(content)) || secret.Equal(token.Secret{}) {
		t.Error("secrets do not compare by content")
	}
}
