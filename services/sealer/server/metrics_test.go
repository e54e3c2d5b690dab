package server_test

import (
	"crypto/rand"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/countersign-mcp/countersign/services/sealer/keyring/keyringtest"
	"github.com/countersign-mcp/countersign/services/sealer/server"
)

func TestTheKeysAreMeasured(t *testing.T) {
	t.Parallel()

	clock := keyringtest.NewClock(start)
	retired := keyringtest.Version(1, start.Add(-72*time.Hour))
	retired.Retired = true
	source := keyringtest.NewSource(retired, keyringtest.Version(2, start.Add(-48*time.Hour)),
		keyringtest.Version(3, start.Add(-24*time.Hour)), keyringtest.Version(4, start))
	sealer := newSealer(t, source, clock)

	clock.Advance(time.Minute)
	sealer.counts(t, map[string]float64{
		"countersign_keyring_age_seconds":                60,
		"countersign_keyring_refreshes_total":            1,
		`countersign_keyring_versions{state="prepared"}`: 1,
		`countersign_keyring_versions{state="active"}`:   1,
		`countersign_keyring_versions{state="retiring"}`: 1,
		`countersign_keyring_versions{state="retired"}`:  1,
		`countersign_key_age_seconds{state="active"}`:    24*3600 + 60,
		`countersign_key_age_seconds{state="prepared"}`:  60,
		`countersign_key_age_seconds{state="retired"}`:   72*3600 + 60,
		"countersign_keyring_refresh_errors_total":       0,
	})

	fingerprints := 0

	for name := range sealer.gather(t) {
		if strings.HasPrefix(name, "countersign_keyring_info{fingerprint=") {
			fingerprints++
		}
	}

	if fingerprints != 1 {
		t.Errorf("there are %d fingerprints", fingerprints)
	}

	families, err := sealer.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}

	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) != 0 {
		t.Errorf("got %v, %v", problems, err)
	}
}

func TestMetricsAreRegisteredOnce(t *testing.T) {
	t.Parallel()

	clock := keyringtest.NewClock(start)
	keys := keyringtest.New(t, keyringtest.NewSource(keyringtest.Version(1, start)), clock)
	registry := prometheus.NewRegistry()

	_, err := server.New(keys, clock.Now, rand.Reader, registry, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	_, err = server.New(keys, clock.Now, rand.Reader, registry, slog.New(slog.DiscardHandler))
	if err == nil {
		t.Error("a second server registered the same metrics")
	}
}
