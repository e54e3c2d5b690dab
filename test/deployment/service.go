package deployment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/countersign-mcp/countersign/deploy/local/suite"
)

// startTimeout bounds how long a program may take to be ready.
const startTimeout = time.Minute

// Service is a running program and where it can be reached.
type Service struct {
	*suite.Process
	// Address is where it serves: a gRPC target, or the edge's HTTP address.
	Address string
	// Operations is where it serves metrics and readiness; empty for a handler.
	Operations string
}

// MCP is the URL of an edge's MCP endpoint.
func (s *Service) MCP() string { return "http://" + s.Address + "/mcp" }

// Metrics reads the service's metrics.
func (s *Service) Metrics(tb testing.TB) Metrics {
	tb.Helper()
	return readMetrics(tb, "http://"+s.Operations+"/metrics")
}

// Ready returns a check of the service's readiness endpoint.
func (s *Service) Ready() func(context.Context) error {
	return suite.Ready("http://" + s.Operations + "/readyz")
}

// Dependency returns a check that a dependency of the service is well; the error is
// what the readiness endpoint says of it.
func (s *Service) Dependency(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		report, err := readReport(ctx, "http://"+s.Operations+"/readyz")
		if err != nil {
			return err
		}
		if state := report.Checks[name]; state != "ok" {
			return fmt.Errorf("%s: %s", name, state)
		}
		return nil
	}
}

// Sealer says how to start a sealer. The zero value has keys of its own.
type Sealer struct {
	// KeyFile is the file with the root key; a new one is made when it is empty.
	KeyFile string
	// Listen is where to listen; a free port when empty.
	Listen string
	// Certificate makes the sealer speak mutual TLS; nil is plaintext.
	Certificate *Certificate
}

// KeyFile makes a new file with a root key.
func KeyFile(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "keys.yaml")
	run(tb, Program(tb, "sealer"), "keys", "new", "--file", path)
	return path
}

// Start starts the sealer and waits until it is ready.
func (s Sealer) Start(tb testing.TB) *Service {
	tb.Helper()
	if s.KeyFile == "" {
		s.KeyFile = KeyFile(tb)
	}
	if s.Listen == "" {
		s.Listen = "127.0.0.1:0"
	}
	configuration := map[string]any{
		"listen":           s.Listen,
		"operationsListen": "127.0.0.1:0",
		"keys":             map[string]any{"source": "file", "file": s.KeyFile},
	}
	if s.Certificate != nil {
		configuration["tls"] = s.Certificate.configuration()
	}
	return startConfigured(tb, "sealer", configuration)
}

// Edge says how to start an edge.
type Edge struct {
	// Sealer is the sealer to use; nil for one inside the edge, with keys that
	// nobody else has.
	Sealer *Service
	// SealerCertificate makes the edge speak mutual TLS with the sealer; nil is
	// plaintext.
	SealerCertificate *Certificate
	// Handlers are the addresses of the handler services by name.
	Handlers map[string]string
	// Encrypt is whether the client must not be able to read request state.
	Encrypt bool
	// Audience is the public URL; edges that share it accept one another's state,
	// given the same keys.
	Audience string
}

// Start starts the edge and waits until it is ready.
func (e Edge) Start(tb testing.TB) *Service {
	tb.Helper()
	return startConfigured(tb, "mcpedge", e.configuration())
}

// StartUnready starts the edge and waits until it answers and has heard from its
// handler services, but not for the sealer.
func (e Edge) StartUnready(tb testing.TB) *Service {
	tb.Helper()
	edge := launch(tb, "mcpedge", e.configuration())
	for name := range e.Handlers {
		await(tb, edge.Dependency("handler/"+name), edge.Process)
	}
	return edge
}

// configuration is the configuration file of the edge.
func (e Edge) configuration() map[string]any {
	handlers := make([]map[string]any, 0, len(e.Handlers))
	for name, address := range e.Handlers {
		handlers = append(handlers, map[string]any{"name": name, "target": address})
	}
	audience := e.Audience
	if audience == "" {
		audience = "https://mcp.example.com/mcp"
	}
	configuration := map[string]any{
		"listen":              "127.0.0.1:0",
		"operationsListen":    "127.0.0.1:0",
		"context":             map[string]any{"audience": audience, "environment": "test"},
		"principal":           map[string]any{"source": "anonymous"},
		"encryptRequestState": e.Encrypt,
		"handlers":            handlers,
	}
	if e.Sealer == nil {
		configuration["sealer"] = "embedded"
		configuration["embeddedSealer"] = map[string]any{"keys": map[string]any{"source": "ephemeral"}}
	} else {
		configuration["sealer"] = e.Sealer.Address
	}
	if e.SealerCertificate != nil {
		configuration["sealerTLS"] = e.SealerCertificate.configuration()
	}
	return configuration
}

