package load

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestConnectionCarriesRequestAfterRequest(t *testing.T) {
	var served atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Mcp-Name") != "echo" {
			http.Error(w, "not what was sent", http.StatusBadRequest)
			return
		}
		w.Write(body)
	}))
	defer server.Close()
	connection, err := Dial(strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	request := CallTool("echo", `{"text":"hello"}`, "")
	_, body, _ := bytes.Cut(request, []byte("\r\n\r\n"))

	calls, took, err := Run(1, 20*time.Millisecond, func(int) error {
		reply, err := connection.Do(request)
		if err == nil && !bytes.Equal(reply, body) {
			err = errors.New("the reply is not what was sent")
		}
		return err
	})
	if err != nil || took <= 0 || calls == 0 || int64(calls) != served.Load() {
		t.Errorf("%d calls in %v, %d were served: %v", calls, took, served.Load(), err)
	}
}

func TestRunEndsWithTheFirstError(t *testing.T) {
	failed := errors.New("failed")
	calls, _, err := Run(2, time.Hour, func(int) error { return failed })
	if calls != 2 || !errors.Is(err, failed) {
		t.Errorf("%d calls, error %v", calls, err)
	}
}

func TestAnotherStatusIsAnError(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	connection, err := Dial(strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if _, err := connection.Do(Listen()); err == nil {
		t.Error("a reply with status 404 was taken for one")
	}
}
