package handler_test

import (
	"os"
	"strings"
	"testing"

	handler "github.com/countersign-mcp/countersign/services/handlers/go"
	"github.com/countersign-mcp/countersign/services/handlers/go/handlertest"
)

func TestClosesAnAccountOnceTheUserHasConfirmed(t *testing.T) {
	newServer := func() *handler.Server {
		server := handler.NewServer("accounts")
		handler.Tool(server, "close_account", closeAccount, handler.Description("Closes an account."))
		return server
	}
	outcome := handlertest.Run(t, newServer,
		handlertest.CallTool("close_account", map[string]string{"number": "42"}),
		handlertest.Always(handlertest.Confirm()))
	if outcome.Text() != "Account 42 is closed." {
		t.Errorf("got %q", outcome.Text())
	}
}

func TestTheProgramsOfTheReadmeAreThoseThatAreCompiled(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(readme), "```go\npackage main\n")
	files := []string{"example_test.go", "readme_test.go"}
	if len(blocks) != len(files)+1 {
		t.Fatalf("the README has %d Go programs, want %d", len(blocks)-1, len(files))
	}
	for i, file := range files {
		compiled, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code, _, _ := strings.Cut(blocks[i+1], "```")
		code = strings.Replace(code, "func main()", "func Example()", 1)
		for part := range strings.SplitSeq(code, "\n\n") {
			part = strings.TrimSpace(part)
			imports := strings.TrimPrefix(part, "import (") // the test file may import more
			if !strings.Contains(string(compiled), imports) {
				t.Errorf("this is not in %s:\n%s", file, part)
			}
		}
	}
}
