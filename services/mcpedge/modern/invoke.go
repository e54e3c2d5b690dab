package modern

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/types/known/timestamppb"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	sealv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/seal/v1"
	"github.com/countersign-mcp/countersign/services/mcpedge/attempt"
	"github.com/countersign-mcp/countersign/services/mcpedge/catalog"
	"github.com/countersign-mcp/countersign/services/mcpedge/failure"
	"github.com/countersign-mcp/countersign/services/mcpedge/jsonrpc"
	"github.com/countersign-mcp/countersign/services/mcpedge/question"
	"github.com/countersign-mcp/countersign/services/mcpedge/schema"
	"github.com/countersign-mcp/countersign/services/mcpedge/telemetry"
)

func (s *Server) callTool(ctx context.Context, c *call, sink Sink) ([]byte, error) {
	name, err := target("name", c.name)
	if err != nil {
		return nil, err
	}
	snapshot, err := s.snapshot()
	if err != nil {
		return nil, err
	}
	tool := snapshot.Tool(name)
	if tool == nil {
		return nil, unknown(snapshot, name, failure.Newf(failure.UnknownTarget, "unknown tool: %q", name))
	}
	arguments := c.arguments
	if arguments == nil {
		arguments = []byte("{}")
	}
	if arguments[0] != '{' {
		return nil, failure.Newf(failure.InvalidParams, "params.arguments is not an object")
	}
	if err := c.checkParams(tool.Mirrored, arguments); err != nil {
		return nil, err
	}
	// A model can mend arguments that do not match: it reads why as the tool's own
	// failure (tools, "Error Handling").
	err = tool.Input.Validate(arguments)
	if violations, ok := errors.AsType[*schema.Violations](err); ok {
		return s.Renderer.ToolFailure("The arguments do not match the tool's input schema: " + violations.Error()), nil
	}
	if errors.Is(err, schema.ErrBudget) {
		return nil, failure.Newf(failure.InvalidParams, "params.arguments takes too long to check against the tool's input schema")
	}
	if err != nil {
		return nil, failure.New(failure.Internal, err)
	}
	begin := &handlerv1.Begin{Request: &handlerv1.Begin_CallTool{CallTool: &handlerv1.CallTool{Name: tool.Own, Arguments: arguments}}}
	return s.invoke(ctx, c, sink, invocation{
		target: name, entry: &tool.Entry, begin: begin, asksMustBeShown: tool.AsksMustBeShown, repeatable: tool.Repeatable,
		render: func(finish *handlerv1.Finish) ([]byte, error) {
			if finish.GetCallTool() == nil {
				return nil, errOtherKind
			}
			if err := checkOutput(tool.Output, finish.GetCallTool()); err != nil {
				return nil, err
			}
			return s.Renderer.CallTool(finish.GetCallTool())
		},
	})
}

// checkOutput checks structured content against the tool's output schema, which a
// server must keep to ("Output Schema"). A tool that failed says so in its content
// instead. The error names no value: it goes to the operator's log.
func checkOutput(output *schema.Schema, result *handlerv1.CallToolResult) error {
	if output == nil || result.GetIsError() {
		return nil
	}
	if !jsonrpc.Valid(result.GetStructuredContent(), 0) {
		return errors.New("the tool has an output schema, and its structured content is missing or not strict JSON")
	}
	if output.Validate(result.GetStructuredContent()) != nil {
		return errors.New("the structured content does not match the tool's output schema")
	}
	return nil
}

func (s *Server) getPrompt(ctx context.Context, c *call, sink Sink) ([]byte, error) {
	name, err := target("name", c.name)
	if err != nil {
		return nil, err
	}
	snapshot, err := s.snapshot()
	if err != nil {
		return nil, err
	}
	prompt := snapshot.Prompt(name)
	if prompt == nil {
		return nil, unknown(snapshot, name, failure.Newf(failure.UnknownTarget, "unknown prompt: %q", name))
	}
	arguments, err := stringMembers("arguments", c.arguments)
	if err != nil {
		return nil, err
	}
	if err := checkPromptArguments(prompt.Arguments, arguments); err != nil {
		return nil, err
	}
	begin := &handlerv1.Begin{Request: &handlerv1.Begin_GetPrompt{GetPrompt: &handlerv1.GetPrompt{Name: prompt.Own, Arguments: arguments}}}
	return s.invoke(ctx, c, sink, invocation{
		target: name, entry: &prompt.Entry, begin: begin, repeatable: true,
		render: func(finish *handlerv1.Finish) ([]byte, error) {
			if finish.GetGetPrompt() == nil {
				return nil, errOtherKind
			}
			return s.Renderer.GetPrompt(finish.GetGetPrompt())
		},
	})
}

