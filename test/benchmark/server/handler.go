package server

import (
	"context"
	"fmt"
	"net"

	handler "github.com/countersign-mcp/countersign/services/handlers/go"
)

// handlerService is a handler service written with the kit: `echo`, `ask`, which
// needs two rounds, and further tools up to the number wanted.
func handlerService(ctx context.Context, listener net.Listener, options Options) error {
	server := handler.NewServer("benchmark")
	say := func(_ *handler.Context, in echoed) (string, error) { return in.Text, nil }
	handler.Tool(server, "echo", say, handler.Description("Says what it is given."))
	handler.Tool(server, "ask", func(ctx *handler.Context, in echoed) (string, error) {
		if _, err := ctx.Confirm("Shall I say it?", handler.Key("sure")); err != nil {
			return "", err
		}
		return in.Text, nil
	}, handler.Description("Says what it is given, once the user has confirmed."))
	for i := 2; i < options.Tools; i++ {
		handler.Tool(server, fmt.Sprintf("echo_%05d", i), say, handler.Description("Says what it is given, as well."))
	}
	return server.Serve(ctx, listener, handler.Options{})
}
