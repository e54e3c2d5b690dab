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
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/health" // for healthCheckConfig
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

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

// sealerService spreads calls over the sealer's replicas that say that they serve,
// and tries another one where the first is unavailable: Seal and Open may both be
// repeated.
const sealerService = `{"loadBalancingConfig":[{"round_robin":{}}],
	"healthCheckConfig":{"serviceName":"countersign.seal.v1.SealerService"},"methodConfig":[{
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
	connection, err := dialSealer(config.Sealer, transport, around.tracing.DialOptions(tracing.TraceAlone,
		sealv1.SealerService_Seal_FullMethodName, sealv1.SealerService_Open_FullMethodName)...)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to the sealer: %w", err), closer())
	}
	health := healthv1.NewHealthClient(connection)
	return &sealerConnection{
		client: triedElsewhere{client: sealv1.NewSealerServiceClient(connection), perTry: config.Limits.SealerTimeout.Duration() / sealerTries},
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

func dialSealer(target string, transport credentials.TransportCredentials, options ...grpc.DialOption) (*grpc.ClientConn, error) {
	return dial(target, transport, sealerService, sealerLiveness, options...)
}

// sealerTries is how many replicas are tried within the time of one call.
const sealerTries = 3

// triedElsewhere calls the sealer again when a replica has not answered in its part
// of the time. One that hangs says nothing, so that gRPC's own retries do not help,
// and it stays in the rotation until its connection is given up.
//
// The next call goes to the next replica in turn. What is lost: under many calls at
// once, that may be the one that hangs again.
type triedElsewhere struct {
	client sealv1.SealerServiceClient
	// perTry is how long one replica has.
	perTry time.Duration
}

// Seal calls the sealer.
func (t triedElsewhere) Seal(ctx context.Context, request *sealv1.SealRequest, options ...grpc.CallOption) (*sealv1.SealResponse, error) {
	return tryElsewhere(ctx, t.perTry, t.client.Seal, request, options)
}

// Open calls the sealer.
func (t triedElsewhere) Open(ctx context.Context, request *sealv1.OpenRequest, options ...grpc.CallOption) (*sealv1.OpenResponse, error) {
	return tryElsewhere(ctx, t.perTry, t.client.Open, request, options)
}

func tryElsewhere[Request, Response any](
	ctx context.Context, perTry time.Duration,
	call func(context.Context, *Request, ...grpc.CallOption) (*Response, error), request *Request, options []grpc.CallOption,
) (response *Response, err error) {
	for range sealerTries {
		try, cancel := context.WithTimeout(ctx, perTry)
		response, err = call(try, request, options...)
		cancel()
		if status.Code(err) != codes.DeadlineExceeded || ctx.Err() != nil {
			break
		}
	}
	return response, err
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
