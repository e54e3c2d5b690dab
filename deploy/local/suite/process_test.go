package suite_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/countersign-mcp/countersign/deploy/local/suite"
)

// The test binary is the program that the tests start: with one of these as its
// first argument it behaves as told.
const (
	waitForStop = "wait-for-stop"
	fail        = "fail"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case waitForStop:
			stopped := make(chan os.Signal, 1)
			signal.Notify(stopped, syscall.SIGTERM)
			fmt.Fprintln(os.Stdout, "waiting")
			<-stopped
			fmt.Fprintln(os.Stdout, "stopped")
			os.Exit(0)
		case fail:
			fmt.Fprintln(os.Stderr, "the port is taken")
			os.Exit(3)
		}
	}
	goleak.VerifyTestMain(m)
}

func start(t *testing.T, argument string) *suite.Process {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	process, err := suite.Start(suite.Program{
		Name:         "program",
		Path:         executable,
		Arguments:    []string{argument},
		LogDirectory: t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
	return process
}

// waiting is a check that the program has printed its first line.
func waiting(process *suite.Process) func(context.Context) error {
	return func(context.Context) error {
		if !strings.Contains(process.LogTail(1), "waiting") {
			return errors.New("has not printed anything")
		}
		return nil
	}
}

func TestStopLetsTheProgramShutDown(t *testing.T) {
	process := start(t, waitForStop)
	if err := suite.Await(t.Context(), waiting(process), process); err != nil {
		t.Fatal(err)
	}
	if err := process.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := process.Err(); err != nil {
		t.Errorf("process ended with %v, want it to end well", err)
	}
	if tail := process.LogTail(1); tail != "  stopped" {
		t.Errorf("last line of the log is %q, want %q", tail, "  stopped")
	}
}

func TestKillEndsTheProgramAtOnce(t *testing.T) {
	process := start(t, waitForStop)
	if err := suite.Await(t.Context(), waiting(process), process); err != nil {
		t.Fatal(err)
	}
	process.Kill()
	if process.Err() == nil {
		t.Error("process ended well, want it to have been killed")
	}
	if tail := process.LogTail(5); strings.Contains(tail, "stopped") {
		t.Errorf("the program shut down, want it killed; log:\n%s", tail)
	}
}

func TestAwaitEndsWithAProgramThatEnds(t *testing.T) {
	process := start(t, fail)
	never := func(context.Context) error { return errors.New("not yet") }
	err := suite.Await(t.Context(), never, process)
	var ended *suite.EndedError
	if !errors.As(err, &ended) || ended.Process != process {
		t.Fatalf("Await returned %v, want an EndedError of the process", err)
	}
	for _, want := range []string{"program ended (exit status 3)", "the port is taken"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error is %q, want it to hold %q", err, want)
		}
	}
}

func TestAwaitSaysWhatIsMissingWhenItGivesUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := suite.Await(ctx, func(context.Context) error { return errors.New("the sealer does not answer") })
	if err == nil || !strings.Contains(err.Error(), "the sealer does not answer") {
		t.Errorf("Await returned %v, want the last reason", err)
	}
}

func TestAwaitKeepsTheLastAnswerWhenTimeIsUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	err := suite.Await(ctx, func(ctx context.Context) error {
		asked++
		if asked == 1 {
			return errors.New("the sealer does not answer")
		}
		cancel() // as a deadline would, in the middle of a check
		return fmt.Errorf("ask for readiness: %w", ctx.Err())
	})
	if err == nil || !strings.Contains(err.Error(), "the sealer does not answer") {
		t.Errorf("Await returned %v, want the answer from before it was cut off", err)
	}
}

func TestReadyNamesTheChecksThatFail(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"ready":false,"checks":{"sealer":"ok","handler/b":"does not answer","handler/a":"is not there"}}`)
	}))
	defer http.DefaultClient.CloseIdleConnections()
	defer server.Close()
	err := suite.Ready(server.URL)(t.Context())
	missing, ok := errors.AsType[*suite.MissingError](err)
	if !ok {
		t.Fatalf("the check returned %v, want a MissingError", err)
	}
	if got, want := missing.Error(), "handler/a: is not there; handler/b: does not answer"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}

func TestReadyFollowsTheEndpoint(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, "keys: not loaded")
		}
	}))
	defer http.DefaultClient.CloseIdleConnections()
	defer server.Close()
	ready := suite.Ready(server.URL)
	if err := ready(t.Context()); err == nil || !strings.Contains(err.Error(), "keys: not loaded") {
		t.Errorf("the first check returned %v, want what the endpoint said", err)
	}
	if err := ready(t.Context()); err != nil {
		t.Errorf("the second check returned %v, want it ready", err)
	}
}

func TestFreeNamesWhoWantsAnAddressThatIsTaken(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	err = suite.Free(t.Context(), "mcpedge", address)
	if err == nil || !strings.Contains(err.Error(), "mcpedge cannot listen on "+address) {
		t.Errorf("Free returned %v for a taken address", err)
	}
	if err := suite.Listening(address)(t.Context()); err != nil {
		t.Errorf("Listening returned %v for a taken address", err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := suite.Free(t.Context(), "mcpedge", address); err != nil {
		t.Errorf("Free returned %v for a free address", err)
	}
}
