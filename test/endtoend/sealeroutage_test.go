package endtoend_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-mcp/countersign/deploy/local/suite"
	"github.com/countersign-mcp/countersign/test/client"
	"github.com/countersign-mcp/countersign/test/deployment"
)

func TestADeadSealerIsUnavailableAndNeverARefusal(t *testing.T) {
	keys := deployment.KeyFile(t)
	sealer := deployment.Sealer{KeyFile: keys}.Start(t)
	edge := deployment.Edge{Sealer: sealer, Handlers: examples(t)}.Start(t)
	c := newClient(t, edge.MCP())

	reply, err := c.CallTool(t.Context(), askTwice, map[string]any{}, nil, "")
	asked := result(t, reply, err, "input_required")
	answers := map[string]any{"step1": client.Accept(map[string]any{"name": "Ada"})}

	sealer.Kill()

	// The state cannot be looked at: try again later, not "invalid".
	reply, err = c.CallTool(t.Context(), askTwice, map[string]any{}, answers, asked.RequestState)
	unavailable := failure(t, reply, err, http.StatusServiceUnavailable, codeInternal)
	if reply.Header.Get("Retry-After") == "" {
		t.Error("the reply has no Retry-After header")
	}
	if unavailable.Message == invalidState {
		t.Error("an unavailable sealer was told as a refusal")
	}

	// A question cannot be put either, since its state cannot be sealed.
	reply, err = c.CallTool(t.Context(), askTwice, map[string]any{}, nil, "")
	failure(t, reply, err, http.StatusServiceUnavailable, codeInternal)

	// Calls that need no sealer go on.
	reply, err = c.CallTool(t.Context(), "list_orders", map[string]any{}, nil, "")
	result(t, reply, err, "complete")

	// The operator reads which dependency it is.
	if err := edge.Dependency("sealer")(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "sealer: ") {
		t.Errorf("the readiness report gives %v, want it to name the sealer", err)
	}

	// A sealer comes back with the same keys; the edge was not touched.
	deployment.Sealer{KeyFile: keys, Listen: sealer.Address}.Start(t)
	if err := suite.Await(t.Context(), edge.Dependency("sealer"), edge.Process); err != nil {
		t.Fatal(err)
	}
	reply, err = c.CallTool(t.Context(), askTwice, map[string]any{}, answers, asked.RequestState)
	result(t, reply, err, "input_required")
}
