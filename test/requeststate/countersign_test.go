package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	handler "github.com/countersign-mcp/countersign/services/handlers/go"
	"github.com/countersign-mcp/countersign/test/deployment"
	"github.com/countersign-mcp/countersign/test/requeststate/probe"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(int) { http.DefaultClient.CloseIdleConnections() }))
}

// subject is the header in which the proxy in front would name the caller.
const subject = "X-Test-Subject"

// TestCountersignRefusesEveryMisuseAlikeAndCountsItsReason runs every case against
// real processes: one sealer, and an edge for each thing that a request state can be
// from.
func TestCountersignRefusesEveryMisuseAlikeAndCountsItsReason(t *testing.T) {
	for name, encrypt := range map[string]bool{"authenticated": false, "encrypted": true} {
		t.Run(name, func(t *testing.T) {
			description := describe(t, encrypt)
			var output, problems bytes.Buffer
			code := run(t.Context(), []string{"--target", description, "--json"}, &output, &problems)
			var verdicts []probe.Verdict
			if err := json.Unmarshal(output.Bytes(), &verdicts); err != nil {
				t.Fatalf("exit code %d: %v: %s", code, err, problems.String())
			}
			reasons := map[string]bool{}
			for _, verdict := range verdicts {
				if verdict.Verdict != probe.Passed {
					t.Errorf("%s: %s: %s", verdict.Case, verdict.Verdict, verdict.Detail)
				}
				for reason := range verdict.Reasons {
					reasons[reason] = true
				}
			}
			if code != exitPassed {
				t.Errorf("exit code %d: %s", code, problems.String())
			}
			want := []string{
				"chain_expired", "expired", "malformed", "not_authentic", "other_method", "other_params", "other_principal",
				"other_target", "question_changed", "retired_key", "too_large", "unknown_key", "unknown_version", "wrong_suite",
			}
			if encrypt {
				want = slices.Sorted(slices.Values(append(want, "wrong_commitment")))
			}
			if got := slices.Sorted(maps.Keys(reasons)); !slices.Equal(got, want) {
				t.Errorf("the reasons counted are %v, want %v", got, want)
			}
		})
	}
}

// describe starts everything that the cases need and returns the description.
func describe(t *testing.T, encrypt bool) string {
	t.Helper()
	var question atomic.Int64
	service := serve(t, &question)
	keys := deployment.KeyFile(t)
	rotate(t, keys)
	sealer := deployment.StartConfigured(t, "sealer", map[string]any{
		"listen": "127.0.0.1:0", "operationsListen": "127.0.0.1:0",
		"keys": map[string]any{"source": "file", "file": keys, "refresh": "100ms"},
	})
	edge := func(change func(map[string]any)) *deployment.Service {
		configuration := map[string]any{
			"listen": "127.0.0.1:0", "operationsListen": "127.0.0.1:0",
			"context":             map[string]any{"audience": "https://mcp.example.com/mcp"},
			"principal":           trusted("https://issuer.example.com"),
			"encryptRequestState": encrypt,
			"sealer":              sealer.Address,
			"handlers":            []any{map[string]any{"name": "test", "target": service}},
		}
		change(configuration)
		return deployment.StartConfigured(t, "mcpedge", configuration)
	}
	embedded := func(keys map[string]any) func(map[string]any) {
		return func(c map[string]any) { c["sealer"], c["embeddedSealer"] = "embedded", map[string]any{"keys": keys} }
	}
	limits := func(limits map[string]any) func(map[string]any) {
		return func(c map[string]any) { c["limits"] = limits }
	}

	main := edge(func(map[string]any) {})
	otherIssuer := edge(func(c map[string]any) { c["principal"] = trusted("https://other.example.com") })
	otherDeployment := edge(func(c map[string]any) { c["context"] = map[string]any{"audience": "https://other.example.com/mcp"} })
	unknownKey := edge(embedded(map[string]any{"source": "ephemeral"}))
	shortLived := edge(limits(map[string]any{"requestStateLifetime": "2s"}))
	shortChain := edge(limits(map[string]any{"chainLifetime": "2s"}))
	// It reads the same keys and seals with the new version after seconds, where the
	// sealer of the others waits for an hour.
	preparedKey := edge(embedded(map[string]any{
		"source": "file", "file": keys, "refresh": "100ms", "hardAge": "1s", "activationDelay": "2s",
	}))
	awaitMetric(t, preparedKey, "countersign_keyring_versions", "state=retiring", 1)

	target := map[string]any{
		"url": main.MCP(), "headers": as("ada"), "metrics": "http://" + main.Operations + "/metrics",
		"request": map[string]any{
			"tool": "ask", "arguments": `{"amount":1,"note":"caf\u00e9","options":{"b":[1,2],"a":null}}`,
		},
		"refusal":          map[string]any{"code": -32602, "message": "the requestState is not valid"},
		"numberArgument":   "amount",
		"otherArguments":   `{"amount":2}`,
		"otherTarget":      map[string]any{"tool": "ask_too", "arguments": `{"amount":1,"note":"caf\u00e9","options":{"b":[1,2],"a":null}}`},
		"otherMethod":      map[string]any{"prompt": "ask", "arguments": `{"amount":"1"}`},
		"otherPrincipal":   map[string]any{"headers": as("grace")},
		"otherIssuer":      map[string]any{"url": otherIssuer.MCP(), "headers": as("ada")},
		"otherDeployment":  map[string]any{"url": otherDeployment.MCP(), "headers": as("ada")},
		"unknownKey":       map[string]any{"url": unknownKey.MCP(), "headers": as("ada")},
		"preparedKey":      map[string]any{"url": preparedKey.MCP(), "headers": as("ada")},
		"expiry":           map[string]any{"url": shortLived.MCP(), "headers": as("ada")},
		"chainExpiry":      map[string]any{"url": shortChain.MCP(), "headers": as("ada")},
		"changingQuestion": map[string]any{"request": map[string]any{"tool": "ask_anew"}, "change": map[string]any{"post": changer(t, &question)}},
		"retire":           map[string]any{"action": map[string]any{"command": []string{"sed", "-i", "s/minVersion: 1/minVersion: 2/", keys}}},
		"onceOnly":         false,
	}
	// JSON is YAML.
	text, err := json.Marshal(target)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "target.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func trusted(issuer string) map[string]any {
	return map[string]any{"source": "trustedHeader", "header": subject, "issuer": issuer, "proxies": []string{"127.0.0.0/8"}}
}

