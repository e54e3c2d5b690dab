package endtoend_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign-mcp/countersign/deploy/local/suite"
	"github.com/countersign-mcp/countersign/test/client"
	"github.com/countersign-mcp/countersign/test/deployment"
)

// readmeHandler is the handler that the README shows, as a program with other
// options, since its own say a port that may be taken.
func readmeHandler(t *testing.T, options string) string {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join(deployment.Root(), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(package main\n.*?)```").FindAllSubmatch(readme, -1)
	if len(blocks) != 1 {
		t.Fatalf("the README has %d Go programs, want one", len(blocks))
	}
	folder := t.TempDir()
	source := filepath.Join(folder, "main.go")
	if err := os.WriteFile(source, withOptions(t, blocks[0][1], options), 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(folder, "handler")
	module := filepath.Join(deployment.Root(), "services", "handlers", "examples")
	output, err := exec.CommandContext(t.Context(), "go", "build", "-C", module, "-o", program, source).CombinedOutput()
	if err != nil {
		t.Fatalf("the README's handler does not compile: %v\n%s", err, output)
	}
	return program
}

func withOptions(t *testing.T, program []byte, options string) []byte {
	t.Helper()
	const own = `handler.Options{Listen: "127.0.0.1:9104"}`
	if !bytes.Contains(program, []byte(own)) {
		t.Fatalf("the README's handler does not say %s, the address in docs/getting-started.md", own)
	}
	return bytes.Replace(program, []byte(own), []byte(options), 1)
}

func TestTheHandlerOfTheReadmeWorks(t *testing.T) {
	handler := deployment.StartProgram(t, suite.Program{Name: "readme", Path: readmeHandler(t, `handler.Options{Listen: "127.0.0.1:0"}`)})
	edge := deployment.Edge{Handlers: map[string]string{"readme": handler.Address}}.Start(t)
	c := newClient(t, edge.MCP())

	reply, err := c.CallTool(t.Context(), "close_account", map[string]any{"number": "42"}, nil, "")
	asked := result(t, reply, err, "input_required")
	if _, found := asked.InputRequests["confirm"]; !found || len(asked.InputRequests) != 1 {
		t.Fatalf("the handler asked %v, want the question \"confirm\"", asked.InputRequests)
	}
	answers := map[string]any{"confirm": client.Accept(map[string]any{"confirm": true})}
	reply, err = c.CallTool(t.Context(), "close_account", map[string]any{"number": "42"}, answers, asked.RequestState)
	done := result(t, reply, err, "complete")
	if len(done.Content) != 1 || !strings.Contains(done.Content[0].Text, "42 is closed") {
		t.Errorf("the result is %s, want the account to be closed", reply.Body)
	}
}
