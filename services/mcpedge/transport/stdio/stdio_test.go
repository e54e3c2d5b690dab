package stdio_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	"github.com/countersign-mcp/countersign/services/mcpedge/catalog"
	"github.com/countersign-mcp/countersign/services/mcpedge/failure"
	"github.com/countersign-mcp/countersign/services/mcpedge/handlerfake"
	"github.com/countersign-mcp/countersign/services/mcpedge/modern"
	"github.com/countersign-mcp/countersign/services/mcpedge/render"
	"github.com/countersign-mcp/countersign/services/mcpedge/subscription"
	"github.com/countersign-mcp/countersign/services/mcpedge/telemetry"
	"github.com/countersign-mcp/countersign/services/mcpedge/transport/stdio"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client is the other end of a conversation.
type client struct {
	t      *testing.T
	input  *io.PipeWriter
	output *bufio.Scanner
	hub    *subscription.Hub
	// served receives what Serve returned.
	served chan error
}

type observers struct {
	*telemetry.Metrics
	*subscription.Hub
}

// converse starts a conversation with an edge whose one tool is run by run.
func converse(t *testing.T, run func(*handlerv1.Begin, handlerfake.Stream) error) *client {
	t.Helper()
	service := handlerfake.New(&handlerv1.Catalog{Revision: "1", Tools: []*handlerv1.Tool{{Name: "run", InputSchema: []byte(`{"type":"object"}`)}}})
	service.Run = run
	metrics := telemetry.New(prometheus.NewRegistry())
	logger := slog.New(slog.DiscardHandler)
	hub := subscription.NewHub(10, 10)
	entries := catalog.New([]*catalog.Handler{{Name: "h", Client: handlerfake.Serve(t, service)}}, logger, observers{metrics, hub})
	server := modern.NewServer(modern.Options{
		Catalog: entries, Subscriptions: hub, Renderer: render.NewRenderer(render.ServerInfo{Name: "s", Version: "1"}), Metrics: metrics,
		Logger: logger, Now: time.Now, RequestTimeout: time.Minute, ChainLifetime: time.Hour, KeepAlive: time.Minute,
	})
	input, toServer := io.Pipe()
	fromServer, output := io.Pipe()
	connection := stdio.New(input, output, stdio.Options{Server: server, Logger: logger, Refused: func(failure.Reason) {}, MaxLineBytes: 4096, MaxDepth: 16})
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() { entries.Follow(ctx) })
	<-entries.Settled()
	c := &client{t: t, input: toServer, output: bufio.NewScanner(fromServer), hub: hub, served: make(chan error, 1)}
	group.Go(func() {
		c.served <- connection.Serve(ctx)
		_ = output.Close()
	})
	t.Cleanup(func() {
		_ = toServer.Close()
		cancel()
		_ = fromServer.Close()
		group.Wait()
	})
	return c
}

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

func call(id, more string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"run",` + more + meta + `}}`
}

func (c *client) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.input, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// next returns the next line, or nothing at the end.
func (c *client) next() string {
	if !c.output.Scan() {
		return ""
	}
	return c.output.Text()
}

func echo(begin *handlerv1.Begin, stream handlerfake.Stream) error {
	return handlerfake.FinishText(stream, string(begin.GetCallTool().GetArguments()))
}

func TestRequestsAreAnsweredOneMessageALine(t *testing.T) {
	c := converse(t, echo)
	c.send(call(`"a"`, `"arguments":{"n":9007199254740993},`))
	if got := c.next(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":"a","result":`) || !strings.Contains(got, `9007199254740993`) {
		t.Errorf("got %s", got)
	}
	c.send("")
	c.send(`{"jsonrpc":"2.0","id":2,"method":"server/discover","params":{` + meta + `}}`)
	if got := c.next(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete"`) {
		t.Errorf("got %s", got)
	}
}

