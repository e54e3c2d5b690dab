// Command mcpedge is the edge: it serves the Model Context Protocol to clients and
// calls handler services over gRPC.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/countersign-mcp/countersign/services/internal/ballast"
	"github.com/countersign-mcp/countersign/services/internal/listener"
	"github.com/countersign-mcp/countersign/services/internal/operations"
	"github.com/countersign-mcp/countersign/services/internal/tracing"
)

// version is the edge's version; a release build sets it.
var version = "0.1.0-dev"

// commands are the program's commands.
type commands struct {
	Serve   serve            `cmd:"" help:"Serve MCP clients over Streamable HTTP."`
	Stdio   stdio            `cmd:"" help:"Serve the MCP client that started this process, over standard input and output."`
	Version kong.VersionFlag `help:"Print the version."`
}

// serve is the command that serves clients until it is told to stop.
type serve struct {
	Config         string `help:"The configuration file." required:"" type:"existingfile" placeholder:"FILE"`
	ValidateConfig bool   `help:"Check the configuration file and exit."`
}

func main() {
	var program commands
	parsed := kong.Parse(&program,
		kong.Name("mcpedge"),
		kong.Description("The edge of Countersign: the Model Context Protocol in front, gRPC handler services behind."),
		kong.Vars{"version": version},
	)
	parsed.FatalIfErrorf(parsed.Run())
}

// stdio is the command that serves the client that started this process.
type stdio struct {
	Config string `help:"The configuration file; where clients connect and operators look is not used." required:"" type:"existingfile" placeholder:"FILE"`
}

// Run serves until SIGINT or SIGTERM.
func (s *serve) Run() error {
	config, err := load(s.Config)
	if err != nil {
		return err
	}
	if s.ValidateConfig {
		_, err := fmt.Fprintf(os.Stdout, "%s is valid\n", s.Config)
		return err
	}
	return withEdge(config, (*edge).run)
}

// Run serves until the client closes the input, SIGINT or SIGTERM.
func (s *stdio) Run() error {
	config, err := load(s.Config)
	if err != nil {
		return err
	}
	return withEdge(config, (*edge).converse)
}

// withEdge assembles an edge and runs it until SIGINT or SIGTERM.
func withEdge(config Config, run func(*edge, context.Context) error) error {
	ballast.Take()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil)).With("service", "mcpedge")
	forget := context.AfterFunc(ctx, func() {
		stop() // the default action of a signal is back
		logger.Info("told to stop; a second signal ends the process at once")
	})
	defer forget()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))

	traces, err := tracing.Open(ctx, config.Tracing, tracing.Process{Service: "mcpedge", Version: version}, registry, logger)
	if err != nil {
		return err
	}
	defer traces.Close()
	around := surroundings{registry: registry, tracing: traces, logger: logger}
	sealer, err := connectSealer(ctx, config, around)
	if err != nil {
		return err
	}
	defer sealer.close()
	handlers, err := connectHandlers(config, around)
	if err != nil {
		return err
	}
	defer handlers.close()
	return run(newEdge(config, sealer, handlers, around), ctx)
}

// converse serves the client that started this process. Its first requests wait
// until every handler has been tried, because it sends them at once.
func (e *edge) converse(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var group sync.WaitGroup
	group.Go(func() { e.catalog.Follow(ctx) })
	select {
	case <-e.catalog.Settled():
	case <-ctx.Done():
	}
	err := e.conversation(os.Stdin, os.Stdout).Serve(ctx)
	cancel()
	group.Wait()
	return err
}

// run serves clients and operators until ctx ends, then lets what is under way
// finish.
func (e *edge) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	address, err := listener.Parse(e.config.Listen)
	if err != nil {
		return err
	}
	clients, err := listener.Open(ctx, address)
	if err != nil {
		return err
	}
	operationsAddress, err := listener.Parse(e.config.OperationsListen)
	if err != nil {
		return errors.Join(err, clients.Close())
	}
	operators, err := listener.Open(ctx, operationsAddress)
	if err != nil {
		return errors.Join(err, clients.Close())
	}

	var group sync.WaitGroup
	failures := make(chan error, 2)
	group.Go(func() { e.catalog.Follow(ctx) })
	group.Go(func() {
		defer cancel()
		failures <- operations.Serve(ctx, operators, operations.Handler(e.registry, e.readiness))
	})
	server := e.server()
	group.Go(func() {
		defer cancel()
		if err := server.Serve(clients); !errors.Is(err, http.ErrServerClosed) {
			failures <- fmt.Errorf("serve clients: %w", err)
		}
	})
	e.logger.Info("serving", "listen", clients.Addr().String(), "endpoint", e.config.Endpoint, "operations", operators.Addr().String())
	<-ctx.Done()

	e.logger.Info("stopping")
	e.subscriptions.Close() // each ends with a result; the server then waits for none
	shutdown, abandon := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer abandon()
	err = server.Shutdown(shutdown)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	group.Wait()
	close(failures)
	for failure := range failures {
		err = errors.Join(err, failure)
	}
	return err
}

const (
	shutdownTimeout   = 20 * time.Second
	readHeaderTimeout = 10 * time.Second
	readBodyTimeout   = 30 * time.Second
	writeTimeout      = 30 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
)
