package modern_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	sealv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/seal/v1"
	"github.com/countersign-mcp/countersign/services/internal/tracing"
	"github.com/countersign-mcp/countersign/services/mcpedge/catalog"
	"github.com/countersign-mcp/countersign/services/mcpedge/failure"
	"github.com/countersign-mcp/countersign/services/mcpedge/handlerfake"
	"github.com/countersign-mcp/countersign/services/mcpedge/identity"
	"github.com/countersign-mcp/countersign/services/mcpedge/modern"
	"github.com/countersign-mcp/countersign/services/mcpedge/render"
	"github.com/countersign-mcp/countersign/services/mcpedge/state"
	"github.com/countersign-mcp/countersign/services/mcpedge/subscription"
	"github.com/countersign-mcp/countersign/services/mcpedge/telemetry"
	mcphttp "github.com/countersign-mcp/countersign/services/mcpedge/transport/http"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// suite is an edge with one handler service, served over HTTP.
type suite struct {
	t        *testing.T
	url      string
	handler  *handlerfake.Service
	registry *prometheus.Registry
	logs     *bytes.Buffer
	client   *http.Client
	// clock is added to the real time, in nanoseconds.
	clock atomic.Int64
	hub   *subscription.Hub
	// sealer can be replaced while the suite runs.
	sealer *switchable
}

// options are what tests change.
type options struct {
	encrypt       bool
	maxTokenBytes int
	maxRound      uint32
	lifetime      time.Duration
	chainLifetime time.Duration
	timeout       time.Duration
	writeTimeout  time.Duration
	principals    identity.Source
	catalog       *handlerv1.Catalog
	// more are the catalogs of further handler services.
	more     []*handlerv1.Catalog
	pageSize int
	tracing  *tracing.Tracing
}

// switchable is a sealer that can be taken away.
type switchable struct {
	sealv1.SealerServiceClient

	gone atomic.Pointer[error]
}

// newSuite serves a catalog of one tool `ask` and one tool `free`, one prompt, one
// resource and one template; run runs their attempts.
func newSuite(t *testing.T, run func(*handlerv1.Begin, handlerfake.Stream) error, change ...func(*options)) *suite {
	t.Helper()
	o := options{maxTokenBytes: 16 << 10, maxRound: 4, lifetime: time.Minute, chainLifetime: time.Hour, timeout: 20 * time.Second, writeTimeout: 20 * time.Second, principals: identity.Anonymous{}, catalog: defaultCatalog()}
	for _, f := range change {
		f(&o)
	}
	s := &suite{t: t, handler: handlerfake.New(o.catalog), registry: prometheus.NewRegistry(), logs: &bytes.Buffer{}}
	s.handler.Run = run
	now := func() time.Time { return time.Now().Add(time.Duration(s.clock.Load())) }
	s.sealer = &switchable{SealerServiceClient: newSealer(t, now)}
	metrics := telemetry.New(s.registry)
	logger := slog.New(slog.NewTextHandler(&lockedWriter{w: s.logs}, nil))
	s.hub = subscription.NewHub(2, 2)
	handlers := []*catalog.Handler{{Name: "fake", Client: handlerfake.Serve(t, s.handler)}}
	for i, more := range o.more {
		handlers = append(handlers, &catalog.Handler{Name: fmt.Sprintf("fake%d", i+2), Client: handlerfake.Serve(t, handlerfake.New(more))})
	}
	entries := catalog.New(handlers, logger, observers{metrics, s.hub})
	server := modern.NewServer(modern.Options{
		Catalog: entries,
		Sealer: state.NewSealer(s.sealer, state.Options{
			Context: &sealv1.Context{Audience: "test"}, Encrypt: o.encrypt, MaxTokenBytes: o.maxTokenBytes, MaxRound: o.maxRound, Lifetime: o.lifetime, Timeout: 10 * time.Second,
		}),
		Subscriptions: s.hub, KeepAlive: 20 * time.Millisecond, PageSize: o.pageSize,
		Renderer: render.NewRenderer(render.ServerInfo{Name: "countersign", Version: "1"}),
		Metrics:  metrics, Logger: logger, Tracing: o.tracing, Now: now, RequestTimeout: o.timeout, ChainLifetime: o.chainLifetime,
	})
	endpoint := httptest.NewServer(mcphttp.NewHandler(mcphttp.Options{
		Server: server, Principals: o.principals, Logger: logger,
		Refused:      func(reason failure.Reason) { metrics.MessageRefused(string(reason)) },
		MaxBodyBytes: 64 << 10, MaxDepth: 32, BodyTimeout: 10 * time.Second, WriteTimeout: o.writeTimeout,
		AllowedHosts: []string{"127.0.0.1", "localhost"}, AllowedOrigins: []string{"https://app.example"},
	}))
	s.url, s.client = endpoint.URL, endpoint.Client()
	ctx, cancel := context.WithCancel(context.Background())
	var following sync.WaitGroup
	following.Go(func() { entries.Follow(ctx) })
	t.Cleanup(func() {
		endpoint.Close()
		cancel()
		following.Wait()
	})
	<-entries.Settled()
	return s
}

