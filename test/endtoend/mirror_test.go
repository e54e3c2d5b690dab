package endtoend_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	handler "github.com/countersign-mcp/countersign/services/handlers/go"
	"github.com/countersign-mcp/countersign/test/client"
	"github.com/countersign-mcp/countersign/test/deployment"
)

// mirror is a handler service that sends back what it gets as exact text, behind an
// edge, with a client.
type mirror struct {
	client *client.Client
	// metaText is the `_meta` that the revision wants, still open at its end.
	metaText string

	lock sync.Mutex
	// calls is how often a tool has run.
	calls int
	// arguments are those of the last one.
	arguments string
	// reply is what the tool `say` says.
	reply *handler.Result
}

// checker is a test or a property.
type checker interface {
	Helper()
	Fatalf(format string, arguments ...any)
	Context() context.Context
}

// anyAnswer is a form that takes any number and any text.
const anyAnswer = `{"type":"object","properties":{"number":{"type":"number"},"text":{"type":"string"}}}`

func startMirror(t *testing.T) *mirror {
	t.Helper()
	m := new(mirror)
	server := handler.NewServer("mirror")
	for name, call := range map[string]func(*handler.Context, json.RawMessage) (*handler.Result, error){
		"echo": m.echo, "ask_twice": askForAnything, "sample": sampleRaw, "say": m.say, "fail": failWithData,
	} {
		handler.Tool(server, name, call, handler.Description("Sends back what it gets: "+name+"."),
			handler.InputSchema(json.RawMessage(`{"type":"object"}`)))
	}
	edge := deployment.Edge{Handlers: map[string]string{"mirror": deployment.ServeHandler(t, server)}}.Start(t)
	m.client = newClient(t, edge.MCP())
	m.client.Capabilities = map[string]any{"elicitation": map[string]any{}, "sampling": map[string]any{}}
	meta, err := json.Marshal(m.client.Meta())
	if err != nil {
		t.Fatal(err)
	}
	m.metaText = string(meta[:len(meta)-1])
	return m
}

// echo sends arguments back as structured content and inside a content block, and
// vendor `_meta` as `_meta`.
func (m *mirror) echo(ctx *handler.Context, arguments json.RawMessage) (*handler.Result, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.calls++
	m.arguments = string(arguments)
	block := `{"type":"text","text":"","future":` + string(arguments) + `}`
	return &handler.Result{
		Content:    []handler.Content{handler.RawContent(json.RawMessage(block))},
		Structured: arguments,
		Meta:       ctx.Meta(),
	}, nil
}

// seen returns how often echo has run, and its last arguments.
func (m *mirror) seen() (int, string) {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.calls, m.arguments
}

// say says what the test has set.
func (m *mirror) say(*handler.Context, json.RawMessage) (*handler.Result, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.reply, nil
}

func (m *mirror) sayNext(reply *handler.Result) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.reply = reply
}

// askForAnything asks twice, so that the first answer rides in the request state,
// and returns both answers.
func askForAnything(ctx *handler.Context, _ json.RawMessage) (*handler.Result, error) {
	var answers [2]string
	for i, key := range []string{"first", "second"} {
		answer, err := handler.Elicit[json.RawMessage](ctx, "What is your "+key+" answer?",
			handler.Key(key), handler.FormSchema(json.RawMessage(anyAnswer)))
		if err != nil {
			return nil, err
		}
		answers[i] = string(answer.Content)
	}
	return &handler.Result{Structured: json.RawMessage(`{"first":` + answers[0] + `,"second":` + answers[1] + `}`)}, nil
}

// sampleRaw returns a sample as it came, and what the kit reads in it.
func sampleRaw(ctx *handler.Context, _ json.RawMessage) (*handler.Result, error) {
	sampled, err := ctx.Sample(handler.SampleRequest{
		Messages: []handler.SampleMessage{handler.SampleText(handler.RoleUser, "Hello")}, MaxTokens: 1,
	}, handler.Key("sample"))
	if err != nil {
		return nil, err
	}
	return &handler.Result{Structured: map[string]any{"raw": sampled.Raw, "model": sampled.Model, "text": sampled.Text()}}, nil
}

func failWithData(_ *handler.Context, arguments json.RawMessage) (*handler.Result, error) {
	return nil, handler.ApplicationError(402, "no").WithData(arguments)
}

// call calls a tool. Members are the text of further members of the params, each with
// a comma in front; vendorMeta the same of the `_meta`.
func (m *mirror) call(t checker, tool, members, vendorMeta string) *client.Reply {
	t.Helper()
	reply, err := m.client.SendText(t.Context(), "tools/call", tool,
		`{"name":"`+tool+`"`+members+`,"_meta":`+m.metaText+vendorMeta+`}}`)
	if err != nil {
		t.Fatalf("call %s with %s: %v", tool, members, err)
	}
	return reply
}

// completed is the result of a call that must have one.
func (m *mirror) completed(t checker, tool, members, vendorMeta string) *client.Reply {
	t.Helper()
	reply := m.call(t, tool, members, vendorMeta)
	if reply.Error != nil || reply.Result.IsError || reply.Result.Type != "complete" {
		t.Fatalf("%s with %s was answered with %s", tool, members, reply.Body)
	}
	return reply
}

// asked is the request state of a call that must ask.
func (m *mirror) asked(t checker, tool, members string) string {
	t.Helper()
	reply := m.call(t, tool, members, "")
	if reply.Error != nil || reply.Result.Type != "input_required" {
		t.Fatalf("%s with %s was answered with %s, want a question", tool, members, reply.Body)
	}
	return `,"requestState":"` + reply.Result.RequestState + `"`
}
