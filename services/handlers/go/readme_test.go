package handler_test

import (
	"os"
	"strings"
	"testing"
)

func TestTheHandlerOfTheReadmeIsTheOneThatIsCompiled(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(readme), "```go\n")
	code, _, found := strings.Cut(after, "```")
	if !found {
		t.Fatal("the README shows no code")
	}
	code = strings.Replace(code, "func main()", "func Example()", 1)
	for declaration := range strings.SplitSeq(code, "\n\n") {
		if !strings.Contains(string(compiled), strings.TrimSpace(declaration)) {
			t.Errorf("this is not in example_test.go:\n%s", declaration)
		}
	}
}
