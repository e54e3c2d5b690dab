package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestDiscoverPromptReadAndComplete(t *testing.T) {
	server := serve(t, func(got request) reply {
		switch got.Method {
		case "server/discover":
			return result(`{"supportedVersions":["2026-07-28"],"capabilities":{}}`)
		case "prompts/get":
			return result(`{"messages":[{"role":"user","content":{"type":"text","text":"hello"}}]}`)
		case "resources/read":
			return result(`{"contents":[{"uri":"a:1","text":"content"}]}`)
		case "completion/complete":
			return result(`{"completion":{"values":["python"]}}`)
		}
		return nil
	})
	for _, test := range []struct {
		arguments []string
		method    string
		want      string
		params    string
		name      string
	}{
		{[]string{"discover"}, "server/discover", "revisions     2026-07-28", `"params":{`, ""},
		{[]string{"prompt", "p", "n=1"}, "prompts/get", "user:\nhello\n", `"arguments":{"n":"1"},"name":"p"`, "p"},
		{[]string{"read", "a:é"}, "resources/read", "content\n", `"uri":"a:é"`, "=?base64?YTrDqQ==?="},
		{[]string{"complete", "--prompt", "p", "language", "py"}, "completion/complete", "python\n", `"argument":{"name":"language","value":"py"},"ref":{"name":"p","type":"ref/prompt"}`, ""},
		{[]string{"complete", "--template", "a:{x}", "--with", "y=2", "x"}, "completion/complete", "python\n", `"argument":{"name":"x","value":""},"context":{"arguments":{"y":"2"}},"ref":{"type":"ref/resource","uri":"a:{x}"}`, ""},
	} {
		got := countersign(t, server.url, test.arguments...).expect(t, exitOK)
		if !strings.Contains(got.out, test.want) {
			t.Errorf("%v prints %q", test.arguments, got.out)
		}
		requests := server.of(test.method)
		last := requests[len(requests)-1]
		if !strings.Contains(last.body, test.params) || last.header.Get("Mcp-Name") != test.name {
			t.Errorf("%v sent %s with the name %q", test.arguments, last.body, last.header.Get("Mcp-Name"))
		}
	}
}

func TestPromptsAndResourcesCanAskToo(t *testing.T) {
	for method, arguments := range map[string][]string{"prompts/get": {"prompt", "p"}, "resources/read": {"read", "a:1"}} {
		server := serve(t, func(got request) reply {
			if got.Params.RequestState == nil {
				return asks("k", confirm, `"s"`)
			}
			return result(`{"messages":[],"contents":[]}`)
		})
		countersign(t, server.url, append([]string{"--answer", "k=decline"}, arguments...)...).expect(t, exitOK)
		requests := server.of(method)
		if len(requests) != 2 || string(requests[1].Params.InputResponses) != `{"k":{"action":"decline"}}` {
			t.Errorf("%s: %d requests", method, len(requests))
		}
	}
}

// pagesOf serves two pages of tools.
func pagesOf(got request) reply {
	switch {
	case got.Method == "server/discover":
		return result(`{"supportedVersions":[],"capabilities":{"tools":{},"resources":{}}}`)
	case got.Method == "tools/list" && got.Params.Cursor == "":
		return result(`{"tools":[{"name":"one","description":"First","inputSchema":{"type":"object"}}],"nextCursor":"c"}`)
	case got.Method == "tools/list" && got.Params.Cursor == "c":
		return result(`{"tools":[{"name":"two","inputSchema":{"type":"object","n":1.10}},
			{"name":"bad","inputSchema":{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}}]}`)
	case got.Method == "resources/list":
		return result(`{"resources":[{"uri":"a:1","name":"r"}]}`)
	case got.Method == "resources/templates/list":
		return result(`{"resourceTemplates":[{"uriTemplate":"a:{x}","name":"t"}]}`)
	default:
		return nil
	}
}

