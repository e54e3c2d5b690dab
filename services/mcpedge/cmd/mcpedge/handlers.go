package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	"github.com/countersign-mcp/countersign/services/internal/tracing"
	"github.com/countersign-mcp/countersign/services/mcpedge/catalog"
	"github.com/countersign-mcp/countersign/services/mcpedge/replica"
)

// handlerConnections are the connections to the handler services.
type handlerConnections struct {
	list    []*catalog.Handler
	closers []func() error
}

// roundRobin spreads calls over the replicas that a target resolves to.
const roundRobin = `{"loadBalancingConfig":[{"round_robin":{}}]}`

func connectHandlers(config Config, around surroundings) (*handlerConnections, error) {
	connections := &handlerConnections{}
	most := int(config.Limits.MaxHandlerMessageBytes)
	sizes := grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(most), grpc.MaxCallSendMsgSize(most))
	options := append(around.tracing.DialOptions(tracing.TraceAndBaggage,
		handlerv1.HandlerService_Invoke_FullMethodName, handlerv1.HandlerService_Complete_FullMethodName), sizes)
	for _, handler := range config.Handlers {
		transport, closer, err := around.transport("handler/"+handler.Name, handler.TLS)
		if err != nil {
			connections.close()
			return nil, fmt.Errorf("connect to handler %q: %w", handler.Name, err)
		}
		connections.closers = append(connections.closers, closer)
		connection, err := dial(handler.Target, transport, roundRobin, handlerLiveness, options...)
		if err != nil {
			connections.close()
			return nil, fmt.Errorf("connect to handler %q: %w", handler.Name, err)
		}
		connections.closers = append(connections.closers, connection.Close)
		entry := &catalog.Handler{Name: handler.Name, Prefix: handler.Prefix, Client: handlerv1.NewHandlerServiceClient(connection)}
		if hostPort, isName := strings.CutPrefix(handler.Target, "dns:///"); isName {
			entry.Replicas = replicas{handler: handler, hostPort: hostPort, transport: transport, sizes: sizes, logger: around.logger}.follow
		}
		connections.list = append(connections.list, entry)
	}
	return connections, nil
}

func (c *handlerConnections) close() {
	for _, closer := range slices.Backward(c.closers) {
		_ = closer() // the process ends
	}
}

// lookupInterval is how often the name of a handler service is looked up, as gRPC's
// own resolver does at most.
const lookupInterval = 30 * time.Second

// replicas follows the replicas of a handler service behind a name.
type replicas struct {
	handler   Handler
	hostPort  string
	transport credentials.TransportCredentials
	sizes     grpc.DialOption
	logger    *slog.Logger
}

func (r replicas) follow(ctx context.Context, each func(context.Context, string, handlerv1.HandlerServiceClient), looked func(int, error)) {
	name := replica.Name{Lookup: r.lookup, Interval: lookupInterval, Logger: r.logger.With("handler", r.handler.Name)}
	name.Follow(ctx, func(ctx context.Context, address string) {
		// The certificate is for the name, whatever the address.
		connection, err := dial("passthrough:///"+address, r.transport, roundRobin, handlerLiveness, r.sizes, grpc.WithAuthority(r.hostPort))
		if err != nil {
			r.logger.Error("replica not connected", "handler", r.handler.Name, "replica", address, "error", err)
			return
		}
		defer func() { _ = connection.Close() }() // nothing is under way any more
		each(ctx, address, handlerv1.NewHandlerServiceClient(connection))
	}, looked)
}

// lookup returns the addresses that the name has now.
func (r replicas) lookup(ctx context.Context) ([]string, error) {
	host, port, err := net.SplitHostPort(r.hostPort)
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", r.hostPort, err)
	}
	addresses, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return nil, err
	}
	for i, address := range addresses {
		addresses[i] = net.JoinHostPort(address, port)
	}
	return addresses, nil
}