func (s *Server) readResource(ctx context.Context, c *call, sink Sink) ([]byte, error) {
	uri, err := target("uri", c.uri)
	if err != nil {
		return nil, err
	}
	snapshot, err := s.snapshot()
	if err != nil {
		return nil, err
	}
	resource := snapshot.Resource(uri)
	if resource == nil {
		return nil, unknown(snapshot, "", resourceNotFound(uri, "resource not found"))
	}
	begin := &handlerv1.Begin{Request: &handlerv1.Begin_ReadResource{ReadResource: &handlerv1.ReadResource{Uri: uri, UriTemplate: resource.Template()}}}
	return s.invoke(ctx, c, sink, invocation{
		target: uri, entry: &resource.Entry, begin: begin, repeatable: true,
		render: func(finish *handlerv1.Finish) ([]byte, error) {
			if finish.GetReadResource() == nil {
				return nil, errOtherKind
			}
			return s.Renderer.ReadResource(finish.GetReadResource(), resource.Cache)
		},
	})
}

// unknown is the failure of a name that the catalog lacks. While a handler that may
// offer it has not been reached, nobody knows, and the request may succeed later.
func unknown(snapshot *catalog.Snapshot, name string, err error) error {
	if snapshot.MayLack(name) {
		return failure.New(failure.HandlerUnavailable, errors.New("a handler that may offer it has not been reached yet"))
	}
	return err
}

// errOtherKind: a handler finished with a result of another kind than the request.
var errOtherKind = errors.New("the result is not of the request's kind")

func resourceNotFound(uri, message string) error {
	data := jsonrpc.AppendString([]byte(`{"uri":`), uri)
	return &failure.Error{Reason: failure.ResourceNotFound, Message: message, Data: append(data, '}')}
}

// stringMembers reads an object whose members are strings; absent is empty.
func stringMembers(member string, text []byte) (map[string]string, error) {
	values := map[string]string{}
	if text == nil {
		return values, nil
	}
	if text[0] != '{' {
		return nil, failure.Newf(failure.InvalidParams, "params.%s is not an object", member)
	}
	err := jsonrpc.EachMember(text, func(name string, value []byte) error {
		unquoted, err := jsonrpc.Unquote(value)
		if err != nil {
			return failure.Newf(failure.InvalidParams, "params.%s.%s is not a string", member, name)
		}
		values[name] = unquoted
		return nil
	})
	return values, err
}

// checkPromptArguments checks that the required arguments are there and that there
// are no others than those listed.
func checkPromptArguments(takes []*handlerv1.PromptArgument, given map[string]string) error {
	known := map[string]bool{}
	for _, argument := range takes {
		known[argument.GetName()] = true
		if _, ok := given[argument.GetName()]; !ok && argument.GetRequired() {
			return failure.Newf(failure.InvalidParams, "the prompt needs the argument %q", argument.GetName())
		}
	}
	for name := range given {
		if !known[name] {
			return failure.Newf(failure.InvalidParams, "the prompt has no argument %q", name)
		}
	}
	return nil
}

// invocation is what differs between calling a tool, rendering a prompt and
// reading a resource.
type invocation struct {
	// target is what the request state is bound to.
	target string
	// entry is what is invoked.
	entry *catalog.Entry
	// begin holds the request for the handler.
	begin *handlerv1.Begin
	// repeatable: running it once more does no harm.
	repeatable bool
	// asksMustBeShown: answers count only for questions that were shown.
	asksMustBeShown bool
	// render writes the result.
	render func(*handlerv1.Finish) ([]byte, error)
}

