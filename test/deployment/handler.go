package deployment

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"

	handler "github.com/countersign-mcp/countersign/services/handlers/go"
)

// ServeHandler serves a handler service in the test's own process, where the test
// sees what it does, and returns its address.
func ServeHandler(tb testing.TB, server *handler.Server, options ...grpc.ServerOption) string {
	tb.Helper()
	listener, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener, handler.Options{ServerOptions: options}) }()
	tb.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			tb.Errorf("the handler service ended: %v", err)
		}
	})
	return listener.Addr().String()
}
