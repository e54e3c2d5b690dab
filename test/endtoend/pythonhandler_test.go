package endtoend_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-mcp/countersign/deploy/local/suite"
	"github.com/countersign-mcp/countersign/test/client"
	"github.com/countersign-mcp/countersign/test/deployment"
)

// The contract is not Go's: a handler written in Python against nothing but the
// generated code asks and is answered like any other.
func TestAHandlerInPythonAsksAndIsAnswered(t *testing.T) {
	folder := filepath.Join(deployment.Root(), "test", "pythonhandler")
	output, err := exec.CommandContext(t.Context(), deployment.Python(t), filepath.Join(folder, "generate.py")).CombinedOutput()
	if err != nil {
		t.Fatalf("generate the Python code of the contract: %v\n%s", err, output)
	}
	handler := deployment.StartProgram(t, suite.Program{
		Name:        "pythonhandler",
		Path:        deployment.Python(t),
		Arguments:   []string{filepath.Join(folder, "handler.py"), "--listen", "127.0.0.1:0"},
		Environment: []string{"PYTHONPATH=" + filepath.Join(deployment.Root(), "build", "pythonhandler")},
	})
	edge := deployment.Edge{
		Sealer:   deployment.Sealer{}.Start(t),
		Handlers: map[string]string{"python": handler.Address},
	}.Start(t)
	c := newClient(t, edge.MCP())

	reply, err := c.CallTool(t.Context(), "greet_politely", map[string]any{}, nil, "")
	asked := result(t, reply, err, "input_required")
	if len(asked.InputRequests) != 1 {
		t.Fatalf("the handler asked %d questions, want one", len(asked.InputRequests))
	}
	answers := map[string]any{}
	for key := range asked.InputRequests {
		answers[key] = client.Accept(map[string]any{"name": "Ada"})
	}
	reply, err = c.CallTool(t.Context(), "greet_politely", map[string]any{}, answers, asked.RequestState)
	done := result(t, reply, err, "complete")
	if len(done.Content) == 0 || !strings.Contains(done.Content[0].Text, "Ada") {
		t.Errorf("the result is %s, want a greeting for Ada", reply.Body)
	}
}
