package wire_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-mcp/countersign/client/wire"
)

// stream answers with events, where %[1]s stands for the request's id.
func stream(t *testing.T, events string) *wire.Client {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, _ *http.Request, request received) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, strings.ReplaceAll(events, "ID", string(request.ID)))
	})
}

func TestNotificationsComeBeforeTheResult(t *testing.T) {
	client := stream(t, `data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":ID,"progress":1.50,"total":3}}

data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":99,"progress":2}}

data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}

data: {"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","n":9007199254740993}}

`)
	var notified []string
	result, err := client.Call(t.Context(), wire.Request{Method: "tools/call", Notify: func(n wire.Notification) {
		notified = append(notified, n.Method+" "+string(n.Params))
	}})
	if err != nil {
		t.Fatal(err)
	}
	if string(result.JSON) != `{"resultType":"complete","n":9007199254740993}` {
		t.Errorf("result %s", result.JSON)
	}
	want := `notifications/progress {"progressToken":1,"progress":1.50,"total":3}|notifications/message {"level":"info","data":"x"}`
	if strings.Join(notified, "|") != want {
		t.Errorf("notified %q, want %q", notified, want)
	}
}

func TestAStreamIsReadAsTheStandardSays(t *testing.T) {
	const reply = `{"jsonrpc":"2.0","id":ID,"result":{}}`
	for name, events := range map[string]string{
		"LF":                     "data: " + reply + "\n\n",
		"CR LF":                  "data: " + reply + "\r\n\r\n",
		"CR":                     "data: " + reply + "\r\r",
		"no space":               "data:" + reply + "\n\n",
		"comments":               ":\n: keep-alive\n\ndata: " + reply + "\n\n",
		"a byte order mark":      "\ufeffdata: " + reply + "\n\n",
		"an id and a retry time": "id: 7\nretry: 10\ndata: " + reply + "\n\n",
		"data over lines":        "data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":ID,\ndata: \"result\":{}}\n\n",
		"an empty event":         "event: message\n\ndata: " + reply + "\n\n",
		"another event type":     "event: other\ndata: nonsense\n\ndata: " + reply + "\n\n",
		"a named message":        "event: message\ndata: " + reply + "\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := stream(t, events).Call(t.Context(), wire.Request{Method: "tools/call"}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAStreamWithoutAResultIsAnError(t *testing.T) {
	for name, events := range map[string]string{
		"it ends":           "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n",
		"the result is cut": "data: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{}}\n",
		"nothing":           "",
		"a server request":  "data: {\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"roots/list\"}\n\n",
		"not JSON":          "data: hello\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := stream(t, events).Call(t.Context(), wire.Request{Method: "tools/call"})
			if _, ok := errors.AsType[*wire.ProtocolError](err); !ok {
				t.Errorf("got %v, want a protocol error", err)
			}
		})
	}
}

func TestAResultIsReadWithoutWaitingForTheStreamToClose(t *testing.T) {
	done := make(chan struct{})
	client := serve(t, func(w http.ResponseWriter, r *http.Request, request received) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\r\r", request.ID)
		w.(http.Flusher).Flush()
		<-r.Context().Done() // the client closes it
		close(done)
	})
	if _, err := client.Call(t.Context(), wire.Request{Method: "tools/call"}); err != nil {
		t.Error(err)
	}
	<-done
}
