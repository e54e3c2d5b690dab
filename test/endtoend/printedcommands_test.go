package endtoend_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-mcp/countersign/test/client"
	"github.com/countersign-mcp/countersign/test/deployment"
)

// localURL is where `make run` serves.
const localURL = "http://127.0.0.1:8080/mcp"

// welcome is what `make run` prints when the suite is ready.
func welcome(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(deployment.Root(), "deploy", "local", "cmd", "local", "welcome.go"))
	if err != nil {
		t.Fatal(err)
	}
	literal := regexp.MustCompile("(?s)const welcome = `(.*)`").FindSubmatch(source)
	if literal == nil {
		t.Fatal("welcome.go has no constant welcome")
	}
	return string(literal[1])
}

// printedCommands are the command lines in it, by their first word. A line that
// ends in a backslash goes on.
func printedCommands(t *testing.T) map[string]string {
	t.Helper()
	commands := map[string]string{}
	text := strings.ReplaceAll(welcome(t), "\\\n", " ")
	for _, match := range regexp.MustCompile(`(?m)^ {2}(curl|\./build/bin/countersign) .*$`).FindAllStringSubmatch(text, -1) {
		commands[match[1]] = strings.TrimSpace(match[0])
	}
	return commands
}

// shell runs a command line as a person would paste it, against another URL and
// with the program of this tree, and returns what it prints.
func shell(t *testing.T, line, url string) string {
	t.Helper()
	line = strings.ReplaceAll(line, localURL, url)
	line = strings.ReplaceAll(line, "./build/bin/countersign", deployment.Program(t, "countersign"))
	command := exec.CommandContext(t.Context(), "bash", "-c", line)
	command.Env = append(os.Environ(), "COUNTERSIGN_URL="+url)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, output)
	}
	return string(output)
}

func TestPrintedCommandsWork(t *testing.T) {
	edge := deployment.Edge{Sealer: deployment.Sealer{}.Start(t), Handlers: examples(t)}.Start(t)
	commands := printedCommands(t)

	t.Run("curl", func(t *testing.T) {
		if _, err := exec.LookPath("curl"); err != nil {
			t.Skip("this machine has no curl")
		}
		output := shell(t, commands["curl"], edge.MCP())
		var reply struct {
			Result client.Result `json:"result"`
		}
		if err := json.Unmarshal([]byte(output), &reply); err != nil {
			t.Fatalf("read what curl printed: %v\n%s", err, output)
		}
		if _, asked := reply.Result.InputRequests["items"]; !asked || reply.Result.RequestState == "" {
			t.Errorf("curl printed %s, want the question for the items", output)
		}
	})

	// A person answers at the terminal; here the answers are on the command line.
	t.Run("countersign", func(t *testing.T) {
		line := commands["./build/bin/countersign"] +
			` --answer 'items={"items":["TEA-250"]}' --answer 'confirm={"confirm":true}'`
		if output := shell(t, line, edge.MCP()); !strings.Contains(output, "Refunded 12.50 EUR") {
			t.Errorf("countersign printed %s, want the refund", output)
		}
	})
}

// steps are the steps of `make test`, in their order, by their names.
func steps(t *testing.T) []string {
	t.Helper()
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("this machine has no make")
	}
	command := exec.CommandContext(t.Context(), "make", "--dry-run", "test")
	command.Dir = deployment.Root()
	command.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=")
	output, err := command.Output()
	if err != nil {
		t.Fatalf("ask make for the steps: %v", err)
	}
	var names []string
	var modules []string
	for _, match := range regexp.MustCompile(`for module in ([^;]+);|timed\.sh "([^"]+)"`).FindAllStringSubmatch(string(output), -1) {
		if match[1] != "" {
			modules = strings.Fields(match[1])
			continue
		}
		if name, ofModules := strings.CutSuffix(match[2], "$module"); ofModules {
			for _, module := range modules {
				names = append(names, name+module)
			}
			continue
		}
		names = append(names, match[2])
	}
	return names
}

func TestTheReadmeShowsTheStepsOfMakeTest(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(deployment.Root(), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, match := range regexp.MustCompile(`(?m)^--- (.*): ok in \d+ s$`).FindAllStringSubmatch(string(readme), -1) {
		shown = append(shown, match[1])
	}
	if want := steps(t); !slices.Equal(shown, want) {
		t.Errorf("the README shows the steps %q, and they are %q", shown, want)
	}
}

func TestTheReadmeShowsWhatIsPrinted(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(deployment.Root(), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), welcome(t)) {
		t.Error("the README does not show what `make run` prints now")
	}
}
