package terminal_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"

	"github.com/countersign-mcp/countersign/client/ask"
	"github.com/countersign-mcp/countersign/client/terminal"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// interview puts an ask to somebody who types the lines and then nothing more.
func interview(t *testing.T, request string, lines ...string) (response, screen string, err error) {
	t.Helper()
	asks, err := ask.Parse(jsontext.Value(`{"k":` + request + `}`))
	if err != nil {
		t.Fatal(err)
	}
	typed := strings.Join(append(lines, ""), "\n")
	var shown bytes.Buffer
	interviewer := terminal.NewInterviewer("shop.example:8080", false, strings.NewReader(typed), &shown)
	defer interviewer.Close()
	answer, err := interviewer.Ask(t.Context(), asks[0])
	return string(answer), shown.String(), err
}

// form is a form with the given message, required fields and properties.
func form(message, required, properties string) string {
	return `{"method":"elicitation/create","params":{"message":"` + message +
		`","requestedSchema":{"type":"object","required":[` + required + `],"properties":{` + properties + `}}}}`
}

var contact = form("Who are you?", `"name"`, `
	"name":{"type":"string","title":"Your name","description":"As in your passport","minLength":2},
	"age":{"type":"integer","minimum":18},
	"size":{"type":"string","enum":["S","M"],"default":"M"},
	"tags":{"type":"array","items":{"anyOf":[{"const":"n","title":"New"},{"const":"u","title":"Used"}]}},
	"news":{"type":"boolean","default":false}`)

var atLeastOne = form("m", "", `"kinds":{"type":"array","minItems":1,"items":{"type":"string","enum":["a"]}}`)

func TestAFormIsAnsweredFieldByField(t *testing.T) {
	for name, test := range map[string]struct {
		request string
		lines   []string
		want    string
	}{
		"all fields": {
			contact,
			[]string{"Ada", "9007199254740993", "1", "1,2", "y", "s"},
			`{"action":"accept","content":{"name":"Ada","age":9007199254740993,"size":"S","tags":["n","u"],"news":true}}`,
		},
		"defaults and skipped fields": {
			contact,
			[]string{"Ada", "", "", "", "", "s"},
			`{"action":"accept","content":{"name":"Ada","size":"M","news":false}}`,
		},
		"a default left out": {
			contact,
			[]string{"Ada", "", ":skip", "none", "", "s"},
			`{"action":"accept","content":{"name":"Ada","tags":[],"news":false}}`,
		},
		"mistakes corrected": {
			contact,
			[]string{"", "A", "Ada", "17", "x", "18", "3", "2", "9", "2", "perhaps", "n", "?", "s"},
			`{"action":"accept","content":{"name":"Ada","age":18,"size":"M","tags":["u"],"news":false}}`,
		},
		"edited before sending": {
			contact,
			[]string{"Ada", "20", "", "", "", "e", "Bob", "", "1", "", "", "s"},
			`{"action":"accept","content":{"name":"Bob","age":20,"size":"S","news":false}}`,
		},
		"declined at a field":       {contact, []string{"Ada", ":decline"}, `{"action":"decline"}`},
		"cancelled at a field":      {contact, []string{":cancel"}, `{"action":"cancel"}`},
		"declined at the review":    {contact, []string{"Ada", "", "", "", "", "d"}, `{"action":"decline"}`},
		"cancelled at the review":   {contact, []string{"Ada", "", "", "", "", "c"}, `{"action":"cancel"}`},
		"closed":                    {contact, []string{"Ada"}, `{"action":"cancel"}`},
		"a word with a colon":       {form("m", "", `"a":{"type":"string"}`), []string{"::decline"}, `{"action":"accept","content":{"a":":decline"}}`},
		"an empty text":             {form("m", `"a"`, `"a":{"type":"string"}`), []string{"", `""`}, `{"action":"accept","content":{"a":""}}`},
		"a yes":                     {form("m", `"confirm"`, `"confirm":{"type":"boolean"}`), []string{"y"}, `{"action":"accept","content":{"confirm":true}}`},
		"a no":                      {form("m", `"confirm"`, `"confirm":{"type":"boolean"}`), []string{"hm", "No"}, `{"action":"accept","content":{"confirm":false}}`},
		"a yes without fields":      {form("m", "", ""), []string{"what?", "y"}, `{"action":"accept","content":{}}`},
		"a no without fields":       {form("m", "", ""), []string{"n"}, `{"action":"decline"}`},
		"nothing without fields":    {form("m", "", ""), []string{"c"}, `{"action":"cancel"}`},
		"a default that is invalid": {form("m", `"a"`, `"a":{"type":"integer","minimum":5,"default":1}`), []string{"", "6"}, `{"action":"accept","content":{"a":6}}`},
	} {
		t.Run(name, func(t *testing.T) {
			response, screen, err := interview(t, test.request, test.lines...)
			if err != nil || response != test.want {
				t.Errorf("got %s (%v), want %s\n%s", response, err, test.want, screen)
			}
		})
	}
}

func TestAFormShowsWhoAsksWhatItTakesAndHowToRefuse(t *testing.T) {
	_, screen, err := interview(t, contact, "Ada", "17", "20", "", "1", "", "s")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"shop.example:8080", "Who are you?", "As in your passport", "Your name (at least 2 characters): ",
		"age (a whole number; at least 18; optional): ", "That will not do: minimum: got 17, want 18",
		"1  S", "2  M", "size (one number; optional, :skip leaves it out) [M]: ", "1  New", "tags (numbers with commas, or none; optional): ", "news (y/n; optional, :skip leaves it out) [no]: ",
		":decline", ":cancel", "You are about to send:", "Your name: Ada", "tags: New",
	} {
		if !strings.Contains(screen, want) {
			t.Errorf("the screen does not show %q:\n%s", want, screen)
		}
	}
}

