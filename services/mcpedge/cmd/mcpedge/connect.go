package main

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/countersign-mcp/countersign/services/internal/certificates"
	"github.com/countersign-mcp/countersign/services/internal/tracing"
)

// surroundings are what every connection of the edge takes part in.
type surroundings struct {
	registry *prometheus.Registry
	tracing  *tracing.Tracing
	logger   *slog.Logger
}

// transport opens the certificates of the connections to one service, or makes them
// speak plaintext. Use says in the metrics what the certificates are for.
func (s surroundings) transport(use string, files certificates.Files) (credentials.TransportCredentials, func() error, error) {
	if !files.Configured() {
		return insecure.NewCredentials(), func() error { return nil }, nil
	}
	source, err := certificates.Open(files, s.logger)
	if err != nil {
		return nil, nil, err
	}
	if err := source.Register(s.registry, use); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("register metrics of certificates: %w", err), source.Close())
	}
	return source.ClientCredentials(""), source.Close, nil
}

// How much a service may send before the edge has read it, on one stream and on one
// connection. Windows that gRPC finds by itself cost a ping for every burst of data.
const (
	streamWindow     = 1 << 20
	connectionWindow = 4 << 20
)

var (
	// sealerLiveness gives up a connection to a sealer that hangs, after a quarter of a
	// minute. A sealer allows a ping every ten seconds; the rest is for pings that the
	// network delays.
	sealerLiveness = keepalive.ClientParameters{Time: 12 * time.Second, Timeout: 3 * time.Second, PermitWithoutStream: true}
	// handlerLiveness does the same for a handler. It may be a gRPC server of any
	// language as it comes, and these end a connection that pings more often than every
	// five minutes, or with no call on it.
	handlerLiveness = keepalive.ClientParameters{Time: 6 * time.Minute, Timeout: 20 * time.Second}
)

// dial connects to a service; the connection is made when it is first used.
func dial(
	target string, transport credentials.TransportCredentials, serviceConfig string, liveness keepalive.ClientParameters, options ...grpc.DialOption,
) (*grpc.ClientConn, error) {
	return grpc.NewClient(target, append([]grpc.DialOption{
		grpc.WithTransportCredentials(transport), grpc.WithDefaultServiceConfig(serviceConfig),
		grpc.WithStaticStreamWindowSize(streamWindow), grpc.WithStaticConnWindowSize(connectionWindow),
		grpc.WithKeepaliveParams(liveness),
	}, options...)...)
}