func as(name string) map[string]any { return map[string]any{subject: name} }

// serve serves a handler that asks, and returns its address. One of its questions is
// the current number.
func serve(t *testing.T, question *atomic.Int64) string {
	t.Helper()
	server := handler.NewServer("test")
	anything := handler.InputSchema(json.RawMessage(`{"type":"object"}`))
	confirm := func(ctx *handler.Context, _ json.RawMessage) (string, error) {
		action, err := ctx.Confirm("Go on?", handler.Key("go"))
		return string(action), err
	}
	handler.Tool(server, "ask", confirm, anything, handler.Description("Asks for a confirmation."))
	handler.Tool(server, "ask_too", confirm, anything, handler.Description("Asks for the same confirmation."))
	handler.Tool(server, "ask_anew", func(ctx *handler.Context, _ struct{}) (string, error) {
		action, err := ctx.Confirm(fmt.Sprintf("Question %d?", question.Load()), handler.Key("go"))
		return string(action), err
	}, handler.Description("Asks for the current confirmation."))
	type argument struct {
		Amount string `json:"amount"`
	}
	handler.Prompt(server, "ask", func(ctx *handler.Context, _ argument) ([]handler.Message, error) {
		action, err := ctx.Confirm("Go on?", handler.Key("go"))
		return []handler.Message{handler.User(handler.Text(string(action)))}, err
	}, handler.Description("Asks for a confirmation too."))
	return deployment.ServeHandler(t, server)
}

// changer returns a URL that changes the question.
func changer(t *testing.T, question *atomic.Int64) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { question.Add(1) }))
	t.Cleanup(server.Close)
	return server.URL
}

// rotate adds a version to a key file.
func rotate(t *testing.T, path string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), deployment.Program(t, "sealer"), "keys", "rotate", "--file", path)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("rotate: %v: %s", err, output)
	}
}

// awaitMetric waits until a metric has a value.
func awaitMetric(t *testing.T, service *deployment.Service, name, label string, want float64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for service.Metrics(t).Sum(name, label) != want {
		select {
		case <-ctx.Done():
			t.Fatalf("%s{%s} did not become %v", name, label, want)
		case <-again.C:
		}
	}
}

func TestTheCommandSaysWhyItCannotTest(t *testing.T) {
	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"no target":        {nil, "url is missing"},
		"no request":       {[]string{"--url", "http://127.0.0.1:1/mcp"}, "name one tool, prompt or resource"},
		"two requests":     {[]string{"--url", "http://127.0.0.1:1/mcp", "--tool", "a", "--prompt", "b"}, "name one tool, prompt or resource"},
		"bad arguments":    {[]string{"--url", "http://127.0.0.1:1/mcp", "--tool", "a", "--arguments", "[]"}, "arguments: must be the text of a JSON object"},
		"nobody there":     {[]string{"--url", "http://127.0.0.1:1/mcp", "--tool", "a"}, "the request that all cases build on is not served"},
		"no such file":     {[]string{"--target", "none.yaml"}, "read the target"},
		"unknown flag":     {[]string{"--none"}, "not defined: -none"},
		"spare argument":   {[]string{"none"}, `unexpected argument "none"`},
		"header by halves": {[]string{"--header", "none"}, "want Name: value"},
	} {
		t.Run(name, func(t *testing.T) {
			var output, problems bytes.Buffer
			if code := run(t.Context(), test.arguments, &output, &problems); code != exitNotTested {
				t.Errorf("exit code %d, want %d", code, exitNotTested)
			}
			if !strings.Contains(problems.String(), test.want) {
				t.Errorf("it says %q, want it to say %q", problems.String(), test.want)
			}
		})
	}
}
