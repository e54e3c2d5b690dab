package conformance_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/countersign-mcp/countersign/test/conformance"
	"github.com/countersign-mcp/countersign/test/deployment"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(int) { http.DefaultClient.CloseIdleConnections() }))
}

func TestServerPassesTheOfficialSuite(t *testing.T) {
	packages := filepath.Join(deployment.Root(), "test", "conformance", "node_modules")
	node := filepath.Join(packages, ".bin", "node")
	if _, err := os.Stat(node); err != nil {
		t.Fatalf("the suite is not installed, or its Node.js not for this machine: run `make conformance` (%v)", err)
	}
	edge := deployment.Edge{
		Sealer: deployment.Sealer{}.Start(t),
		Handlers: map[string]string{
			"refunds":    deployment.StartHandler(t, "refunds").Address,
			"everything": deployment.StartHandler(t, "everything").Address,
		},
	}.Start(t)

	// Kept, so that there is something to look at afterwards.
	results := filepath.Join(deployment.Root(), "build", "conformance")
	if err := os.RemoveAll(results); err != nil {
		t.Fatal(err)
	}
	suite := exec.CommandContext(t.Context(), node,
		filepath.Join(packages, "@modelcontextprotocol", "conformance", "dist", "index.js"),
		"server", "--url", edge.MCP(), "--requirements", conformance.Revision, "--output-dir", results)
	output, exit := suite.CombinedOutput()

	checks, err := conformance.ReadResults(results)
	if err != nil {
		t.Fatalf("%v; the suite ended with %v and printed:\n%s", err, exit, output)
	}
	verdict := conformance.Judge(checks)
	if err := verdict.Print(t.Output()); err != nil {
		t.Error(err)
	}
	for _, failure := range verdict.Failures() {
		t.Error(failure)
	}
	if exit != nil {
		t.Errorf("the suite ended with %v and printed:\n%s", exit, output)
	}
}
