// Command everything is a handler service with a small tool for each thing that a
// handler can do. The names, keys and kinds are those that the conformance suite of
// the Model Context Protocol looks for.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	handler "github.com/countersign-mcp/countersign/services/handlers/go"
)

func main() {
	var flags struct {
		Listen string `default:"127.0.0.1:9103" help:"Where to listen: host:port on loopback, or unix:///path."`
	}
	kong.Parse(&flags, kong.Description("Serves one small tool for each thing that a handler can do."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := handler.Run(ctx, newServer(), handler.Options{Listen: flags.Listen}); err != nil {
		slog.ErrorContext(ctx, "the service ended", "error", err)
		os.Exit(1) //nolint:gocritic // the signal handler need not be undone in a process that ends
	}
}