// StartHandler starts one of the example handler services.
func StartHandler(tb testing.TB, name string) *Service {
	tb.Helper()
	return StartProgram(tb, suite.Program{
		Name:      name,
		Path:      Program(tb, name),
		Arguments: []string{"--listen", "127.0.0.1:0"},
	})
}

// StartProgram starts a program that has no operations listener and waits until it
// has logged where it listens.
func StartProgram(tb testing.TB, program suite.Program) *Service {
	tb.Helper()
	process := start(tb, program)
	service := &Service{Process: process}
	await(tb, func(context.Context) (err error) {
		service.Address, err = loggedAddress(process, servesAt)
		return err
	}, process)
	return service
}

// startConfigured starts a program that is configured by a file and waits until it
// is ready.
func startConfigured(tb testing.TB, name string, configuration map[string]any) *Service {
	tb.Helper()
	service := launch(tb, name, configuration)
	await(tb, service.Ready(), service.Process)
	return service
}

// launch starts a program that is configured by a file and waits until it has
// logged where it listens.
func launch(tb testing.TB, name string, configuration map[string]any) *Service {
	tb.Helper()
	// JSON is YAML.
	text, err := json.MarshalIndent(configuration, "", "  ")
	if err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(tb.TempDir(), name+".yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		tb.Fatal(err)
	}
	process := start(tb, suite.Program{
		Name:      name,
		Path:      Program(tb, name),
		Arguments: []string{"serve", "--config", path},
	})
	service := &Service{Process: process}
	await(tb, func(context.Context) (err error) {
		if service.Address, err = loggedAddress(process, servesAt); err != nil {
			return err
		}
		service.Operations, err = loggedAddress(process, operationsAt)
		return err
	}, process)
	return service
}

// start starts a program that is ended with the test.
func start(tb testing.TB, program suite.Program) *suite.Process {
	tb.Helper()
	program.LogDirectory = tb.TempDir()
	// A program with the race detector otherwise waits a second before it ends.
	program.Environment = append(program.Environment, "GORACE=atexit_sleep_ms=0")
	process, err := suite.Start(program)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := process.Stop(); err != nil {
			tb.Error(err)
		}
		log := process.LogTail(1000)
		if strings.Contains(log, "DATA RACE") {
			tb.Errorf("%s has a data race", program.Name)
		}
		if tb.Failed() {
			tb.Logf("log of %s:\n%s", program.Name, process.LogTail(60))
		}
	})
	return process
}

// await fails the test unless check passes in time.
func await(tb testing.TB, check func(context.Context) error, processes ...*suite.Process) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), startTimeout)
	defer cancel()
	if err := suite.Await(ctx, check, processes...); err != nil {
		tb.Fatal(err)
	}
}

// What the programs log once they listen.
var (
	servesAt     = regexp.MustCompile(`\bserving\b.*?\b(?:address|listen)"?[=:]"?([^\s",]+)|\blistening on (\S+)`)
	operationsAt = regexp.MustCompile(`\bserving\b.*?\boperations"?[=:]"?([^\s",]+)`)
)

// loggedAddress returns the address that a program has logged.
func loggedAddress(process *suite.Process, pattern *regexp.Regexp) (string, error) {
	log, err := os.ReadFile(process.LogFile())
	if err != nil {
		return "", fmt.Errorf("read log: %w", err)
	}
	match := pattern.FindStringSubmatch(string(log))
	if match == nil {
		return "", errors.New("has not logged where it listens")
	}
	for _, address := range match[1:] {
		if address != "" {
			return address, nil
		}
	}
	return "", fmt.Errorf("logged an empty address: %q", match[0])
}

// run runs a program to its end.
func run(tb testing.TB, path string, arguments ...string) {
	tb.Helper()
	output, err := exec.CommandContext(tb.Context(), path, arguments...).CombinedOutput() //nolint:gosec // the test names the program
	if err != nil {
		tb.Fatalf("run %s: %v\n%s", filepath.Base(path), err, output)
	}
}
