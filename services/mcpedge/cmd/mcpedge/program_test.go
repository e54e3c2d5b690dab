package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"google.golang.org/grpc"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	"github.com/countersign-mcp/countersign/services/mcpedge/handlerfake"
)

// asProgram is the environment variable that makes the test binary the program.
const asProgram = "MCPEDGE_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// program is the edge as a process of its own, with a handler behind it.
type program struct {
	*exec.Cmd

	input  io.WriteCloser
	output io.Reader
	logged *bufio.Scanner
	// began receives when the handler has begun to hold a call.
	began chan struct{}
}

// start starts the program with one of its commands. Its handler has the tools
// `hold`, which ends when it is cancelled, and `flood`, whose result no pipe holds.
func start(t *testing.T, command string) *program {
	t.Helper()
	service := handlerfake.New(&handlerv1.Catalog{Revision: "1", Tools: []*handlerv1.Tool{
		{Name: "hold", InputSchema: []byte(`{"type":"object"}`)}, {Name: "flood", InputSchema: []byte(`{"type":"object"}`)},
	}})
	p := &program{began: make(chan struct{}, 1)}
	service.Run = func(begin *handlerv1.Begin, stream handlerfake.Stream) error {
		if begin.GetCallTool().GetName() == "flood" {
			return handlerfake.FinishText(stream, strings.Repeat("x", 1<<20))
		}
		p.began <- struct{}{}
		<-stream.Context().Done()
		return stream.Context().Err()
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	handlerv1.RegisterHandlerServiceServer(server, service)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })

	file := filepath.Join(t.TempDir(), "mcpedge.yaml")
	config := "listen: 127.0.0.1:0\noperationsListen: 127.0.0.1:0\ncontext: {audience: https://mcp.example/mcp}\n" +
		"sealer: embedded\nembeddedSealer: {keys: {source: ephemeral}}\nhandlers:\n  - {name: h, target: \"" + listener.Addr().String() + "\"}\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p.Cmd = exec.CommandContext(t.Context(), executable, command, "--config", file)
	p.Env = append(os.Environ(), asProgram+"=1")
	var errs [3]error
	p.input, errs[0] = p.StdinPipe()
	p.output, errs[1] = p.StdoutPipe()
	logs, err := p.StderrPipe()
	errs[2] = err
	if err := errors.Join(append(errs[:], p.Start())...); err != nil {
		t.Fatal(err)
	}
	p.logged = bufio.NewScanner(logs)
	t.Cleanup(func() {
		_ = p.Process.Kill() // one that has ended is none
		server.Stop()
		serving.Wait()
	})
	return p
}

// await reads the log up to a line that holds the text.
func (p *program) await(t *testing.T, text string) {
	t.Helper()
	for p.logged.Scan() {
		if strings.Contains(p.logged.Text(), text) {
			return
		}
	}
	t.Fatalf("the log ended without %s", text)
}

// awaitService reads the log until clients are served and the handler answers, and
// returns the URL for clients.
func (p *program) awaitService(t *testing.T) string {
	t.Helper()
	url, answers := "", false
	for (url == "" || !answers) && p.logged.Scan() {
		var line struct {
			Message  string `json:"msg"`
			Listen   string `json:"listen"`
			Endpoint string `json:"endpoint"`
		}
		if err := json.Unmarshal(p.logged.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		switch line.Message {
		case "serving":
			url = "http://" + line.Listen + line.Endpoint
		case "handler answers":
			answers = true
		}
	}
	return url
}

// expectEnd waits until the process has ended, and fails unless it ended well or,
// where a signal is given, by that signal.
func (p *program) expectEnd(t *testing.T, by syscall.Signal) {
	t.Helper()
	for p.logged.Scan() {
	}
	_ = p.Wait() // what it says is in the state
	status, ok := p.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || by == 0 && status != 0 || by != 0 && (!status.Signaled() || status.Signal() != by) {
		t.Errorf("it ended with %v", p.ProcessState)
	}
}

func (p *program) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := p.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// toolCall is a request as one line.
func toolCall(tool string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool +
		`","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}` + "\n"
}

func (p *program) send(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(p.input, line); err != nil {
		t.Fatal(err)
	}
}

// block has the program write more than the client reads.
func (p *program) block(t *testing.T) {
	t.Helper()
	p.send(t, toolCall("flood"))
	if _, err := io.ReadFull(p.output, make([]byte, 1)); err != nil { // the rest is being written
		t.Fatal(err)
	}
}

func TestASignalEndsAConversationWhateverTheClientDoes(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		idle := start(t, "stdio")
		idle.await(t, "handler answers")
		idle.signal(t, signal)
		idle.expectEnd(t, 0)
	}
	held := start(t, "stdio")
	held.send(t, toolCall("hold"))
	<-held.began
	held.signal(t, syscall.SIGTERM)
	held.expectEnd(t, 0)

	unread := start(t, "stdio")
	unread.block(t)
	unread.signal(t, syscall.SIGTERM)
	unread.expectEnd(t, 0)
}

func TestTheEndOfTheInputEndsAConversationThatNobodyReads(t *testing.T) {
	t.Parallel()
	p := start(t, "stdio")
	p.block(t)
	if err := p.input.Close(); err != nil {
		t.Fatal(err)
	}
	p.expectEnd(t, 0)
}

func TestASecondSignalEndsTheProcessAtOnce(t *testing.T) {
	t.Parallel()
	unread := start(t, "stdio")
	unread.block(t)
	unread.signal(t, syscall.SIGTERM)
	unread.await(t, "a second signal")
	unread.signal(t, syscall.SIGINT)
	unread.expectEnd(t, syscall.SIGINT)

	serving := start(t, "serve")
	url := serving.awaitService(t)
	ctx, cancel := context.WithCancel(t.Context())
	var calling sync.WaitGroup
	defer calling.Wait()
	defer cancel()
	calling.Go(func() { post(ctx, url, toolCall("hold")) })
	<-serving.began
	serving.signal(t, syscall.SIGTERM)
	serving.await(t, "a second signal")
	serving.signal(t, syscall.SIGTERM)
	serving.expectEnd(t, syscall.SIGTERM)
}

// post sends a request whose answer does not matter.
func post(ctx context.Context, url, body string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "hold",
	} {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
}
