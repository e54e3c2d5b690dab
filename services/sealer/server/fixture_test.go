package server_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	sealv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/seal/v1"
	"github.com/countersign-mcp/countersign/services/sealer/keyring"
	"github.com/countersign-mcp/countersign/services/sealer/keyring/keyringtest"
	"github.com/countersign-mcp/countersign/services/sealer/server"
)

var start = time.Date(2026, time.October, 1, 0, 0, 0, 0, time.UTC)

// sealer is a server whose calls have a deadline, with what it logs and counts.
type sealer struct {
	*server.Server

	registry *prometheus.Registry
	logged   *bytes.Buffer
}

func newSealer(t *testing.T, source keyring.Source, clock *keyringtest.Clock) *sealer {
	t.Helper()

	return newSealerWith(t, source, clock, rand.Reader)
}

func newSealerWith(t *testing.T, source keyring.Source, clock *keyringtest.Clock, random io.Reader) *sealer {
	t.Helper()

	made := &sealer{registry: prometheus.NewPedanticRegistry(), logged: new(bytes.Buffer)}
	logger := slog.New(slog.NewTextHandler(made.logged, &slog.HandlerOptions{Level: slog.LevelDebug}))

	var err error

	made.Server, err = server.New(keyringtest.New(t, source, clock), clock.Now, random, made.registry, logger)
	if err != nil {
		t.Fatal(err)
	}

	return made
}

func (s *sealer) Seal(ctx context.Context, request *sealv1.SealRequest) (*sealv1.SealResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()

	return s.Server.Seal(ctx, request)
}

func (s *sealer) Open(ctx context.Context, request *sealv1.OpenRequest) (*sealv1.OpenResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()

	return s.Server.Open(ctx, request)
}

// mustSeal makes a token.
func (s *sealer) mustSeal(t *testing.T, request *sealv1.SealRequest) *sealv1.SealResponse {
	t.Helper()

	sealed, err := s.Seal(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}

	return sealed
}

// counts fails the test unless the metrics have these values, by name and labels
// as Prometheus shows them.
func (s *sealer) counts(t *testing.T, want map[string]float64) {
	t.Helper()

	got := s.gather(t)
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %v, want %v", name, got[name], value)
		}
	}
}

func (s *sealer) gather(t *testing.T) map[string]float64 {
	t.Helper()

	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}

	values := make(map[string]float64)

	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := make([]string, 0, len(metric.GetLabel()))
			for _, label := range metric.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", label.GetName(), label.GetValue()))
			}

			name := family.GetName()
			if len(labels) > 0 {
				name += "{" + strings.Join(labels, ",") + "}"
			}

			values[name] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}

	return values
}

func sealRequest(now time.Time) *sealv1.SealRequest {
	digest, question := sha256.Sum256([]byte("params")), sha256.Sum256([]byte("question"))

	return &sealv1.SealRequest{
		Purpose: sealv1.Purpose_PURPOSE_REQUEST_STATE,
		Binding: &sealv1.Binding{
			Context: &sealv1.Context{Audience: "https://tools.example/mcp", Tenant: "acme", Environment: "production"},
			Method:  "tools/call", Target: "refund",
			PrincipalIssuer: "https://login.example", PrincipalSubject: "canary-subject",
			ParamsDigest: digest[:],
		},
		RequestState: &sealv1.RequestState{
			ChainId: "chain", ChainStartedMs: now.UnixMilli(), ChainExpiresMs: now.Add(time.Hour).UnixMilli(), Round: 1, Attempts: 1,
			Questions:    []*sealv1.AskedQuestion{{Key: "confirm", Digest: question[:]}},
			Answers:      []*sealv1.RecordedAnswer{{Key: "items", Response: []byte(`{"n":9007199254740993}`)}},
			HandlerState: []*sealv1.StateEntry{{Key: "a", Value: "canary-state"}},
			Handler:      "refunds", CatalogRevision: "1",
		},
		TimeToLive: durationpb.New(10 * time.Minute),
	}
}

// openRequest is the opening that a token of the request was made for.
func openRequest(sealed *sealv1.SealRequest, text string) *sealv1.OpenRequest {
	return &sealv1.OpenRequest{
		Token: text, Purpose: sealed.GetPurpose(), MaxRound: 8,
		Expected: proto.CloneOf(sealed.GetBinding()),
	}
}

// genuineLooking is a token that is well formed and made with a key nobody knows.
func genuineLooking(t *testing.T) string {
	t.Helper()

	clock := keyringtest.NewClock(start)

	response, err := newSealer(t, keyringtest.NewSource(keyringtest.Version(200, start)), clock).Seal(t.Context(), sealRequest(start))
	if err != nil {
		t.Fatal(err)
	}

	return response.GetToken()
}
