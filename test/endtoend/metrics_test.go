package endtoend_test

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	handler "github.com/countersign-mcp/countersign/services/handlers/go"
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

	certificate := deployment.NewCertificate(t)
	sealer := deployment.Sealer{Certificate: certificate}.Start(t)
	handlers := examples(t)
	handlers["hoarder"] = deployment.ServeHandler(t, newHoarder())
	edge := deployment.Edge{Sealer: sealer, SealerCertificate: certificate, Handlers: handlers}.Start(t)
	causeEveryEvent(t, newClient(t, edge.MCP()))

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

// newHoarder returns a handler service whose tool wants to remember more than a
// client carries.
func newHoarder() *handler.Server {
	server := handler.NewServer("hoarder")
	handler.Tool(server, "hoard", func(ctx *handler.Context, _ struct{}) (string, error) {
		if err := ctx.State().Set("hoard", strings.Repeat("gold ", 8000)); err != nil {
			return "", err
		}
		_, err := ctx.Confirm("Keep all of it?")
		return "", err
	}, handler.Description("Wants to remember too much."))
	return server
}

// causeEveryEvent makes what the metrics count happen once: a metric with labels is
// exposed only from its first event on.
func causeEveryEvent(t *testing.T, c *client.Client) {
	t.Helper()
	// Questions, answers and results.
	if err := twoRounds(t.Context(), c, "Ada"); err != nil {
		t.Fatal(err)
	}
	name := map[string]any{"step1": client.Accept(map[string]any{"name": "Ada"})}
	// A state that is refused.
	reply, err := c.CallTool(t.Context(), askTwice, map[string]any{}, name, "AQ")
	failure(t, reply, err, http.StatusOK, codeInvalidParams)
	// A cursor that is refused.
	reply, err = c.Send(t.Context(), "tools/list", "", map[string]any{"cursor": ""})
	failure(t, reply, err, http.StatusOK, codeInvalidParams)
	// An answer to a question that was not shown.
	reply, err = c.CallTool(t.Context(), askTwice, map[string]any{}, nil, "")
	asked := result(t, reply, err, "input_required")
	name["step2"] = client.Accept(map[string]any{"color": "green"})
	reply, err = c.CallTool(t.Context(), askTwice, map[string]any{}, name, asked.RequestState)
	result(t, reply, err, "input_required")
	// A question that cannot be put.
	reply, err = c.CallTool(t.Context(), "hoard", map[string]any{}, nil, "")
	if refused := failure(t, reply, err, http.StatusOK, codeInternal); !strings.Contains(refused.Message, "keep less in the state") {
		t.Errorf("the error is %q, want it to tell the author what to change", refused.Message)
	}
	// A message that is not a request.
	response, err := c.HTTP.Post(c.URL, "text/plain", strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("a text was answered with %s, want it refused", response.Status)
	}
}
