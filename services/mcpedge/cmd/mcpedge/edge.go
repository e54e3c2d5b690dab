package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	sealv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/seal/v1"
	"github.com/countersign-mcp/countersign/services/internal/operations"
	"github.com/countersign-mcp/countersign/services/mcpedge/catalog"
	"github.com/countersign-mcp/countersign/services/mcpedge/failure"
	"github.com/countersign-mcp/countersign/services/mcpedge/identity"
	"github.com/countersign-mcp/countersign/services/mcpedge/modern"
	"github.com/countersign-mcp/countersign/services/mcpedge/render"
	"github.com/countersign-mcp/countersign/services/mcpedge/state"
	"github.com/countersign-mcp/countersign/services/mcpedge/subscription"
	"github.com/countersign-mcp/countersign/services/mcpedge/telemetry"
	mcphttp "github.com/countersign-mcp/countersign/services/mcpedge/transport/http"
	mcpstdio "github.com/countersign-mcp/countersign/services/mcpedge/transport/stdio"
)

// edge is the assembled service.
type edge struct {
	config        Config
	logger        *slog.Logger
	registry      *prometheus.Registry
	refused       func(reason failure.Reason)
	catalog       *catalog.Catalog
	subscriptions *subscription.Hub
	readiness     *operations.Readiness
	modern        *modern.Server
}

func newEdge(config Config, sealer *sealerConnection, handlers *handlerConnections, around surroundings) *edge {
	registry, logger := around.registry, around.logger
	metrics := telemetry.New(registry)
	subscriptions := subscription.NewHub(config.Limits.MaxSubscriptions, config.Limits.MaxSubscriptionsPerPrincipal)
	entries := catalog.New(handlers.list, logger, observers{metrics, subscriptions})
	server := modern.NewServer(modern.Options{
		Catalog: entries,
		Sealer: state.NewSealer(sealer.client, state.Options{
			Context:       &sealv1.Context{Audience: config.Context.Audience, Tenant: config.Context.Tenant, Environment: config.Context.Environment},
			Encrypt:       config.EncryptRequestState,
			MaxTokenBytes: int(config.Limits.MaxRequestStateBytes),
			MaxRound:      config.Limits.MaxRounds,
			Lifetime:      config.Limits.RequestStateLifetime.Duration(),
			Timeout:       config.Limits.SealerTimeout.Duration(),
		}),
		Subscriptions:  subscriptions,
		Renderer:       render.NewRenderer(render.ServerInfo{Name: config.Server.Name, Version: config.Server.Version, Title: config.Server.Title}),
		Metrics:        metrics,
		Logger:         logger,
		Tracing:        around.tracing,
		Now:            time.Now,
		RequestTimeout: config.Limits.RequestTimeout.Duration(),
		ChainLifetime:  config.Limits.ChainLifetime.Duration(),
		KeepAlive:      config.Limits.KeepAlive.Duration(),
		PageSize:       config.Limits.PageSize,
	})
	return &edge{
		config:        config,
		logger:        logger,
		registry:      registry,
		refused:       func(reason failure.Reason) { metrics.MessageRefused(string(reason)) },
		catalog:       entries,
		subscriptions: subscriptions,
		readiness:     operations.NewReadiness(logger, checks(sealer, handlers, entries)...),
		modern:        server,
	}
}

// endpoint is where clients post their messages.
func (e *edge) endpoint() http.Handler {
	return mcphttp.NewHandler(mcphttp.Options{
		Server:         e.modern,
		Principals:     principals(e.config.Principal),
		Logger:         e.logger,
		Refused:        e.refused,
		MaxBodyBytes:   e.config.Limits.MaxBodyBytes.Int64(),
		BodyTimeout:    readBodyTimeout,
		WriteTimeout:   writeTimeout,
		MaxDepth:       e.config.Limits.MaxDepth,
		AllowedHosts:   e.config.AllowedHosts,
		AllowedOrigins: e.config.AllowedOrigins,
	})
}

// conversation is with the client that started this process.
func (e *edge) conversation(input io.Reader, output io.Writer) *mcpstdio.Connection {
	return mcpstdio.New(input, output, mcpstdio.Options{
		Server:       e.modern,
		Logger:       e.logger,
		Refused:      e.refused,
		MaxLineBytes: int(e.config.Limits.MaxBodyBytes),
		MaxDepth:     e.config.Limits.MaxDepth,
	})
}

// observers are told of what changes in the catalog: metrics count it, and
// subscriptions pass it on.
type observers struct {
	*telemetry.Metrics
	*subscription.Hub
}

// server returns the HTTP server for clients. It has no timeouts for bodies and
// replies: the endpoint bounds the arrival of a body and each write by itself, because
// a stream lasts as long as its request.
func (e *edge) server() *http.Server {
	mux := http.NewServeMux()
	mux.Handle(e.config.Endpoint, e.endpoint())
	return &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(e.logger.Handler(), slog.LevelInfo),
	}
}

func principals(config Principal) identity.Source {
	if config.Source != sourceTrustedHeader {
		return identity.Anonymous{}
	}
	prefixes, _ := config.prefixes() // load has checked them
	return identity.TrustedHeader{Header: config.Header, Issuer: config.Issuer, Proxies: prefixes}
}

// checks are what must have answered once before the edge takes traffic. After that
// a failure is named and the edge stays ready: calls that need no seal, and other
// handlers, still work.
func checks(sealer *sealerConnection, handlers *handlerConnections, entries *catalog.Catalog) []operations.Check {
	list := []operations.Check{{Name: "sealer", Run: sealer.check, Sentence: "the sealer does not answer or has no keys", AtStart: true}}
	for _, handler := range handlers.list {
		list = append(list, operations.Check{
			Name:     "handler/" + handler.Name,
			Run:      func(context.Context) error { return entries.Reachable(handler.Name) },
			Sentence: "the handler service does not answer",
			AtStart:  true,
		})
	}
	return list
}
