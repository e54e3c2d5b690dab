package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	sealv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/seal/v1"
	"github.com/countersign-mcp/countersign/services/internal/tracing"
	"github.com/countersign-mcp/countersign/services/mcpedge/state"
	"github.com/countersign-mcp/countersign/services/sealer/keyring"
	"github.com/countersign-mcp/countersign/services/sealer/server"
)

// sealerConnection is the way to the sealer, in this process or in another.
type sealerConnection struct {
	client sealv1.SealerServiceClient
	// check says whether the sealer can be used now.
	check  func(context.Context) error
	closer func() error
}

func (s *sealerConnection) close() {
	_ = s.closer() // the process ends
}

// retryElsewhere spreads calls over the sealer's replicas and tries another one
// where the first is unavailable: Seal and Open may both be repeated.
const retryElsewhere = `{"loadBalancingConfig":[{"round_robin":{}}],"methodConfig":[{
	"name":[{"service":"countersign.seal.v1.SealerService"}],
	"retryPolicy":{"maxAttempts":4,"initialBackoff":"0.01s","maxBackoff":"0.2s","backoffMultiplier":2,"retryableStatusCodes":["UNAVAILABLE"]}}]}`

func connectSealer(ctx context.Context, config Config, around surroundings) (*sealerConnection, error) {
	if config.Sealer == sealerEmbedded {
		return embedSealer(ctx, config.EmbeddedSealer, around.registry, around.logger)
	}
	transport, closer, err := around.transport("sealer", config.SealerTLS)
	if err != nil {
		return nil, fmt.Errorf("connect to the sealer: %w", err)
	}
	// The sealer has no use for the client's baggage.
	connection, err := dial(config.Sealer, transport, retryElsewhere, around.tracing.DialOptions(tracing.TraceAlone,
		sealv1.SealerService_Seal_FullMethodName, sealv1.SealerService_Open_FullMethodName)...)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to the sealer: %w", err), closer())
	}
	health := healthv1.NewHealthClient(connection)
	return &sealerConnection{
		client: sealv1.NewSealerServiceClient(connection),
		closer: func() error { return errors.Join(connection.Close(), closer()) },
		check: func(ctx context.Context) error {
			response, err := health.Check(ctx, &healthv1.HealthCheckRequest{Service: sealv1.SealerService_ServiceDesc.ServiceName})
			if err == nil && response.GetStatus() != healthv1.HealthCheckResponse_SERVING {
				err = errors.New("the sealer says that it is not serving")
			}
			return err
		},
	}, nil
}

// embedSealer runs a sealer in this process.
func embedSealer(ctx context.Context, config EmbeddedSealer, registry *prometheus.Registry, logger *slog.Logger) (*sealerConnection, error) {
	source, err := config.Keys.Open(time.Now(), rand.Reader, logger)
	if err != nil {
		return nil, fmt.Errorf("open the embedded sealer's keys: %w", err)
	}
	keys, err := keyring.New(source, config.Keys.Settings(), time.Now, logger)
	if err != nil {
		return nil, fmt.Errorf("make the embedded sealer's keyring: %w", err)
	}
	sealer, err := server.New(keys, time.Now, rand.Reader, registry, logger)
	if err != nil {
		return nil, fmt.Errorf("make the embedded sealer: %w", err)
	}
	if err := keys.Refresh(ctx); err != nil {
		// The keyring asks again; until then the edge is not ready.
		logger.Warn("the embedded sealer has no keys yet", "error", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var refreshing sync.WaitGroup
	refreshing.Go(func() { keys.Run(ctx, mathrand.Float64) })
	return &sealerConnection{
		client: state.InProcess{Server: sealer},
		check:  func(context.Context) error { return keys.Ready(time.Now()) },
		closer: func() error {
			cancel()
			refreshing.Wait()
			return nil
		},
	}, nil
}
