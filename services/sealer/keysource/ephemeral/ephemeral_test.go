package ephemeral_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/countersign-mcp/countersign/services/sealer/keysource/ephemeral"
	"github.com/countersign-mcp/countersign/services/sealer/keysource/sourcetest"
)

func TestSource(t *testing.T) {
	t.Parallel()

	sourcetest.Run(t, func(t *testing.T) sourcetest.Backend {
		t.Helper()

		source, err := ephemeral.New(time.Now(), rand.Reader, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}

		return sourcetest.Backend{Source: source}
	})
}

func TestTheLogNamesTheConsequenceAndNotTheKey(t *testing.T) {
	t.Parallel()

	var logged bytes.Buffer

	source, err := ephemeral.New(time.Now(), rand.Reader, slog.New(slog.NewTextHandler(&logged, nil)))
	if err != nil {
		t.Fatal(err)
	}

	if !strings.Contains(logged.String(), "WARN") || !strings.Contains(logged.String(), ephemeral.Warning) {
		t.Errorf("got %s", logged.String())
	}

	versions, err := source.Versions(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	sourcetest.NoKeyIn(t, logged.String(), versions[0].Root)
}

func TestNoRandomnessIsNoSource(t *testing.T) {
	t.Parallel()

	broken := errors.New("broken")

	_, err := ephemeral.New(time.Now(), iotest.ErrReader(broken), slog.New(slog.DiscardHandler))
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
