package probe

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheDocumentListsEveryCaseWithItsReasons(t *testing.T) {
	listed := map[string]string{}
	for line := range strings.Lines(readme(t)) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for name := range strings.SplitSeq(cells[1], ",") {
			listed[strings.TrimSpace(name)] = line
		}
	}
	for _, c := range cases {
		line, found := listed[c.name]
		if !found {
			t.Errorf("the case %q is not in the document", c.name)
		}
		if len(c.reasons) == 1 && !strings.Contains(line, "`"+c.reasons[0]+"`") {
			t.Errorf("the document does not name the reason %s of the case %q", c.reasons[0], c.name)
		}
	}
}

func TestTheExampleInTheDocumentIsATargetThatOffersEverything(t *testing.T) {
	_, rest, _ := strings.Cut(readme(t), "```yaml\n")
	example, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("the document has no example")
	}
	path := filepath.Join(t.TempDir(), "target.yaml")
	if err := os.WriteFile(path, []byte(example), 0o600); err != nil {
		t.Fatal(err)
	}
	target, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := target.Check(); err != nil {
		t.Error(err)
	}
	for _, c := range cases {
		if c.needs != nil && c.needs(target) != "" {
			t.Errorf("the example lacks what %q needs: %s", c.name, c.needs(target))
		}
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Target]()) {
		name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		if name != "" && !strings.Contains(example, name+":") {
			t.Errorf("the example does not show %q", name)
		}
	}
}

func TestATargetsMistakesAreNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "target.yaml")
	if err := os.WriteFile(path, []byte("url: http://127.0.0.1/mcp\nurls: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), `"urls"`) {
		t.Errorf("got %v, want it to name the unknown field", err)
	}
	wrong := &Target{
		Refusal: Refusal{As: "silence"}, OtherArguments: "[]", Request: Request{Tool: "a", Prompt: "b", Answers: "1"},
		OtherTarget: &Request{Prompt: "b"}, OtherMethod: &Request{Tool: "a", Arguments: "null"},
		ChangingQuestion: &ChangingQuestion{},
	}
	err := wrong.Check()
	if err == nil {
		t.Fatal("it was taken for right")
	}
	for _, want := range []string{
		"url is missing", "refusal.as", "otherArguments", "request: name one", "request.answers",
		"otherTarget: must be of the method", "otherMethod: must not be of the method", "otherMethod.arguments", "changingQuestion.request: name one",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("it says %q, want it to say %q", err, want)
		}
	}
}
