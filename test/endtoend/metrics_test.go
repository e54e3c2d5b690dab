package endtoend_test

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/countersign-mcp/countersign/test/client"
	"github.com/countersign-mcp/countersign/test/deployment"
)

// documented finds the metrics of the product in docs/metrics.md.
var documented = regexp.MustCompile("`(countersign_[a-z0-9_]+)[`{]")

// ours is a metric of the product, as against those of the Go runtime.
var ours = regexp.MustCompile(`^countersign_`)

func TestEveryMetricIsDocumentedAndEveryDocumentedMetricExists(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(deployment.Root(), "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	inDocument := map[string]bool{}
	for _, match := range documented.FindAllSubmatch(text, -1) {
		inDocument[string(match[1])] = true
	}

	// A metric with labels is exposed from its first event on, so there must be
	// one of each: a call, a question with its answer, a refusal, a failure.
	sealer := deployment.Sealer{}.Start(t)
	edge := deployment.Edge{Sealer: sealer, Handlers: examples(t)}.Start(t)
	c := newClient(t, edge.MCP())
	if err := twoRounds(t.Context(), c, "Ada"); err != nil {
		t.Fatal(err)
	}
	reply, err := c.CallTool(t.Context(), askTwice, map[string]any{},
		map[string]any{"step1": client.Accept(map[string]any{"name": "Ada"})}, "AQ")
	failure(t, reply, err, http.StatusOK, codeInvalidParams)

	exposed := map[string]bool{}
	for _, service := range []*deployment.Service{sealer, edge} {
		for name := range service.Metrics(t) {
			if ours.MatchString(name) {
				exposed[name] = true
			}
		}
	}
	if len(exposed) == 0 {
		t.Fatal("the programs expose no metric of the product")
	}
	for _, name := range slices.Sorted(maps.Keys(exposed)) {
		if !inDocument[name] {
			t.Errorf("%s is exposed and not in docs/metrics.md", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(inDocument)) {
		if !exposed[name] {
			t.Errorf("%s is in docs/metrics.md and not exposed", name)
		}
	}
}
