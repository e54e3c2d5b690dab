// Command refunds is a handler service that refunds orders of a shop in memory. It
// asks the user which items and then to confirm the amount, and refunds once.
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
		Listen string `default:"127.0.0.1:9102" help:"Where to listen: host:port on loopback, or unix:///path."`
	}
	kong.Parse(&flags, kong.Description("Serves the refund example to a Countersign edge."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := handler.Run(ctx, newServer(newShop()), handler.Options{Listen: flags.Listen}); err != nil {
		slog.ErrorContext(ctx, "the service ended", "error", err)
		os.Exit(1) //nolint:gocritic // the signal handler need not be undone in a process that ends
	}
}