func TestNothingIsOfferedOnlyWhereItIsAllowed(t *testing.T) {
	response, screen, err := interview(t, atLeastOne, "none", "1")
	if err != nil || response != `{"action":"accept","content":{"kinds":["a"]}}` {
		t.Errorf("got %s (%v)", response, err)
	}
	if !strings.Contains(screen, "kinds (numbers with commas; at least 1 of them; optional): ") {
		t.Errorf("the prompt is wrong:\n%s", screen)
	}
}

func TestAFormCannotControlTheTerminal(t *testing.T) {
	hostile := form(`\u001b[2Jhi\r`, `"a"`, `"a":{"type":"string","title":"\u001b]0;x\u0007","description":"\u202e\u009b1m","enum":["\u001b[A"],"default":"\u001b[A"},
		"b\u001bc":{"type":"string","format":"\u001b[m"}`)
	_, screen, err := interview(t, hostile, "", "\x1b[A", "s")
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(screen, "\x1b\r\a\u009b\u202e") {
		t.Errorf("the screen has control characters: %q", screen)
	}
}

func TestALinkIsShownWithItsHostAndNeverTakenForGranted(t *testing.T) {
	link := func(url string) string {
		return `{"method":"elicitation/create","params":{"mode":"url","message":"Sign in","url":"` + url + `"}}`
	}
	for typed, want := range map[string]string{
		"a": `{"action":"accept"}`, "accept": `{"action":"accept"}`, "d": `{"action":"decline"}`, "c": `{"action":"cancel"}`,
		":decline": `{"action":"decline"}`, "": `{"action":"cancel"}`, "yes": `{"action":"cancel"}`,
	} {
		response, screen, err := interview(t, link("https://pay.example.com/x?y=1"), typed)
		if err != nil || response != want {
			t.Errorf("%q: got %s (%v), want %s", typed, response, err, want)
		}
		if !strings.Contains(screen, "https://pay.example.com/x?y=1\n") || !strings.Contains(screen, "Host: pay.example.com\n") || strings.Contains(screen, "Warning") {
			t.Errorf("the screen is wrong:\n%s", screen)
		}
	}
	for url, want := range map[string]string{
		"https://xn--pypal-4ve.com/":          "Punycode",
		"https://p\u0430ypal.com/":            "outside ASCII",
		"https://bank.example@evil.example/x": "the host is evil.example",
		"http://shop.example/":                "not encrypted",
		"javascript:alert(1)":                 "not a complete web address",
		"ftp://shop.example/":                 "not a web page",
		`https://good.example\\@evil.example`: "not a complete web address",
	} {
		_, screen, err := interview(t, link(url), "d")
		if err != nil || !strings.Contains(screen, want) {
			t.Errorf("%s: no warning with %q (%v):\n%s", url, want, err, screen)
		}
	}
}

func TestTheHostStandsOutWhereTheTerminalCanShowIt(t *testing.T) {
	asks, err := ask.Parse(jsontext.Value(`{"k":{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://user@shop.example:8443/a@b"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var screen bytes.Buffer
	interviewer := terminal.NewInterviewer("s", true, strings.NewReader("d\n"), &screen)
	defer interviewer.Close()
	if _, err := interviewer.Ask(t.Context(), asks[0]); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(screen.String(), "https://user@\x1b[1mshop.example:8443\x1b[0m/a@b") {
		t.Errorf("the host does not stand out: %q", screen.String())
	}
}

func TestSamplingIsAnsweredByThePerson(t *testing.T) {
	request := `{"method":"sampling/createMessage","params":{"systemPrompt":"Be brief","maxTokens":100,"messages":[
		{"role":"user","content":{"type":"text","text":"Capital of\u001b[2J France?"}},{"role":"assistant","content":[{"type":"text","text":"Hm"},{"type":"image","data":"","mimeType":"image/png"}]}]}}`
	response, screen, err := interview(t, request, "Paris.", "", "It is.", ".")
	want := `{"role":"assistant","content":{"type":"text","text":"Paris.\n\nIt is."},"model":"human","stopReason":"endTurn"}`
	if err != nil || response != want {
		t.Errorf("got %s (%v), want %s", response, err, want)
	}
	for _, part := range []string{"Be brief", `Capital of\x1b[2J France?`, "[image]", "At most 100 tokens"} {
		if !strings.Contains(screen, part) {
			t.Errorf("the screen does not show %q:\n%s", part, screen)
		}
	}
	for _, lines := range [][]string{{":decline"}, {"half a", ":cancel"}, {"half a reply"}} {
		if _, _, err := interview(t, request, lines...); !errors.Is(err, ask.ErrDeclined) {
			t.Errorf("%q: got %v, want a refusal", lines, err)
		}
	}
}

func TestAnInterruptEndsThePrompt(t *testing.T) {
	asks, err := ask.Parse(jsontext.Value(`{"k":` + form("m", "", "") + `}`))
	if err != nil {
		t.Fatal(err)
	}
	reader, writer := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	prompted := writerFunc(func(text []byte) (int, error) {
		if bytes.Contains(text, []byte("[y/n/c]")) {
			cancel()
		}
		return len(text), nil
	})
	interviewer := terminal.NewInterviewer("s", false, reader, prompted)
	if _, err := interviewer.Ask(ctx, asks[0]); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the interrupt", err)
	}
	interviewer.Close()
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
}

// writerFunc is a writer that is a function.
type writerFunc func([]byte) (int, error)

// Write calls it.
func (f writerFunc) Write(text []byte) (int, error) { return f(text) }
