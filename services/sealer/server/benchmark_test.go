package server_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	sealv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/seal/v1"
	"github.com/countersign-mcp/countersign/services/sealer/keyring/keyringtest"
	"github.com/countersign-mcp/countersign/services/sealer/server"
)

func BenchmarkServer(b *testing.B) {
	clock := keyringtest.NewClock(start)

	sealer, err := server.New(keyringtest.New(b, keyringtest.NewSource(keyringtest.Version(1, start)), clock),
		clock.Now, rand.Reader, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()

	for name, purpose := range map[string]sealv1.Purpose{
		"HMAC": sealv1.Purpose_PURPOSE_REQUEST_STATE, "GCM": sealv1.Purpose_PURPOSE_ENCRYPTED_REQUEST_STATE,
	} {
		request := sealRequest(start)
		request.Purpose = purpose

		sealed, err := sealer.Seal(ctx, request)
		if err != nil {
			b.Fatal(err)
		}

		opening := openRequest(request, sealed.GetToken())

		b.Run("Seal "+name, func(b *testing.B) {
			b.ReportAllocs()

			for b.Loop() {
				_, err := sealer.Seal(ctx, request)
				if err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("Open "+name, func(b *testing.B) {
			b.ReportAllocs()

			for b.Loop() {
				response, err := sealer.Open(ctx, opening)
				if err != nil || response.GetOpened() == nil {
					b.Fatal(response, err)
				}
			}
		})
	}
}
