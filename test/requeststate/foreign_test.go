package main

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/countersign-mcp/countersign/deploy/local/suite"
	"github.com/countersign-mcp/countersign/test/deployment"
	"github.com/countersign-mcp/countersign/test/requeststate/probe"
)

// TestAServerOfOtherHandsIsJudgedByTheSameCases points the probe at the official
// Python SDK, which has a request state of its own making. What it is known to fail,
// at the version that is pinned, shows that the cases tell servers apart.
func TestAServerOfOtherHandsIsJudgedByTheSameCases(t *testing.T) {
	server := deployment.StartProgram(t, suite.Program{
		Name:      "pythonserver",
		Path:      deployment.Python(t),
		Arguments: []string{filepath.Join(deployment.Root(), "test", "requeststate", "pythonserver", "server.py")},
	})
	reusable := false
	verdicts, err := probe.Run(t.Context(), &probe.Target{
		Endpoint:       probe.Endpoint{URL: server.MCP()},
		Request:        probe.Request{Tool: "ask", Arguments: `{"amount":1,"note":"x"}`},
		NumberArgument: "amount",
		OtherArguments: `{"amount":2,"note":"x"}`,
		OtherTarget:    &probe.Request{Tool: "ask_too", Arguments: `{"amount":1,"note":"x"}`},
		OnceOnly:       &reusable,
		Samples:        200,
	})
	if err != nil {
		t.Fatal(err)
	}
	var passed, failed []string
	for _, verdict := range verdicts {
		switch verdict.Verdict {
		case probe.Passed:
			passed = append(passed, verdict.Case)
		case probe.Failed:
			failed = append(failed, verdict.Case)
			t.Logf("%s: %s", verdict.Case, verdict.Detail)
		}
	}
	if want := []string{"long decimals", "equal numbers", "duplicate keys"}; !slices.Equal(failed, want) {
		t.Errorf("it fails %v, want %v", failed, want)
	}
	for _, want := range []string{"invented", "changed characters", "truncated", "spliced", "other target", "other arguments", "large integers", "replayed"} {
		if !slices.Contains(passed, want) {
			t.Errorf("it does not pass %q", want)
		}
	}
}
