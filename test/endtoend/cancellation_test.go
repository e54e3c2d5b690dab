package endtoend_test

import (
	"context"
	"net"
	"testing"

	handler "github.com/countersign-mcp/countersign/services/handlers/go"
	"github.com/countersign-mcp/countersign/test/deployment"
)

// waiter is a handler service with a tool that waits until it is cancelled.
type waiter struct {
	address   string
	started   chan struct{}
	cancelled chan struct{}
}

// newWaiter serves the tool on loopback until the test is over.
func newWaiter(t *testing.T) *waiter {
	t.Helper()
	w := &waiter{started: make(chan struct{}), cancelled: make(chan struct{})}
	server := handler.NewServer("waiter")
	handler.Tool(server, "wait", func(ctx *handler.Context, _ struct{}) (string, error) {
		close(w.started)
		<-ctx.Done()
		close(w.cancelled)
		return "", ctx.Err()
	}, handler.Description("Waits until the call is cancelled."))

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.address = listener.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener, handler.Options{}) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the handler service ended: %v", err)
		}
	})
	return w
}

func TestClosingTheResponseCancelsTheHandler(t *testing.T) {
	w := newWaiter(t)
	edge := deployment.Edge{Handlers: map[string]string{"waiter": w.address}}.Start(t)
	c := newClient(t, edge.MCP())

	ctx, hangUp := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := c.CallTool(ctx, "wait", map[string]any{}, nil, "")
		ended <- err
	}()
	select {
	case <-w.started:
	case err := <-ended:
		t.Fatalf("the call ended before the handler ran: %v", err)
	}
	hangUp()
	if err := <-ended; err == nil {
		t.Error("the call came back, want it to have been given up")
	}
	// The call has no deadline of its own that could end the handler in the test's
	// time: only hanging up can.
	<-w.cancelled
}
