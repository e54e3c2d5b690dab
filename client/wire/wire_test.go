package wire_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"

	"github.com/countersign-mcp/countersign/client/wire"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// received is a request as a server sees it.
type received struct {
	ID     json.Number `json:"id"`
	Method string      `json:"method"`
	Params struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	} `json:"params"`
	header http.Header
	body   string
}

// serve starts a server and a client of it.
func serve(t *testing.T, handle func(w http.ResponseWriter, r *http.Request, request received)) *wire.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read the request: %v", err)
		}
		request := received{header: r.Header, body: string(body)}
		if err := json.Unmarshal(body, &request); err != nil {
			t.Errorf("the request is not JSON: %v", err)
		}
		handle(w, r, request)
	}))
	t.Cleanup(server.Close)
	client := wire.NewClient(server.URL)
	client.Info = wire.Implementation{Name: "test", Version: "1"}
	client.Retry = wire.Retry{Times: 3, Longest: 30 * time.Second, Sleep: func(context.Context, time.Duration) error { return nil }}
	t.Cleanup(client.Close)
	return client
}

// reply answers with a JSON object.
func reply(w http.ResponseWriter, request received, result string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, request.ID, result)
}

func TestARequestCarriesItsMetadataInTheBodyAndTheHeaders(t *testing.T) {
	var got received
	client := serve(t, func(w http.ResponseWriter, _ *http.Request, request received) {
		got = request
		reply(w, request, `{"resultType":"complete"}`)
	})
	client.Header = http.Header{"Authorization": {"Bearer x"}}
	client.Capabilities = jsontext.Value(`{"elicitation":{}}`)
	client.LogLevel = "info"
	_, err := client.Call(t.Context(), wire.Request{
		Method: "tools/call", Name: "größe", Progress: true,
		Params:   map[string]jsontext.Value{"name": jsontext.Value(`"größe"`), "arguments": jsontext.Value(`{"n":9007199254740993,"d":1.10}`)},
		Mirrored: []wire.MirroredArgument{{Header: "Region", Value: "us-west1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "=?base64?Z3LDtsOfZQ==?=",
		"Mcp-Param-Region": "us-west1", "Authorization": "Bearer x",
	} {
		if got.header.Get(name) != want {
			t.Errorf("header %s is %q, want %q", name, got.header.Get(name), want)
		}
	}
	for name, want := range map[string]string{
		"io.modelcontextprotocol/protocolVersion":    `"2026-07-28"`,
		"io.modelcontextprotocol/clientInfo":         `{"name":"test","version":"1"}`,
		"io.modelcontextprotocol/clientCapabilities": `{"elicitation":{}}`,
		"io.modelcontextprotocol/logLevel":           `"info"`,
		"progressToken":                              string(got.ID),
	} {
		if string(got.Params.Meta[name]) != want {
			t.Errorf("_meta member %s is %s, want %s", name, got.Params.Meta[name], want)
		}
	}
	if !strings.Contains(got.body, `{"n":9007199254740993,"d":1.10}`) {
		t.Errorf("the arguments' numbers were changed: %s", got.body)
	}
}

func TestEveryCallHasAnIDOfItsOwn(t *testing.T) {
	var ids []string
	client := serve(t, func(w http.ResponseWriter, _ *http.Request, request received) {
		ids = append(ids, string(request.ID))
		reply(w, request, `{}`)
	})
	for range 3 {
		if _, err := client.Call(t.Context(), wire.Request{Method: "tools/list"}); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(ids)
	if len(slices.Compact(ids)) != 3 {
		t.Errorf("ids %v are not three different ones", ids)
	}
}

func TestAResultComesBackByteForByte(t *testing.T) {
	const exact = `{ "resultType" : "complete", "structuredContent":{"n":9007199254740993,"d":1.10,"e":1E400, "u":"\u0041é"} }`
	client := serve(t, func(w http.ResponseWriter, _ *http.Request, request received) {
		reply(w, request, exact)
	})
	result, err := client.Call(t.Context(), wire.Request{Method: "tools/call"})
	if err != nil {
		t.Fatal(err)
	}
	if string(result.JSON) != exact {
		t.Errorf("got  %s\nwant %s", result.JSON, exact)
	}
}

func TestWhatBreaksTheProtocolIsAnError(t *testing.T) {
	for name, test := range map[string]struct{ method, body, want string }{
		"unknown result type":           {"tools/call", `{"jsonrpc":"2.0","id":1,"result":{"resultType":"banana"}}`, `unknown type "banana"`},
		"result type of a wrong type":   {"tools/call", `{"jsonrpc":"2.0","id":1,"result":{"resultType":1}}`, "not a string"},
		"input where none can be asked": {"tools/list", `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"x"}}`, "cannot ask"},
		"another id":                    {"tools/call", `{"jsonrpc":"2.0","id":2,"result":{}}`, "answered request 2"},
		"an id of another type":         {"tools/call", `{"jsonrpc":"2.0","id":"1","result":{}}`, `answered request "1"`},
		"another id of an error":        {"tools/call", `{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"m"}}`, "answered request 7"},
		"result and error":              {"tools/call", `{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}`, "exactly one"},
		"neither":                       {"tools/call", `{"jsonrpc":"2.0","id":1}`, "exactly one"},
		"a duplicate member":            {"tools/call", `{"jsonrpc":"2.0","id":1,"result":{"requestState":"a","requestState":"b"}}`, "duplicate"},
		"a wrongly cased member":        {"tools/call", `{"jsonrpc":"2.0","id":1,"Result":{}}`, "exactly one"},
		"not JSON-RPC 2.0":              {"tools/call", `{"jsonrpc":"1.0","id":1,"result":{}}`, "JSON-RPC 2.0"},
		"a batch":                       {"tools/call", `[{"jsonrpc":"2.0","id":1,"result":{}}]`, "JSON-RPC message"},
		"a result that is no object":    {"tools/call", `{"jsonrpc":"2.0","id":1,"result":7}`, "not an object"},
		"a notification":                {"tools/call", `{"jsonrpc":"2.0","method":"notifications/message"}`, "notification"},
		"a request of the server's":     {"tools/call", `{"jsonrpc":"2.0","id":1,"method":"elicitation/create"}`, "forbids"},
		"trailing data":                 {"tools/call", `{"jsonrpc":"2.0","id":1,"result":{}}{}`, "JSON-RPC message"},
	} {
		t.Run(name, func(t *testing.T) {
			client := serve(t, func(w http.ResponseWriter, _ *http.Request, _ received) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, test.body)
			})
			_, err := client.Call(t.Context(), wire.Request{Method: test.method})
			var broken *wire.ProtocolError
			if !errors.As(err, &broken) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want a protocol error with %q", err, test.want)
			}
		})
	}
}

func TestAnErrorOfTheServerKeepsItsCodeAndData(t *testing.T) {
	for name, id := range map[string]string{"with the id": "1", "with no id": "null"} {
		t.Run(name, func(t *testing.T) {
			client := serve(t, func(w http.ResponseWriter, _ *http.Request, _ received) {
				w.Header().Set("Content-Type", "application/json; charset=utf-8")
				w.WriteHeader(http.StatusBadRequest)
				_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"no","data":{"supported":["2030-01-01"]}}}`, id)
			})
			_, err := client.Call(t.Context(), wire.Request{Method: "server/discover"})
			var rpcError *wire.RPCError
			if !errors.As(err, &rpcError) {
				t.Fatalf("got %v, want a JSON-RPC error", err)
			}
			if rpcError.Code != wire.CodeUnsupportedProtocolVersion || string(rpcError.Data) != `{"supported":["2030-01-01"]}` {
				t.Errorf("got code %d and data %s", rpcError.Code, rpcError.Data)
			}
		})
	}
}

func TestAResponseThatIsNoReplyIsDescribed(t *testing.T) {
	for name, test := range map[string]struct {
		status            int
		contentType, body string
		want              string
	}{
		"a legacy server":     {http.StatusBadRequest, "text/plain", "missing session", "does not speak revision 2026-07-28: missing session"},
		"a web page":          {http.StatusOK, "text/html", "<html>", "no MCP reply"},
		"a missing token":     {http.StatusUnauthorized, "", "", "Authorization"},
		"JSON of another API": {http.StatusNotFound, "application/json", `{"detail":"x"}`, "does not speak"},
		"a redirect":          {http.StatusTemporaryRedirect, "", "", `redirect to "http://elsewhere.example/"`},
	} {
		t.Run(name, func(t *testing.T) {
			client := serve(t, func(w http.ResponseWriter, _ *http.Request, _ received) {
				w.Header().Set("Content-Type", test.contentType)
				if test.status == http.StatusTemporaryRedirect {
					w.Header().Set("Location", "http://elsewhere.example/")
				}
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			})
			_, err := client.Call(t.Context(), wire.Request{Method: "server/discover"})
			var httpError *wire.HTTPError
			if !errors.As(err, &httpError) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an HTTP error with %q", err, test.want)
			}
		})
	}
}

func TestAServerThatSaysWhenIsTriedAgain(t *testing.T) {
	const busy = `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"later"}}`
	serveBusy := func(t *testing.T, times int, retryAfter func(w http.ResponseWriter)) (*wire.Client, *int, *[]time.Duration) {
		t.Helper()
		calls, waits := 0, []time.Duration{}
		client := serve(t, func(w http.ResponseWriter, _ *http.Request, request received) {
			calls++
			if calls > times {
				reply(w, request, `{}`)
				return
			}
			retryAfter(w)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = fmt.Fprintf(w, busy, request.ID)
		})
		client.Retry.Sleep = func(_ context.Context, wait time.Duration) error {
			waits = append(waits, wait)
			return nil
		}
		return client, &calls, &waits
	}
	in := func(value string) func(w http.ResponseWriter) {
		return func(w http.ResponseWriter) { w.Header().Set("Retry-After", value) }
	}

	t.Run("after seconds", func(t *testing.T) {
		client, calls, waits := serveBusy(t, 2, in("7"))
		if _, err := client.Call(t.Context(), wire.Request{Method: "tools/call"}); err != nil {
			t.Fatal(err)
		}
		if *calls != 3 || !slices.Equal(*waits, []time.Duration{7 * time.Second, 7 * time.Second}) {
			t.Errorf("%d calls with waits %v", *calls, *waits)
		}
	})
	t.Run("at a date of the server's clock", func(t *testing.T) {
		client, _, waits := serveBusy(t, 1, func(w http.ResponseWriter) {
			w.Header().Set("Date", "Tue, 28 Jul 2026 10:00:00 GMT")
			w.Header().Set("Retry-After", "Tue, 28 Jul 2026 10:00:09 GMT")
		})
		if _, err := client.Call(t.Context(), wire.Request{Method: "tools/call"}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(*waits, []time.Duration{9 * time.Second}) {
			t.Errorf("waits %v", *waits)
		}
	})
	for name, test := range map[string]struct {
		retryAfter string
		calls      int
		want       string
	}{
		"but not for ever":              {"1", 4, "tried 4 times"},
		"but not after too long a wait": {"31", 1, "longer than 30s"},
		"but not when it does not say":  {"", 1, "later"},
		"but not when it says nonsense": {"soon", 1, "later"},
	} {
		t.Run(name, func(t *testing.T) {
			client, calls, _ := serveBusy(t, 99, in(test.retryAfter))
			_, err := client.Call(t.Context(), wire.Request{Method: "tools/call"})
			var rpcError *wire.RPCError
			if !errors.As(err, &rpcError) || !strings.Contains(err.Error(), test.want) || *calls != test.calls {
				t.Errorf("%d calls, then %v", *calls, err)
			}
		})
	}
}

func TestAResultThatTakesTooLongIsGivenUpOn(t *testing.T) {
	client := serve(t, func(_ http.ResponseWriter, r *http.Request, _ received) {
		<-r.Context().Done()
	})
	client.Timeout = time.Millisecond
	_, err := client.Call(t.Context(), wire.Request{Method: "tools/call"})
	var late *wire.TimeoutError
	if !errors.As(err, &late) || late.After != time.Millisecond {
		t.Errorf("got %v, want a timeout", err)
	}
}

func TestCancellingClosesTheResponse(t *testing.T) {
	closed := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	client := serve(t, func(w http.ResponseWriter, r *http.Request, _ received) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, ": here\n\n")
		w.(http.Flusher).Flush()
		cancel()
		<-r.Context().Done()
		close(closed)
	})
	if _, err := client.Call(ctx, wire.Request{Method: "tools/call"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want a cancellation", err)
	}
	<-closed
}
