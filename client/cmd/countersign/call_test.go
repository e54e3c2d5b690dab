package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
)

// called answers tools/call with one reply after the other; the last is repeated.
func called(t *testing.T, replies ...reply) *server {
	t.Helper()
	calls := 0
	return serve(t, func(got request) reply {
		if got.Method != "tools/call" {
			return nil
		}
		calls++
		return replies[min(calls, len(replies))-1]
	})
}

// asks is an input_required result with one form.
func asks(key, properties, state string) reply {
	return result(`{"resultType":"input_required","inputRequests":{"` + key + `":{"method":"elicitation/create","params":{"message":"Really?",
		"requestedSchema":{"type":"object","properties":{` + properties + `}}}}},"requestState":` + state + `}`)
}

const confirm = `"confirm":{"type":"boolean"}`

func TestJSONPrintsTheExactResultAndNothingElse(t *testing.T) {
	const exact = `{ "resultType":"complete","content":[{"type":"text","text":"\u001b[2J"}], "structuredContent":{"n":9007199254740993,"d":1.10,"e":1E400} }`
	server := called(t, func(w http.ResponseWriter, _ *http.Request, got request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%[1]s,\"progress\":1,\"total\":4,\"message\":\"a\\u001b\"}}\n\n"+
			"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"logger\":\"l\",\"data\":\"b\\u001b\"}}\n\n"+
			"data: {\"jsonrpc\":\"2.0\",\"id\":%[1]s,\"result\":%[2]s}\n\n", got.ID, exact)
	})
	got := countersign(t, server.url, "--json", "--log-level", "info", "call", "t").expect(t, exitOK)
	if got.out != exact+"\n" {
		t.Errorf("got  %q\nwant %q", got.out, exact+"\n")
	}
	got.mentions(t, "progress 1/4 a\\x1b\n")
	got.mentions(t, "info l: b\\x1b\n")

	quiet := countersign(t, server.url, "--quiet", "call", "t").expect(t, exitOK)
	if quiet.errors != "" {
		t.Errorf("quiet says %q", quiet.errors)
	}
	if strings.Contains(quiet.out, "\x1b") {
		t.Errorf("an escape sequence got through: %q", quiet.out)
	}
}

func TestArgumentsTakeTheToolsTypes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "arguments.json")
	if err := os.WriteFile(file, []byte(`{"d":1.10}`), 0o600); err != nil {
		t.Fatal(err)
	}
	server := called(t, result(`{"content":[]}`))
	for _, test := range []struct {
		input     string
		arguments []string
		want      string
	}{
		{"", nil, `{}`},
		{"", []string{"n=9007199254740993", "s=12"}, `{"n":9007199254740993,"s":"12"}`},
		{"", []string{"--arguments", `{"d":1.10,"n":1}`, "n=2"}, `{"d":1.10,"n":2}`},
		{"", []string{"--arguments", "@" + file}, `{"d":1.10}`},
		{`{"e":1e400}`, []string{"--arguments", "-"}, `{"e":1e400}`},
	} {
		countersignWith(t.Context(), server.url, test.input, append([]string{"call", "t"}, test.arguments...)...).expect(t, exitOK)
		calls := server.of("tools/call")
		if got := string(calls[len(calls)-1].Params.Arguments); got != test.want {
			t.Errorf("%v: the server got %s, want %s", test.arguments, got, test.want)
		}
	}
	countersign(t, server.url, "call", "t", "n=many").expect(t, exitFailed).mentions(t, `argument "n": a number is wanted`)
}