// observers are told of what changes in the catalog.
type observers struct {
	*telemetry.Metrics
	*subscription.Hub
}

func defaultCatalog() *handlerv1.Catalog {
	yes := true
	return &handlerv1.Catalog{
		Revision:     "1",
		Instructions: "Be kind.",
		Cache:        &handlerv1.CacheHint{TtlMs: 5000, Scope: handlerv1.CacheScope_CACHE_SCOPE_PUBLIC},
		Tools: []*handlerv1.Tool{
			{Name: "ask", Description: "Asks.", InputSchema: []byte(`{"type":"object","properties":{"n":{"type":"integer"}}}`)},
			{Name: "route", Description: "Routes.", InputSchema: []byte(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`)},
			{Name: "typed", Description: "Returns a number.", InputSchema: []byte(`{"type":"object"}`), OutputSchema: []byte(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)},
			{Name: "look", Description: "Changes nothing.", InputSchema: []byte(`{"type":"object"}`), Annotations: &handlerv1.ToolAnnotations{ReadOnlyHint: &yes}},
			{Name: "destroy", Description: "Asks before it destroys.", InputSchema: []byte(`{"type":"object"}`), Annotations: &handlerv1.ToolAnnotations{DestructiveHint: &yes}},
		},
		Prompts:           []*handlerv1.Prompt{{Name: "greet", Description: "Greets.", Arguments: []*handlerv1.PromptArgument{{Name: "who", Required: true}, {Name: "how"}}}},
		Resources:         []*handlerv1.Resource{{Uri: "orders://all", Name: "orders"}},
		ResourceTemplates: []*handlerv1.ResourceTemplate{{UriTemplate: "orders://{id}", Name: "order"}},
	}
}

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

const allCapabilities = `{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}`

// meta is the metadata of a modern request; more are further members.
func meta(capabilities string, more ...string) string {
	members := append([]string{
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28"`,
		`"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"}`,
		`"io.modelcontextprotocol/clientCapabilities":` + capabilities,
	}, more...)
	return `"_meta":{` + strings.Join(members, ",") + `}`
}

// reply is what came back.
type reply struct {
	status int
	header http.Header
	body   string
	// events are the messages of a stream before the last; message is the last, or
	// the body.
	events  []string
	message string
}

// parsed is a JSON-RPC response.
type parsed struct {
	ID     json.RawMessage            `json:"id"`
	Result map[string]json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

func (r reply) parse(t *testing.T) parsed {
	t.Helper()
	var p parsed
	if err := json.Unmarshal([]byte(r.message), &p); err != nil {
		t.Fatalf("%v in %q (status %d)", err, r.body, r.status)
	}
	return p
}

// request is a request to make.
type request struct {
	method, params string
	id             string
	// header replaces headers; an empty value removes one.
	header map[string]string
	body   string
}

// do makes a request with the headers that its body demands.
func (s *suite) do(r request) reply {
	s.t.Helper()
	response := s.start(context.Background(), r)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	result := reply{status: response.StatusCode, header: response.Header, body: string(body), message: string(body)}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		for line := range strings.SplitSeq(string(body), "\n") {
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				result.events = append(result.events, data)
			}
		}
		last := len(result.events) - 1
		result.message, result.events = result.events[last], result.events[:last]
	}
	return result
}

func (s *suite) start(ctx context.Context, r request) *http.Response {
	s.t.Helper()
	if r.id == "" {
		r.id = "1"
	}
	body := r.body
	if body == "" {
		body = `{"jsonrpc":"2.0","id":` + r.id + `,"method":"` + r.method + `","params":{` + r.params + `}}`
	}
	httpRequest, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	var named struct {
		Params struct {
			Name string `json:"name"`
			URI  string `json:"uri"`
		} `json:"params"`
	}
	_ = json.Unmarshal([]byte(body), &named)
	header := map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": r.method, "Mcp-Name": named.Params.Name + named.Params.URI,
	}
	maps.Copy(header, r.header)
	for name, value := range header {
		if value != "" {
			httpRequest.Header.Set(name, value)
		}
	}
	if host := r.header["Host"]; host != "" {
		httpRequest.Host = host
	}
	response, err := s.client.Do(httpRequest)
	if err != nil {
		s.t.Fatal(err)
	}
	return response
}

// call calls the tool `ask` with further members of the params.
func (s *suite) call(more ...string) parsed {
	s.t.Helper()
	return s.do(request{method: "tools/call", params: strings.Join(append([]string{`"name":"ask"`, meta(allCapabilities)}, more...), ",")}).parse(s.t)
}

// metric is the value of a counter or gauge with the labels given as name=value.
func (s *suite) metric(name string, labels ...string) float64 {
	s.t.Helper()
	families, err := s.registry.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	total := 0.0
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			have := map[string]bool{}
			for _, label := range metric.GetLabel() {
				have[label.GetName()+"="+label.GetValue()] = true
			}
			matches := true
			for _, label := range labels {
				matches = matches && have[label]
			}
			if matches {
				total += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			}
		}
	}
	return total
}
