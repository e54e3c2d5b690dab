package render_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign-mcp/countersign/client/render"
)

// shown is what a printer shows of a result.
func shown(t *testing.T, folder *render.Folder, show func(*render.Printer) error) string {
	t.Helper()
	var out bytes.Buffer
	printer := render.NewPrinter(&out)
	printer.Folder = folder
	if err := show(printer); err != nil {
		t.Fatal(err)
	}
	if err := printer.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestAToolsResultIsShownToPeople(t *testing.T) {
	for name, test := range map[string]struct{ result, want string }{
		"text":             {`{"content":[{"type":"text","text":"one\ntwo\n"},{"type":"text","text":"three"}]}`, "one\ntwo\nthree\n"},
		"a hostile text":   {`{"content":[{"type":"text","text":"\u001b[2J\u202e"}]}`, `\x1b[2J\u202e` + "\n"},
		"a picture":        {`{"content":[{"type":"image","mimeType":"image/png","data":"AAEC"}]}`, "[image, image/png, 3 B; --output FOLDER saves it]\n"},
		"a link":           {`{"content":[{"type":"resource_link","uri":"file:///a","name":"a","mimeType":"text/plain"}]}`, "a <file:///a> text/plain\n"},
		"a resource":       {`{"content":[{"type":"resource","resource":{"uri":"file:///a","text":"hello"}}]}`, "file:///a:\nhello\n"},
		"an unknown block": {`{"content":[{"type":"hologram","n":1.10}]}`, "{\n  \"type\": \"hologram\",\n  \"n\": 1.10\n}\n"},
		"structure":        {`{"content":[],"structuredContent":{"n":9007199254740993,"d":1.10}}`, "{\n  \"n\": 9007199254740993,\n  \"d\": 1.10\n}\n"},
		"structure twice":  {`{"content":[{"type":"text","text":"{\"d\":1.10, \"n\":1}"}],"structuredContent":{"n":1,"d":1.10}}`, "{\n  \"n\": 1,\n  \"d\": 1.10\n}\n"},
		"text and structure": {
			`{"content":[{"type":"text","text":"Paid."}],"structuredContent":{"n":1}}`,
			"Paid.\n{\n  \"n\": 1\n}\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := shown(t, nil, func(p *render.Printer) error { return p.ToolResult(jsontext.Value(test.result)) })
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestPicturesAreSavedUnderNamesOfOurOwn(t *testing.T) {
	folder := &render.Folder{Path: filepath.Join(t.TempDir(), "out")}
	if err := os.MkdirAll(folder.Path, 0o750); err != nil {
		t.Fatal(err)
	}
	taken := filepath.Join(folder.Path, "image-1.png")
	if err := os.WriteFile(taken, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	result := `{"content":[{"type":"image","mimeType":"image/png","data":"AAEC"},{"type":"audio","mimeType":"../../etc/x","data":"AA=="}]}`
	got := shown(t, folder, func(p *render.Printer) error { return p.ToolResult(jsontext.Value(result)) })
	for path, want := range map[string]string{taken: "mine", filepath.Join(folder.Path, "image-2.png"): "\x00\x01\x02", filepath.Join(folder.Path, "audio-3.bin"): "\x00"} {
		data, err := os.ReadFile(path)
		if err != nil || string(data) != want {
			t.Errorf("%s holds %q (%v), want %q", path, data, err, want)
		}
	}
	if !strings.Contains(got, "image-2.png") {
		t.Errorf("the name is not shown: %q", got)
	}
}

func TestAResourceIsShownAndSavedExactly(t *testing.T) {
	folder := &render.Folder{Path: t.TempDir()}
	got := shown(t, folder, func(p *render.Printer) error {
		return p.ResourceResult(jsontext.Value(`{"contents":[{"uri":"a:1","mimeType":"text/plain","text":"\u001bx\n"},{"uri":"a:2","blob":"AAE="}]}`))
	})
	if !strings.Contains(got, "a:1:\n\\x1bx\n") {
		t.Errorf("shown %q", got)
	}
	text, err := os.ReadFile(filepath.Join(folder.Path, "resource-1.txt"))
	if err != nil || string(text) != "\x1bx\n" {
		t.Errorf("saved %q (%v)", text, err)
	}
}

func TestPromptsCompletionsAndDiscoveryAreShown(t *testing.T) {
	prompt := shown(t, nil, func(p *render.Printer) error {
		return p.PromptResult(jsontext.Value(`{"description":"d","messages":[{"role":"user","content":{"type":"text","text":"hi"}}]}`))
	})
	if prompt != "d\n\nuser:\nhi\n" {
		t.Errorf("prompt %q", prompt)
	}
	completion := shown(t, nil, func(p *render.Printer) error {
		return p.Completion(jsontext.Value(`{"completion":{"values":["a","b\u001b"],"total":7,"hasMore":true}}`))
	})
	if completion != "a\nb\\x1b\n(2 of 7)\n" {
		t.Errorf("completion %q", completion)
	}
	discovery := shown(t, nil, func(p *render.Printer) error {
		return p.Discovery(jsontext.Value(`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"instructions":"Be kind.",
			"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"n\u001b","version":"1"}}}`))
	})
	if discovery != "server        n\\x1b 1\nrevisions     2026-07-28\ncapabilities  {\"tools\":{}}\n\nBe kind.\n" {
		t.Errorf("discovery %q", discovery)
	}
}

func TestAListIsATable(t *testing.T) {
	var out bytes.Buffer
	printer := render.NewPrinter(&out)
	printer.Width = 60
	err := printer.List("tools", []jsontext.Value{
		jsontext.Value(`{"name":"refund","description":"Refunds items\nof an order","inputSchema":{"properties":{"order":{},"items":{}},"required":["order"]},"annotations":{"destructiveHint":true}}`),
		jsontext.Value(`{"name":"evil\u001b\tname","title":"A title that is so long that it does not fit","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := printer.Flush(); err != nil {
		t.Fatal(err)
	}
	want := "TOOL           ARGUMENTS     HINT         DESCRIPTION\n" +
		"refund         items order*  destructive  Refunds items\n" +
		"evil\\x1b name                read-only    A title that is s…\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	empty := shown(t, nil, func(p *render.Printer) error { return p.List("prompts", nil) })
	if empty != "no prompts\n" {
		t.Errorf("an empty list is %q", empty)
	}
}

func TestProgressIsALineOrABar(t *testing.T) {
	var lines, bars bytes.Buffer
	plain := render.Progress{Out: &lines}
	live := render.Progress{Out: &bars, Live: true, Width: 60}
	for _, params := range []string{`{"progress":5,"total":10,"message":"half\u001b\r"}`, `{"progress":1.50}`, `{"progress":"x"}`} {
		plain.Show(jsontext.Value(params))
		live.Show(jsontext.Value(params))
	}
	live.Clear()
	live.Clear()
	if want := "progress 5/10 half\\x1b\\x0d\nprogress 1.50\n"; lines.String() != want {
		t.Errorf("lines %q, want %q", lines.String(), want)
	}
	if want := "\r\x1b[K[##########..........] 5/10 half\\x1b\\x0d\r\x1b[K1.50\r\x1b[K"; bars.String() != want {
		t.Errorf("bars %q, want %q", bars.String(), want)
	}
}
