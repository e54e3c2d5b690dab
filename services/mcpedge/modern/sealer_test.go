package modern_test

import (
	"crypto/rand"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	sealv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/seal/v1"
	"github.com/countersign-mcp/countersign/services/mcpedge/state"
	"github.com/countersign-mcp/countersign/services/sealer/keyring"
	"github.com/countersign-mcp/countersign/services/sealer/keysource/ephemeral"
	"github.com/countersign-mcp/countersign/services/sealer/server"
)

// newSealer returns a real sealer in this process, whose keys never grow old.
func newSealer(t *testing.T, now func() time.Time) sealv1.SealerServiceClient {
	t.Helper()
	logger := slog.New(slog.DiscardHandler)
	source, err := ephemeral.New(now(), rand.Reader, logger)
	if err != nil {
		t.Fatal(err)
	}
	began := now()
	ages := keyring.Defaults()
	ages.HardAge, ages.ActivationDelay = 24*time.Hour, 25*time.Hour
	keys, err := keyring.New(source, ages, func() time.Time { return began }, logger)
	if err != nil {
		t.Fatal(err)
	}
	if err := keys.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	sealer, err := server.New(keys, now, rand.Reader, prometheus.NewRegistry(), logger)
	if err != nil {
		t.Fatal(err)
	}
	return state.InProcess{Server: sealer}
}
