package endtoend_test

import (
	"context"
	"testing"

	handler "github.com/countersign-mcp/countersign/services/handlers/go"
	"github.com/countersign-mcp/countersign/test/deployment"
)

func TestClosingTheResponseCancelsTheHandler(t *testing.T) {
	started, cancelled := make(chan struct{}), make(chan struct{})
	server := handler.NewServer("waiter")
	handler.Tool(server, "wait", func(ctx *handler.Context, _ struct{}) (string, error) {
		close(started)
		<-ctx.Done()
		close(cancelled)
		return "", ctx.Err()
	}, handler.Description("Waits until the call is cancelled."))
	address := deployment.ServeHandler(t, server)
	edge := deployment.Edge{Handlers: map[string]string{"waiter": address}}.Start(t)
	c := newClient(t, edge.MCP())

	ctx, hangUp := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := c.CallTool(ctx, "wait", map[string]any{}, nil, "")
		ended <- err
	}()
	select {
	case <-started:
	case err := <-ended:
		t.Fatalf("the call ended before the handler ran: %v", err)
	}
	select {
	case <-cancelled:
		t.Fatal("the handler was cancelled while the client waited")
	default:
	}
	hangUp()
	if err := <-ended; err == nil {
		t.Error("the call came back, want it to have been given up")
	}
	<-cancelled
	if got := edge.Metrics(t).Sum("countersign_edge_requests_total", "method=tools/call", "outcome=complete"); got != 0 {
		t.Errorf("the edge counted %v completed calls, want none", got)
	}
}
