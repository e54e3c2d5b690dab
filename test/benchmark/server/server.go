// Package server has the servers that Countersign is measured against, and the
// handler service that is measured behind its edge.
//
// Each is run in a process of its own, and does the least that the comparison
// allows: one tool, `echo`, that returns the text it is given. The two other
// implementations of MCP run as they are fastest: without sessions, and with plain
// JSON where that can be chosen.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
)

// Server serves on a listener until the context ends.
type Server func(ctx context.Context, listener net.Listener, options Options) error

// Options say what a server does.
type Options struct {
	// Tools is how many tools a handler service has.
	Tools int
	// Backend is where a server that forwards does so.
	Backend string
}

// servers are the servers by name.
var servers = map[string]Server{
	"go-sdk":  officialSDK,
	"mcp-go":  markLabs,
	"floor":   floor,
	"echo":    echo,
	"handler": handlerService,
}

// Names are the names of all servers.
func Names() string {
	names := make([]string, 0, len(servers))
	for name := range servers {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

// Run runs a server on a free port and writes where it listens.
func Run(ctx context.Context, name string, options Options, output io.Writer) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if _, err := fmt.Fprintf(output, "serving listen=%s\n", listener.Addr()); err != nil {
		return fmt.Errorf("say where it listens: %w", err)
	}
	return servers[name](ctx, listener, options)
}

// serveHTTP serves an HTTP handler.
func serveHTTP(ctx context.Context, listener net.Listener, handler http.Handler) error {
	mux := http.NewServeMux()
	mux.Handle("/mcp", handler)
	server := &http.Server{Handler: mux} //nolint:gosec // only the benchmark can reach it
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
