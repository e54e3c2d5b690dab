// Package operations serves the operator's side of a service over HTTP: metrics,
// liveness and readiness.
//
// The problem: an orchestrator must know whether to send traffic here, and the
// person who is woken up must know which dependency is the cause. The mechanism:
// a listener of its own, apart from the service's traffic. `/metrics` is the
// Prometheus registry. `/healthz` says that the process answers at all and looks
// at nothing else, so that a dependency's outage never makes the orchestrator
// restart what is healthy. `/readyz` runs named checks and names those that fail.
//
// The limit: the checks run when they are asked for, all at once, within
// CheckTimeout. What is lost: the response holds a fixed sentence for each check,
// because the listener is not authenticated; the error with its cause goes to the
// log.
package operations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// CheckTimeout bounds one request for readiness. A check still running then has
// failed.
const CheckTimeout = 2 * time.Second

const (
	readHeaderTimeout = 5 * time.Second
	idleTimeout       = 60 * time.Second
	shutdownTimeout   = 5 * time.Second
	maxHeaderBytes    = 16 << 10
)

// Check says whether the service can use one of its dependencies.
type Check struct {
	// Name is the dependency's name: `keys`, `sealer`, `handler/refunds`.
	Name string
	// Run returns an error if the dependency cannot be used now.
	Run func(context.Context) error
	// Sentence tells an unauthenticated reader what it means when the check fails:
	// "the sealer does not answer". It holds no detail of the error.
	Sentence string
	// AtStart: the check holds readiness back until it has passed once. A failure
	// after that is named, and the service stays ready: it can still do what does not
	// need this dependency.
	AtStart bool
}

// Readiness is the checks that must all pass before a service takes traffic.
type Readiness struct {
	logger *slog.Logger
	checks []Check
	// passed says which checks have passed once, by position.
	passed []atomic.Bool
}

// NewReadiness makes a Readiness of the checks. Failures are logged with their
// cause.
func NewReadiness(logger *slog.Logger, checks ...Check) *Readiness {
	return &Readiness{logger: logger, checks: checks, passed: make([]atomic.Bool, len(checks))}
}

// Report is the result of all checks.
type Report struct {
	// Ready is whether every check passed that readiness depends on now.
	Ready bool `json:"ready"`
	// Checks holds `ok` or the check's sentence, by the check's name.
	Checks map[string]string `json:"checks"`
}

// Report runs every check at the same time and waits for all of them.
func (r *Readiness) Report(ctx context.Context) Report {
	ctx, cancel := context.WithTimeout(ctx, CheckTimeout)
	defer cancel()

	failures := make([]error, len(r.checks))

	var running sync.WaitGroup
	for position, check := range r.checks {
		running.Go(func() { failures[position] = check.Run(ctx) })
	}

	running.Wait()

	report := Report{Ready: true, Checks: make(map[string]string, len(r.checks))}

	for position, check := range r.checks {
		report.Checks[check.Name] = "ok"

		if failures[position] == nil {
			r.passed[position].Store(true)
		} else {
			report.Ready = report.Ready && check.AtStart && r.passed[position].Load()
			report.Checks[check.Name] = check.Sentence
			r.logger.WarnContext(ctx, "readiness check failed", "check", check.Name, "error", failures[position])
		}
	}

	return report
}

// Handler serves /metrics, /healthz and /readyz.
func Handler(gatherer prometheus.Gatherer, readiness *Readiness) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(response http.ResponseWriter, _ *http.Request) {
		writeJSON(response, http.StatusOK, map[string]bool{"healthy": true})
	})
	mux.HandleFunc("GET /readyz", func(response http.ResponseWriter, request *http.Request) {
		report := readiness.Report(request.Context())
		if !report.Ready {
			writeJSON(response, http.StatusServiceUnavailable, report)

			return
		}

		writeJSON(response, http.StatusOK, report)
	})

	return mux
}

// Serve serves the handler on the listener until the context ends, then lets
// requests under way finish for a few seconds. It closes the listener.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
	}

	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()

	select {
	case err := <-ended:
		return fmt.Errorf("serve operations: %w", err)
	case <-ctx.Done():
	}

	// The context that ended cannot bound the shutdown.
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()

	err := server.Shutdown(bounded)
	if err != nil {
		_ = server.Close() // The error of the shutdown is the one that matters.

		return fmt.Errorf("stop serving operations: %w", err)
	}

	err = <-ended
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve operations: %w", err)
	}

	return nil
}

func writeJSON(response http.ResponseWriter, status int, content any) {
	response.Header().Set("Content-Type", "application/json")
	response.Header().Set("Cache-Control", "no-store")
	response.WriteHeader(status)

	_ = json.NewEncoder(response).Encode(content) //nolint:errchkjson // The reader has gone; there is nobody to tell.
}