func TestExitCodesTellWhatHappened(t *testing.T) {
	for name, test := range map[string]struct {
		reply reply
		code  int
		want  string
	}{
		"a failed tool":          {result(`{"content":[{"type":"text","text":"out of stock"}],"isError":true}`), exitToolFailed, "the tool failed"},
		"an error of the server": {rpcError(http.StatusBadRequest, -32602, "bad\x1b[2J"), exitRPCError, `error -32602: bad\x1b[2J`},
		"a missing capability": {func(w http.ResponseWriter, _ *http.Request, got request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32021,"message":"no","data":{"requiredCapabilities":{"roots":{}}}}}`, got.ID)
		}, exitRPCError, "--root offers roots"},
		"an unknown result type": {result(`{"resultType":"banana"}`), exitFailed, `unknown type "banana"`},
		"no MCP server":          {func(w http.ResponseWriter, _ *http.Request, _ request) { http.NotFound(w, nil) }, exitFailed, "HTTP status 404"},
	} {
		t.Run(name, func(t *testing.T) {
			server := called(t, test.reply)
			countersign(t, server.url, "call", "t").expect(t, test.code).mentions(t, test.want)
		})
	}
	failed := countersign(t, called(t, result(`{"content":[{"type":"text","text":"out of stock"}],"isError":true}`)).url, "call", "t")
	if failed.out != "out of stock\n" {
		t.Errorf("the failed tool's words are %q", failed.out)
	}
}

func TestWhatAServerSaysCannotPassForALineOfTheProgram(t *testing.T) {
	server := called(t, rpcError(http.StatusBadRequest, -32602, "bad\ncountersign: all is well\r\ncountersign: really\n"))
	got := countersign(t, server.url, "call", "t").expect(t, exitRPCError)
	if want := "countersign: the server answered with error -32602: bad\n  countersign: all is well\n  countersign: really\n  \n"; got.errors != want {
		t.Errorf("got  %q\nwant %q", got.errors, want)
	}
}

func TestAnAskIsAnsweredFromTheFlags(t *testing.T) {
	server := called(t, asks("first", confirm, `"one/+="`), asks("second", `"n":{"type":"integer"}`, `"two"`), result(`{"content":[{"type":"text","text":"done"}]}`))
	got := countersign(t, server.url, "--answer", `first={"confirm":true}`, "--answer", `second={"n":9007199254740993}`, "--answer", "third=accept", "call", "t").expect(t, exitOK)
	if got.out != "done\n" {
		t.Errorf("got %q", got.out)
	}
	got.mentions(t, `never asked "third"`)
	calls := server.of("tools/call")
	if len(calls) != 3 {
		t.Fatalf("%d calls, want 3", len(calls))
	}
	for i, want := range []struct{ responses, state string }{
		{"", ""},
		{`{"first":{"action":"accept","content":{"confirm":true}}}`, `"one/+="`},
		{`{"second":{"action":"accept","content":{"n":9007199254740993}}}`, `"two"`},
	} {
		if string(calls[i].Params.InputResponses) != want.responses || string(calls[i].Params.RequestState) != want.state {
			t.Errorf("call %d has the answers %s and the state %s", i+1, calls[i].Params.InputResponses, calls[i].Params.RequestState)
		}
		if calls[i].Params.Name != "t" || calls[i].header.Get("Mcp-Name") != "t" {
			t.Errorf("call %d is not the same call", i+1)
		}
		for j := range i {
			if calls[i].ID == calls[j].ID {
				t.Errorf("calls %d and %d have the id %s", i+1, j+1, calls[i].ID)
			}
		}
	}
}

func TestAnAskThatNobodyCanAnswerIsExplained(t *testing.T) {
	server := called(t, asks("it's", confirm, `"s"`))
	got := countersign(t, server.url, "call", "t").expect(t, exitUnanswered)
	got.mentions(t, `"it's": Really?`)
	got.mentions(t, `--answer 'it'\''s={"confirm":true}'`)
	if len(server.of("tools/call")) != 1 {
		t.Error("the call was repeated without an answer")
	}
	countersign(t, server.url, "--answer", `it's={"confirm":"x"}`, "call", "t").expect(t, exitUnanswered).mentions(t, "does not fit")
}

func TestAnAnswerThatFitsNoQuestionIsNamedWithTheOneLeftOpen(t *testing.T) {
	server := called(t, asks("confirm-f43d42af", confirm, `"s"`), result(`{"content":[]}`))
	got := countersign(t, server.url, "--answer", "confirm=accept", "call", "t").expect(t, exitUnanswered)
	got.mentions(t, `--answer 'confirm-f43d42af={"confirm":true}'`)
	got.mentions(t, `the --answer for "confirm" fits no question asked so far`)
	if other := countersign(t, server.url, "call", "t").expect(t, exitOK); strings.Contains(other.errors, "fits no question") {
		t.Errorf("an answer is named that was not given: %s", other.errors)
	}
}

func TestSamplingAndRootsAreAnsweredFromTheFlags(t *testing.T) {
	both := result(`{"resultType":"input_required","inputRequests":{"s":{"method":"sampling/createMessage","params":{"maxTokens":1,"messages":[]}},"r":{"method":"roots/list"}}}`)
	server := called(t, both, result(`{"content":[]}`))
	countersign(t, server.url, "--root", "file:///a", "--root", "file:///b", "--answer", `s="hi"`, "call", "t").expect(t, exitOK)
	calls := server.of("tools/call")
	want := `{"r":{"roots":[{"uri":"file:///a"},{"uri":"file:///b"}]},"s":{"role":"assistant","content":{"type":"text","text":"hi"},"model":"human","stopReason":"endTurn"}}`
	if got := string(calls[1].Params.InputResponses); got != want {
		t.Errorf("answers %s, want %s", got, want)
	}
	if capabilities := string(calls[0].Params.Meta["io.modelcontextprotocol/clientCapabilities"]); !strings.Contains(capabilities, `"roots":{}`) {
		t.Errorf("roots are not declared: %s", capabilities)
	}
	countersign(t, called(t, both).url, "--answer", "s=decline", "call", "t").expect(t, exitUnanswered)
}

func TestRootsAreDeclaredOnlyWhereThereAreSome(t *testing.T) {
	server := called(t, result(`{"content":[]}`))
	countersign(t, server.url, "call", "t").expect(t, exitOK)
	want := `{"elicitation":{"form":{},"url":{}},"sampling":{}}`
	if got := string(server.of("tools/call")[0].Params.Meta["io.modelcontextprotocol/clientCapabilities"]); got != want {
		t.Errorf("capabilities %s, want %s", got, want)
	}
}

func TestAServerThatNeverStopsAskingIsGivenUpOn(t *testing.T) {
	server := called(t, asks("a", confirm, `"s"`))
	countersign(t, server.url, "--max-input-rounds", "2", "--answer", `a={"confirm":true}`, "call", "t").expect(t, exitRounds).mentions(t, "after 2 answered rounds")
	if calls := len(server.of("tools/call")); calls != 3 {
		t.Errorf("%d calls, want 3", calls)
	}
}

func TestABusyServerIsTriedAgain(t *testing.T) {
	busy := func(w http.ResponseWriter, r *http.Request, got request) {
		w.Header().Set("Retry-After", "0")
		rpcError(http.StatusServiceUnavailable, -32603, "the sealer cannot be reached")(w, r, got)
	}
	server := called(t, busy, result(`{"content":[{"type":"text","text":"done"}]}`))
	got := countersign(t, server.url, "call", "t").expect(t, exitOK)
	got.mentions(t, "trying again in 0s")
	countersign(t, called(t, busy).url, "call", "t").expect(t, exitRPCError).mentions(t, "tried 4 times")
}

func TestToolArgumentsAreMirroredAndAFreshDefinitionIsFetchedOnMismatch(t *testing.T) {
	header := "Old"
	server := serve(t, func(got request) reply {
		switch {
		case got.Method == "tools/list":
			return result(`{"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"s":{"type":"string","x-mcp-header":"` + header + `"}}}}]}`)
		case got.header.Get("Mcp-Param-New") == "":
			header = "New"
			return rpcError(http.StatusBadRequest, -32020, "header mismatch")
		}
		return result(`{"content":[]}`)
	})
	countersign(t, server.url, "call", "t", "s=é").expect(t, exitOK)
	calls := server.of("tools/call")
	if len(calls) != 2 || calls[0].header.Get("Mcp-Param-Old") != "=?base64?w6k=?=" || calls[1].header.Get("Mcp-Param-New") != "=?base64?w6k=?=" || calls[1].header.Get("Mcp-Param-Old") != "" {
		t.Errorf("the headers were %v", calls)
	}
}

func TestATimeoutNamesTheFlag(t *testing.T) {
	server := called(t, func(_ http.ResponseWriter, r *http.Request, _ request) { <-r.Context().Done() })
	countersign(t, server.url, "call", "t", "--timeout", "100ms").expect(t, exitFailed).mentions(t, "no result came within 100ms; --timeout")
}

func TestAToolThatIsNotListedIsTheServersToRefuse(t *testing.T) {
	server := called(t, rpcError(http.StatusOK, -32602, "unknown tool"))
	countersign(t, server.url, "call", "other", "a=1").expect(t, exitRPCError).mentions(t, "unknown tool")
	if got := string(server.of("tools/call")[0].Params.Arguments); got != `{"a":1}` {
		t.Errorf("the server got %s", got)
	}
}

func TestAnInterruptClosesTheResponse(t *testing.T) {
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt)
	defer stop()
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	server := called(t, func(w http.ResponseWriter, r *http.Request, _ request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, ":\n")
		w.(http.Flusher).Flush()
		if err := self.Signal(os.Interrupt); err != nil {
			t.Errorf("interrupt: %v", err)
		}
		<-r.Context().Done()
		close(closed)
	})
	countersignWith(ctx, server.url, "", "call", "t").expect(t, exitInterrupted)
	<-closed
}
