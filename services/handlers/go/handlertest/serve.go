package handlertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	handler "github.com/countersign-mcp/countersign/services/handlers/go"
)

// Serve serves in memory for as long as the test runs and returns a client of the
// contract itself, for what [Run] does not cover: catalogs, completions, changes.
func Serve(tb testing.TB, server *handler.Server) handlerv1.HandlerServiceClient {
	tb.Helper()
	client, stop, err := start(tb.Context(), server)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := stop(); err != nil {
			tb.Error(err)
		}
	})
	return client
}

// start serves on a listener in memory.
func start(ctx context.Context, server *handler.Server, options ...grpc.ServerOption) (
	client handlerv1.HandlerServiceClient, stop func() error, err error,
) {
	listener := bufconn.Listen(1 << 20)
	ctx, cancel := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() {
		served <- server.Serve(ctx, listener, handler.Options{
			// The client has gone by then: only a function that hangs takes this long.
			GracePeriod:   time.Second,
			ServerOptions: options,
		})
	}()
	connection, err := grpc.NewClient("passthrough:///memory",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return listener.DialContext(ctx)
		}))
	if err != nil {
		cancel()
		return nil, nil, errors.Join(fmt.Errorf("connect in memory: %w", err), <-served)
	}
	stop = func() error {
		err := connection.Close()
		cancel()
		return errors.Join(err, <-served)
	}
	return handlerv1.NewHandlerServiceClient(connection), stop, nil
}
