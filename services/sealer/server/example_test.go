package server_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/types/known/durationpb"

	sealv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/seal/v1"
	"github.com/countersign-mcp/countersign/services/sealer/keyring"
	"github.com/countersign-mcp/countersign/services/sealer/keysource/ephemeral"
	"github.com/countersign-mcp/countersign/services/sealer/server"
)

// A process that has its sealer within it calls the server as it would call a
// client, and keeps its keys fresh with Run.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	logger := slog.New(slog.DiscardHandler)

	source, err := ephemeral.New(time.Now(), rand.Reader, logger)
	if err != nil {
		panic(err)
	}

	keys, err := keyring.New(source, keyring.Defaults(), time.Now, logger)
	if err != nil {
		panic(err)
	}

	err = keys.Refresh(ctx)
	if err != nil {
		panic(err)
	}

	sealer, err := server.New(keys, time.Now, rand.Reader, prometheus.NewRegistry(), logger)
	if err != nil {
		panic(err)
	}

	digest := sha256.Sum256([]byte(`{"name":"refund"}`))
	binding := &sealv1.Binding{
		Context: &sealv1.Context{Audience: "https://tools.example/mcp"},
		Method:  "tools/call", Target: "refund", PrincipalIssuer: "anonymous", ParamsDigest: digest[:],
	}

	sealed, err := sealer.Seal(ctx, &sealv1.SealRequest{
		Purpose: sealv1.Purpose_PURPOSE_REQUEST_STATE, Binding: binding, TimeToLive: durationpb.New(time.Minute),
		RequestState: &sealv1.RequestState{
			ChainId: "chain-1", ChainStartedMs: time.Now().UnixMilli(), ChainExpiresMs: time.Now().Add(time.Hour).UnixMilli(), Round: 1,
		},
	})
	if err != nil {
		panic(err)
	}

	opened, err := sealer.Open(ctx, &sealv1.OpenRequest{
		Token: sealed.GetToken(), Purpose: sealv1.Purpose_PURPOSE_REQUEST_STATE, Expected: binding, MaxRound: 8,
	})
	if err != nil {
		panic(err)
	}

	fmt.Println(opened.GetOpened().GetRequestState().GetChainId())
	// Output: chain-1
}
