package operations_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/countersign-mcp/countersign/services/internal/operations"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func get(t *testing.T, handler http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()

	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))

	return recorder
}

func TestACheckAtStartHoldsReadinessBackUntilItHasPassedOnce(t *testing.T) {
	t.Parallel()

	failure := errors.New("not yet")
	readiness := operations.NewReadiness(slog.New(slog.DiscardHandler),
		operations.Check{Name: "sealer", Sentence: "it does not answer", Run: func(context.Context) error { return failure }, AtStart: true})

	for _, want := range []struct {
		failure error
		ready   bool
		text    string
	}{
		{failure, false, "it does not answer"},
		{nil, true, "ok"},
		{failure, true, "it does not answer"},
	} {
		failure = want.failure

		report := readiness.Report(t.Context())
		if report.Ready != want.ready || report.Checks["sealer"] != want.text {
			t.Errorf("with %v: got %+v", want.failure, report)
		}
	}
}

func TestReadyNamesTheFailingDependencyAndLogsItsCause(t *testing.T) {
	t.Parallel()

	var (
		logged  bytes.Buffer
		failure error
	)

	readiness := operations.NewReadiness(slog.New(slog.NewTextHandler(&logged, nil)),
		operations.Check{Name: "keys", Sentence: "the keys are too old", Run: func(context.Context) error { return failure }},
		operations.Check{Name: "handlers", Sentence: "a handler is down", Run: func(context.Context) error { return nil }},
	)
	handler := operations.Handler(prometheus.NewRegistry(), readiness)

	response := get(t, handler, "/readyz")
	if response.Code != http.StatusOK || strings.TrimSpace(response.Body.String()) != `{"ready":true,"checks":{"handlers":"ok","keys":"ok"}}` {
		t.Errorf("got %d %s", response.Code, response.Body)
	}

	failure = errors.New("dial 10.1.2.3: connection refused")

	response = get(t, handler, "/readyz")
	if response.Code != http.StatusServiceUnavailable {
		t.Errorf("got status %d", response.Code)
	}

	var report operations.Report

	err := json.Unmarshal(response.Body.Bytes(), &report)
	if err != nil {
		t.Fatal(err)
	}

	if report.Ready || report.Checks["keys"] != "the keys are too old" || report.Checks["handlers"] != "ok" {
		t.Errorf("got %+v", report)
	}

	if strings.Contains(response.Body.String(), "10.1.2.3") {
		t.Errorf("the response holds the cause: %s", response.Body)
	}

	if !strings.Contains(logged.String(), "10.1.2.3") {
		t.Errorf("the log does not hold the cause: %s", logged.String())
	}

	response = get(t, handler, "/healthz")
	if response.Code != http.StatusOK {
		t.Errorf("a failing dependency made the process unhealthy: %d", response.Code)
	}
}

func TestChecksAreGivenADeadline(t *testing.T) {
	t.Parallel()

	readiness := operations.NewReadiness(slog.New(slog.DiscardHandler), operations.Check{
		Name: "slow", Sentence: "slow is slow", Run: func(ctx context.Context) error {
			_, bounded := ctx.Deadline()
			if !bounded {
				return nil
			}

			return context.DeadlineExceeded
		},
	})

	if readiness.Report(t.Context()).Ready {
		t.Error("the check ran without a deadline")
	}
}

func TestMetricsAreThoseOfTheRegistry(t *testing.T) {
	t.Parallel()

	registry := prometheus.NewRegistry()
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "countersign_example_total", Help: "An example."})
	registry.MustRegister(counter)
	counter.Inc()

	response := get(t, operations.Handler(registry, operations.NewReadiness(slog.New(slog.DiscardHandler))), "/metrics")
	if !strings.Contains(response.Body.String(), "countersign_example_total 1") {
		t.Errorf("got %s", response.Body)
	}
}

func TestServeLetsARequestFinishWhenItStops(t *testing.T) {
	t.Parallel()

	started, release := make(chan struct{}), make(chan struct{})
	handler := http.HandlerFunc(func(response http.ResponseWriter, _ *http.Request) {
		close(started)
		<-release

		_, err := io.WriteString(response, "finished")
		if err != nil {
			t.Error(err)
		}
	})

	opened, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	defer stop()

	served := make(chan error, 1)
	go func() { served <- operations.Serve(ctx, opened, handler) }()

	body := make(chan string, 1)

	go func() {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

		request, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, "http://"+opened.Addr().String(), http.NoBody)
		if err != nil {
			body <- err.Error()

			return
		}

		response, err := client.Do(request)
		if err != nil {
			body <- err.Error()

			return
		}
		defer response.Body.Close()

		content, err := io.ReadAll(response.Body)
		if err != nil {
			body <- err.Error()

			return
		}

		body <- string(content)
	}()

	<-started
	stop()
	close(release)

	if got := <-body; got != "finished" {
		t.Errorf("got %q", got)
	}

	err = <-served
	if err != nil {
		t.Error(err)
	}
}