func TestWhatIsNoRequestIsRefusedAndTheConversationGoesOn(t *testing.T) {
	c := converse(t, echo)
	for _, test := range []struct{ line, want string }{
		{`{`, `"code":-32700`},
		{`{"jsonrpc":"2.0","id":7,"method":1}`, `{"jsonrpc":"2.0","id":7,"error":{"code":-32600`},
		{strings.Repeat("x", 10000), `longer than 4096 bytes`},
		{strings.Repeat("[", 17), `nested too deeply`},
		{`{"jsonrpc":"2.0","id":8,"method":"none","params":{` + meta + `}}`, `"code":-32601`},
	} {
		c.send(test.line)
		if got := c.next(); !strings.Contains(got, test.want) {
			t.Errorf("%.40s: got %s", test.line, got)
		}
	}
	c.send(call("9", ""))
	if got := c.next(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":9,"result"`) {
		t.Errorf("got %s", got)
	}
}

func TestACancelledRequestIsHeardOfNoMore(t *testing.T) {
	began := make(chan struct{}, 2)
	c := converse(t, func(begin *handlerv1.Begin, stream handlerfake.Stream) error {
		if string(begin.GetCallTool().GetArguments()) == `{"quick":true}` {
			return echo(begin, stream)
		}
		began <- struct{}{}
		<-stream.Context().Done()
		return stream.Context().Err()
	})
	c.send(call("1", ""))
	c.send(call(`"1"`, ""))
	<-began
	<-began
	for _, params := range []string{``, `,"params":{}`, `,"params":{"requestId":2}`, `,"params":{"requestId":{}}`, `,"params":{"requestId":1,"reason":"enough"}`, `,"params":{"requestId":"\u0031"}`} {
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled"` + params + `}`)
	}
	c.send(call("2", `"arguments":{"quick":true},`))
	if got := c.next(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":2,`) {
		t.Errorf("got %s", got)
	}
	_ = c.input.Close()
	if got := c.next(); got != "" {
		t.Errorf("after the end of the input: %s", got)
	}
	if err := <-c.served; err != nil {
		t.Error(err)
	}
}

func TestTheEndOfTheInputCancelsWhatIsBeingServed(t *testing.T) {
	began, ended := make(chan struct{}), make(chan error, 1)
	c := converse(t, func(_ *handlerv1.Begin, stream handlerfake.Stream) error {
		close(began)
		<-stream.Context().Done()
		ended <- stream.Context().Err()
		return stream.Context().Err()
	})
	c.send(call("1", ""))
	<-began
	_ = c.input.Close()
	for line := c.next(); line != ""; line = c.next() {
		t.Logf("after the end of the input: %s", line) // the reply to what was cut off may still come
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestSubscriptionsShareTheChannel(t *testing.T) {
	c := converse(t, echo)
	for _, id := range []string{"1", "2"} {
		c.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + meta + `}}`)
		if got := c.next(); !strings.Contains(got, `"io.modelcontextprotocol/subscriptionId":`+id) || !strings.Contains(got, "acknowledged") {
			t.Fatalf("got %s", got)
		}
	}
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	c.send(call("3", ""))
	if got := c.next(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":3`) {
		t.Fatalf("got %s", got)
	}
	c.hub.ListsChanged(subscription.Filter{Tools: true})
	if got := c.next(); !strings.Contains(got, "list_changed") || !strings.Contains(got, `"io.modelcontextprotocol/subscriptionId":2`) {
		t.Errorf("got %s", got)
	}
	c.hub.Close()
	if got := c.next(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":2,"result"`) {
		t.Errorf("got %s", got)
	}
}

func TestAClientThatReadsNothingHoldsNothing(t *testing.T) {
	began := make(chan struct{}, 1)
	c := converse(t, func(begin *handlerv1.Begin, stream handlerfake.Stream) error {
		began <- struct{}{}
		return echo(begin, stream)
	})
	c.send(`{`) // a refusal that nobody reads
	c.send(call("1", ""))
	<-began
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	c.send(call("2", ""))
	<-began
	_ = c.input.Close()
	if err := <-c.served; err != nil {
		t.Error(err)
	}
}
