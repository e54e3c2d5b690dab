package handlertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	handler "github.com/countersign-mcp/countersign/services/handlers/go"
)

// Run runs a request under both semantics and fails the test at the first thing that
// is wrong. It returns what happened under replay.
//
// newServer is called once for each semantics, so that nothing is left over from one
// to the other: make whatever the handler stores things in there, too.
func Run(
	tb testing.TB, newServer func() *handler.Server, request Request, answers Answerer, options ...Option,
) *Outcome {
	tb.Helper()
	outcome, err := Check(tb.Context(), newServer, request, answers, options...)
	if err != nil {
		tb.Fatal(err)
	}
	return outcome
}

// Check is [Run] with the failure as an error.
func Check(
	ctx context.Context, newServer func() *handler.Server, request Request, answers Answerer, options ...Option,
) (*Outcome, error) {
	settings := defaultSettings()
	for _, option := range options {
		option(settings)
	}
	ctx, cancel := context.WithTimeout(ctx, settings.timeout)
	defer cancel()
	awaited, err := runAs(ctx, await, newServer(), request, answers, settings)
	if err != nil {
		return nil, fmt.Errorf("with await semantics: %w", err)
	}
	replayed, err := runAs(ctx, replay, newServer(), request, answers, settings)
	if err != nil {
		return nil, fmt.Errorf("with replay semantics: %w", err)
	}
	if !proto.Equal(awaited.Finish, replayed.Finish) {
		return nil, fmt.Errorf("await and replay end differently:\nawait:  %s\nreplay: %s",
			prototext.Format(awaited.Finish), prototext.Format(replayed.Finish))
	}
	return replayed, nil
}

// Option changes how a request is run.
type Option func(*settings)

type settings struct {
	capabilities *handlerv1.ClientCapabilities
	principal    *handlerv1.Principal
	meta         []byte
	timeout      time.Duration
	maxAttempts  int
	allowFaults  bool
}

func defaultSettings() *settings {
	return &settings{
		capabilities: &handlerv1.ClientCapabilities{
			ElicitationForm: true, ElicitationUrl: true, Sampling: true, SamplingTools: true,
			SamplingContext: true, Roots: true,
			Raw: []byte(`{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{},"context":{}},"roots":{}}`),
		},
		principal:   &handlerv1.Principal{Issuer: "anonymous"},
		timeout:     30 * time.Second,
		maxAttempts: 32,
	}
}

// WithCapabilities sets what the client declares; the default is everything.
func WithCapabilities(capabilities *handlerv1.ClientCapabilities) Option {
	return func(s *settings) { s.capabilities = capabilities }
}

// WithPrincipal sets on whose behalf the request is made; the default is anonymous.
func WithPrincipal(issuer, subject string) Option {
	return func(s *settings) { s.principal = &handlerv1.Principal{Issuer: issuer, Subject: subject} }
}

// WithMeta sets the request's vendor `_meta`: a JSON object.
func WithMeta(object []byte) Option {
	return func(s *settings) { s.meta = object }
}

// WithTimeout bounds the whole run, 30 s by default. It ends a function that hangs.
func WithTimeout(timeout time.Duration) Option {
	return func(s *settings) { s.timeout = timeout }
}

// AllowFaults lets a run end with what is otherwise taken for a mistake of the
// handler or of the test: an internal error, a use of the kit that it refuses, and
// arguments that do not fit the tool. It is for tests of just that.
func AllowFaults() Option {
	return func(s *settings) { s.allowFaults = true }
}

// Outcome is what a request led to.
type Outcome struct {
	// Finish is how the last attempt ended.
	Finish *handlerv1.Finish
	// Rounds are the questions that were shown, one element a round.
	Rounds [][]*handlerv1.Question
	// Attempts is how often the function ran.
	Attempts int
	// Progress and Logs are what the last attempt sent.
	Progress []*handlerv1.Progress
	Logs     []*handlerv1.Log
}

// Text is the first text of a tool's result or of a prompt's first message; empty
// when there is none.
func (o *Outcome) Text() string {
	for _, content := range o.Finish.GetCallTool().GetContent() {
		if content.GetText() != nil {
			return content.GetText().GetText()
		}
	}
	for _, message := range o.Finish.GetGetPrompt().GetMessages() {
		return message.GetContent().GetText().GetText()
	}
	return ""
}

// Structured is the structured content of a tool's result: JSON, or empty.
func (o *Outcome) Structured() string {
	return string(o.Finish.GetCallTool().GetStructuredContent())
}

// IsError reports whether the tool failed or the request was refused.
func (o *Outcome) IsError() bool { return o.Err() != nil }

// Err is the failure of a tool as a model reads it, or the refusal of a request with
// its kind; nil where neither happened.
func (o *Outcome) Err() error {
	if refusal := o.Finish.GetError(); refusal != nil {
		kind := strings.TrimPrefix(refusal.GetKind().String(), "ERROR_KIND_")
		return fmt.Errorf("%s: %s", strings.ToLower(strings.ReplaceAll(kind, "_", " ")), refusal.GetMessage())
	}
	if o.Finish.GetCallTool().GetIsError() {
		return errors.New(o.Text())
	}
	return nil
}

// Keys are the keys of the questions that were shown, in order.
func (o *Outcome) Keys() []string {
	var keys []string
	for _, round := range o.Rounds {
		for _, question := range round {
			keys = append(keys, question.GetKey())
		}
	}
	return keys
}

// runAs runs all the attempts of one request.
func runAs(
	ctx context.Context, semantics semantics, server *handler.Server, request Request, answers Answerer,
	settings *settings,
) (outcome *Outcome, err error) {
	recorder := newRecorder()
	client, stop, err := start(ctx, server, grpc.StreamInterceptor(recorder.intercept))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	chain := &chain{
		client: client, recorder: recorder, semantics: semantics, answers: answers,
		begin: &handlerv1.Begin{
			ChainId: "chain-1", Principal: settings.principal, ClientCapabilities: settings.capabilities,
			ClientInfo:    &handlerv1.ClientInfo{Name: "handlertest", Version: "1"},
			WantsProgress: true, LogLevel: handlerv1.LogLevel_LOG_LEVEL_DEBUG, Meta: settings.meta,
		},
		outcome: new(Outcome),
		held:    make(map[string]*handlerv1.Answer),
	}
	request(chain.begin)
	if !settings.allowFaults {
		if err := checkArguments(ctx, client, chain.begin.GetCallTool()); err != nil {
			return nil, err
		}
	}
	for range settings.maxAttempts {
		finished, err := chain.attempt(ctx)
		if !settings.allowFaults {
			err = errors.Join(err, recorder.failure())
		}
		if err := errors.Join(recorder.violations(), err); err != nil {
			return nil, err
		}
		if finished {
			return chain.outcome, nil
		}
	}
	return nil, fmt.Errorf("there is no end after %d attempts", settings.maxAttempts)
}

// checkArguments refuses arguments that an edge would not let through.
func checkArguments(ctx context.Context, client handlerv1.HandlerServiceClient, call *handlerv1.CallTool) error {
	if call == nil {
		return nil
	}
	response, err := client.Describe(ctx, new(handlerv1.DescribeRequest))
	if err != nil {
		return fmt.Errorf("describe the catalog: %w", err)
	}
	for _, tool := range response.GetCatalog().GetTools() {
		if tool.GetName() != call.GetName() {
			continue
		}
		if err := matches(tool.GetInputSchema(), call.GetArguments()); err != nil {
			return fmt.Errorf("the arguments do not fit the input schema of %q, so an edge refuses them: %w", call.GetName(), err)
		}
	}
	return nil
}