// invoke runs one attempt: it opens the request state if there is one, lets the
// handler run, and writes its result or the questions it must have answered.
func (s *Server) invoke(ctx context.Context, c *call, sink Sink, i invocation) ([]byte, error) {
	e, err := s.newExchange(ctx, c, sink, i)
	if err != nil {
		return nil, err
	}
	begin := i.begin
	begin.InvocationId = rand.Text()
	begin.ChainId = e.chain.GetChainId()
	begin.Attempt = e.chain.GetAttempts() + 1
	begin.State = map[string]string{}
	for _, entry := range e.chain.GetHandlerState() {
		begin.State[entry.GetKey()] = entry.GetValue()
	}
	begin.Principal = &handlerv1.Principal{Issuer: c.Principal.Issuer, Subject: c.Principal.Subject}
	begin.ClientInfo = c.meta.clientInfo
	begin.ClientCapabilities = c.meta.capabilities
	begin.WantsProgress = c.meta.progressToken != nil
	begin.LogLevel = c.meta.logLevel
	begin.Meta = c.meta.vendor
	if deadline, ok := ctx.Deadline(); ok {
		begin.Deadline = timestamppb.New(deadline)
	}
	c.invocation = &i
	i.describe(trace.SpanFromContext(ctx))

	finish, err := attempt.Run(ctx, i.entry.Handler.Client, begin, e)
	if i.repeatable && !e.heard && failure.Of(err).Reason == failure.HandlerUnavailable {
		// Another replica may answer. Nothing was heard of the first, but it may have
		// begun: only what may be repeated is.
		finish, err = attempt.Run(ctx, i.entry.Handler.Client, begin, e)
	}
	if ended, ok := errors.AsType[*inputRequiredError](err); ok {
		c.outcome = inputRequired
		return s.Renderer.InputRequired(ended.requests, ended.token)
	}
	if err != nil {
		return nil, handlerFailure(i.entry, err)
	}
	if failed := finish.GetError(); failed != nil {
		return nil, handlerError(i.target, failed)
	}
	result, err := i.render(finish)
	if err != nil {
		return nil, failure.New(failure.HandlerMalformed, fmt.Errorf("handler %q: %w", i.entry.Handler.Name, err))
	}
	return result, nil
}

// handlerFailure adds the handler's name to the cause of a failure.
func handlerFailure(entry *catalog.Entry, err error) error {
	e := failure.Of(err)
	if e.Cause != nil {
		named := *e
		named.Cause = fmt.Errorf("handler %q: %w", entry.Handler.Name, e.Cause)
		return &named
	}
	return e
}

// newExchange opens the request state, or begins a chain where there is none.
func (s *Server) newExchange(ctx context.Context, c *call, sink Sink, i invocation) (*exchange, error) {
	responses, err := c.responses()
	if err != nil {
		return nil, err
	}
	e := &exchange{
		server: s, call: c, sink: sink, target: i.target, responses: responses,
		recorded: map[string][]byte{},
		asked:    map[string]*question.Question{},
	}
	token, sent, err := c.token()
	if err != nil {
		return nil, err
	}
	if !sent {
		if i.asksMustBeShown {
			for range e.responses {
				s.Metrics.AnswerDropped(telemetry.QuestionNotShown)
			}
			e.responses = nil
		}
		now := s.Now()
		e.chain = &sealv1.RequestState{
			ChainId:        rand.Text(),
			ChainStartedMs: now.UnixMilli(),
			ChainExpiresMs: now.Add(s.ChainLifetime).UnixMilli(),
		}
	} else {
		binding, err := e.binding()
		if err != nil {
			return nil, err
		}
		if e.chain, err = s.Sealer.Open(ctx, token, binding); err != nil {
			return nil, err
		}
		e.shown = map[string][]byte{}
		for _, asked := range e.chain.GetQuestions() {
			e.shown[asked.GetKey()] = asked.GetDigest()
		}
		for _, answer := range e.chain.GetAnswers() {
			e.recorded[answer.GetKey()] = answer.GetResponse()
		}
	}
	e.chain.Handler, e.chain.CatalogRevision = i.entry.Handler.Name, i.entry.Revision
	return e, nil
}

// handlerError turns an error that a handler finished with into a failure.
func handlerError(target string, failed *handlerv1.Error) error {
	e := &failure.Error{Reason: failure.HandlerError, Message: failed.GetMessage(), Data: failed.GetData()}
	if len(e.Data) > 0 && !jsonrpc.Valid(e.Data, 0) {
		return failure.New(failure.HandlerMalformed, errors.New("the data of an error is not strict JSON"))
	}
	switch failed.GetKind() {
	case handlerv1.ErrorKind_ERROR_KIND_INVALID_PARAMS:
		e.Code = jsonrpc.CodeInvalidParams
	case handlerv1.ErrorKind_ERROR_KIND_RESOURCE_NOT_FOUND:
		return resourceNotFound(target, failed.GetMessage())
	case handlerv1.ErrorKind_ERROR_KIND_APPLICATION:
		e.Code = int(failed.GetApplicationCode())
		if e.Code == 0 || e.Code >= -32768 && e.Code <= -32000 {
			return failure.New(failure.HandlerMalformed, fmt.Errorf("the application code %d is not one that a handler may use", e.Code))
		}
	case handlerv1.ErrorKind_ERROR_KIND_UNAVAILABLE:
		e.Reason = failure.HandlerUnavailable
	case handlerv1.ErrorKind_ERROR_KIND_UNSPECIFIED, handlerv1.ErrorKind_ERROR_KIND_INTERNAL:
	}
	return e
}
