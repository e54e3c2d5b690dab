package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// request is a request as a server sees it.
type request struct {
	ID     json.Number `json:"id"`
	Method string      `json:"method"`
	Params struct {
		Meta           map[string]json.RawMessage `json:"_meta"`
		Name           string                     `json:"name"`
		URI            string                     `json:"uri"`
		Cursor         string                     `json:"cursor"`
		Arguments      json.RawMessage            `json:"arguments"`
		InputResponses json.RawMessage            `json:"inputResponses"`
		RequestState   json.RawMessage            `json:"requestState"`
	} `json:"params"`
	header http.Header
	body   string
}

// server is a server written by hand, for what the wire looks like.
type server struct {
	url string

	mu       sync.Mutex
	requests []request
}

// reply is what a server answers: a result, or everything by itself.
type reply func(w http.ResponseWriter, r *http.Request, got request)

// result answers with a result.
func result(text string) reply {
	return func(w http.ResponseWriter, _ *http.Request, got request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, got.ID, text)
	}
}

// rpcError answers with a JSON-RPC error.
func rpcError(status, code int, message string) reply {
	return func(w http.ResponseWriter, _ *http.Request, got request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		quoted, _ := json.Marshal(message) // a string always has a JSON form
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, got.ID, code, quoted)
	}
}

// serve starts a server that answers with what handle returns. Without a list of
// its own it lists the tool `t`.
func serve(t *testing.T, handle func(got request) reply) *server {
	t.Helper()
	s := &server{}
	started := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read the request: %v", err)
		}
		got := request{header: r.Header, body: string(body)}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Errorf("the request is not JSON: %v", err)
		}
		s.mu.Lock()
		s.requests = append(s.requests, got)
		s.mu.Unlock()
		answer := handle(got)
		if answer == nil && got.Method == "tools/list" {
			answer = result(`{"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":"string"}}}}]}`)
		}
		if answer == nil {
			answer = rpcError(http.StatusNotFound, -32601, "method not found")
		}
		answer(w, r, got)
	}))
	t.Cleanup(started.Close)
	s.url = started.URL
	return s
}

// of returns the requests of a method.
func (s *server) of(method string) []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var some []request
	for i := range s.requests {
		if s.requests[i].Method == method {
			some = append(some, s.requests[i])
		}
	}
	return some
}

// outcome is what a run of the program left.
type outcome struct {
	code        int
	out, errors string
}

// countersign runs the program without a terminal.
func countersign(t *testing.T, url string, arguments ...string) outcome {
	t.Helper()
	return countersignWith(t.Context(), url, "", arguments...)
}

// countersignWith runs the program with an input.
func countersignWith(ctx context.Context, url, input string, arguments ...string) outcome {
	var out, errors bytes.Buffer
	code := run(ctx, append([]string{"--url", url}, arguments...), console{in: strings.NewReader(input), out: &out, err: &errors})
	return outcome{code: code, out: out.String(), errors: errors.String()}
}

// expect fails unless the run ended with the code.
func (o outcome) expect(t *testing.T, code int) outcome {
	t.Helper()
	if o.code != code {
		t.Fatalf("exit code %d, want %d\nout: %s\nerrors: %s", o.code, code, o.out, o.errors)
	}
	return o
}

// mentions fails unless the errors hold the text.
func (o outcome) mentions(t *testing.T, text string) {
	t.Helper()
	if !strings.Contains(o.errors, text) {
		t.Errorf("the errors do not mention %q:\n%s", text, o.errors)
	}
}

func TestHelpNamesTheExitCodes(t *testing.T) {
	var out, errors bytes.Buffer
	if code := run(t.Context(), []string{"--help"}, console{in: strings.NewReader(""), out: &out, err: &errors}); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	for _, code := range []int{exitOK, exitFailed, exitRPCError, exitToolFailed, exitRounds, exitUnanswered, exitInterrupted} {
		if !strings.Contains(out.String(), fmt.Sprintf("\n    %-3d  ", code)) {
			t.Errorf("--help does not explain exit code %d:\n%s", code, out.String())
		}
	}
}

func TestWrongUsageIsExplained(t *testing.T) {
	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"no command":            {nil, "expected one of"},
		"an unknown command":    {[]string{"fly"}, "unexpected argument fly"},
		"a wrong URL":           {[]string{"--url", "ftp://x", "discover"}, "not an http or https URL"},
		"a header of MCP's":     {[]string{"-H", "Mcp-Name: x", "discover"}, "belongs to the protocol"},
		"a header with no name": {[]string{"-H", "secret-token", "discover"}, "--header wants NAME:VALUE"},
		"an answer with no key": {[]string{"--answer", "yes", "discover"}, "--answer wants KEY=JSON"},
		"an answer twice":       {[]string{"--answer", "a=1", "--answer", "a=2", "discover"}, `gives "a" twice`},
		"a root that is none":   {[]string{"--root", "/tmp", "discover"}, "file:// URI"},
		"no reference":          {[]string{"complete", "a"}, "--prompt NAME or --template URI"},
		"arguments of no shape": {[]string{"call", "t", "--arguments", "[]"}, "not a JSON object"},
		"a log level of no log": {[]string{"--log-level", "loud", "discover"}, "--log-level"},
	} {
		t.Run(name, func(t *testing.T) {
			got := countersign(t, "http://127.0.0.1:1/mcp", test.arguments...).expect(t, exitFailed)
			got.mentions(t, test.want)
			if strings.Contains(got.errors, "secret-token") {
				t.Error("a credential is repeated in the error")
			}
		})
	}
}

func TestNoServerIsAFailureOfTheConnection(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	countersign(t, closed.URL, "discover").expect(t, exitFailed).mentions(t, "connect")
}