func TestAListShowsAllPagesOfWhatTheServerHas(t *testing.T) {
	server := serve(t, pagesOf)
	got := countersign(t, server.url, "list").expect(t, exitOK)
	for _, want := range []string{"one", "First", "two", "a:1", "a:{x}"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("the list does not show %q:\n%s", want, got.out)
		}
	}
	if strings.Contains(got.out, "bad") {
		t.Errorf("a tool with an invalid definition is listed:\n%s", got.out)
	}
	got.mentions(t, `the tool "bad" is left out`)
	if len(server.of("prompts/list")) != 0 {
		t.Error("prompts were listed although the server has none")
	}
	exact := countersign(t, server.url, "--json", "list", "tools").expect(t, exitOK)
	if lines := strings.SplitN(exact.out, "\n", 2); lines[0] != `{"tools":[{"name":"one","description":"First","inputSchema":{"type":"object"}}],"nextCursor":"c"}` || !strings.Contains(lines[1], "1.10") {
		t.Errorf("the pages are not as the server sent them:\n%s", exact.out)
	}
	countersign(t, server.url, "call", "bad", "a=1").expect(t, exitFailed).mentions(t, "definition is not valid")
}

func TestPagesThatGoInACircleEnd(t *testing.T) {
	server := serve(t, func(request) reply { return result(`{"tools":[],"nextCursor":"same"}`) })
	countersign(t, server.url, "list", "tools").expect(t, exitFailed).mentions(t, "circle")
}

func TestPagesWithoutEndEnd(t *testing.T) {
	pages := 0
	server := serve(t, func(request) reply {
		pages++
		if pages > 2*maxPages { // so that a client that reads on is found out
			return result(`{"tools":[]}`)
		}
		return result(fmt.Sprintf(`{"tools":[],"nextCursor":"%d"}`, pages))
	})
	for _, arguments := range [][]string{{"list", "tools"}, {"call", "t"}} {
		pages = 0
		countersign(t, server.url, arguments...).expect(t, exitFailed).mentions(t, "does not end: more follows after 1000 pages")
		if pages != maxPages {
			t.Errorf("%v: %d pages were read", arguments, pages)
		}
	}
}

func TestListenPrintsChangesUntilTheServerEnds(t *testing.T) {
	server := serve(t, func(request) reply {
		return func(w http.ResponseWriter, _ *http.Request, got request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprintf(w, `data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true}}}

data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"n":1.10}}

data: {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:\u001b1"}}

data: {"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete"}}

`, got.ID)
		}
	})
	got := countersign(t, server.url, "listen", "--tools", "--resource", "a:1").expect(t, exitOK)
	if got.out != "the list of tools changed\na:\\x1b1 changed\n" {
		t.Errorf("got %q", got.out)
	}
	got.mentions(t, "the server does not tell changes of a:1")
	got.mentions(t, "the server ended the subscription")
	if body := server.of("subscriptions/listen")[0].body; !strings.Contains(body, `"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:1"]}`) {
		t.Errorf("the filter is wrong: %s", body)
	}
	exact := countersign(t, server.url, "--json", "listen").expect(t, exitOK)
	if !strings.Contains(exact.out, `{"method":"notifications/tools/list_changed","params":{"n":1.10}}`+"\n") {
		t.Errorf("got %q", exact.out)
	}
}

func TestAnInterruptEndsListeningWell(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	server := serve(t, func(request) reply {
		return func(w http.ResponseWriter, r *http.Request, _ request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			interrupt()
			<-r.Context().Done()
		}
	})
	countersignWith(ctx, server.url, "", "listen").expect(t, exitOK)
}

func TestABrokenListenStreamIsAFailure(t *testing.T) {
	server := serve(t, func(request) reply {
		return func(w http.ResponseWriter, _ *http.Request, _ request) {
			w.Header().Set("Content-Type", "text/event-stream")
		}
	})
	countersign(t, server.url, "listen").expect(t, exitFailed).mentions(t, "ended before the result")
}

func TestACredentialFromTheEnvironmentIsSent(t *testing.T) {
	server := serve(t, func(request) reply { return result(`{"supportedVersions":[],"capabilities":{}}`) })
	t.Setenv("COUNTERSIGN_HEADER", "Authorization: Bearer a,b:c")
	t.Setenv("COUNTERSIGN_URL", server.url)
	var out, errors strings.Builder
	if code := run(t.Context(), []string{"discover"}, console{in: strings.NewReader(""), out: &out, err: &errors}); code != exitOK {
		t.Fatalf("exit code %d: %s", code, errors.String())
	}
	if got := server.of("server/discover")[0].header.Get("Authorization"); got != "Bearer a,b:c" {
		t.Errorf("the header is %q", got)
	}
}
