package handler

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	"github.com/countersign-mcp/countersign/services/handlers/go/internal/fault"
)

// Invoke implements the contract's Invoke: it runs one attempt.
//
// A stream that is cut at an ask ends with CANCELED. A function that returned a
// result although an ask had ended its attempt ends with FAILED_PRECONDITION, which
// an interceptor can count; the result goes nowhere either way.
func (s *Server) Invoke(stream grpc.BidiStreamingServer[handlerv1.InvokeRequest, handlerv1.InvokeResponse]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	begin := first.GetBegin()
	if begin == nil {
		return status.Error(codes.InvalidArgument, "the first message of a stream must be Begin")
	}
	attempt := newAttempt(stream, begin, s.logger)
	defer attempt.cancel()
	go attempt.receive()

	finish, err := s.run(&Context{Context: attempt.ctx, attempt: attempt})
	if over := attempt.over(); over != nil {
		return attempt.unwound(err)
	}
	if err != nil {
		finish = attempt.failure(err)
	}
	err = attempt.send(&handlerv1.InvokeResponse{Message: &handlerv1.InvokeResponse_Finish{Finish: finish}})
	if errors.Is(err, ErrAttemptEnded) {
		return status.Error(codes.Canceled, ErrAttemptEnded.Error())
	}
	if err != nil {
		attempt.logger.Error("a result cannot be sent", "error", err)
	}
	return err
}

// unwound ends a stream whose attempt is over.
func (a *attempt) unwound(err error) error {
	if err == nil && a.carriedAway() {
		a.logger.Error("a function returned a result although an ask had ended its attempt: " +
			"it must return the error of the ask")
		return status.Error(codes.FailedPrecondition, "a function went on after an ask had ended its attempt")
	}
	return status.Error(codes.Canceled, ErrAttemptEnded.Error())
}

// run calls the function that the request is for.
func (s *Server) run(ctx *Context) (finish *handlerv1.Finish, err error) {
	defer func() {
		if value := recover(); value != nil {
			logPanic(ctx.attempt.logger, value)
			fault.Report(ctx, fmt.Errorf("the function panicked: %v\n%s", value, debug.Stack()))
			finish, err = nil, internalError(nil)
		}
	}()
	switch request := ctx.attempt.begin.GetRequest().(type) {
	case *handlerv1.Begin_CallTool:
		return s.callTool(ctx, request.CallTool)
	case *handlerv1.Begin_GetPrompt:
		return s.getPrompt(ctx, request.GetPrompt)
	case *handlerv1.Begin_ReadResource:
		return s.readResource(ctx, request.ReadResource)
	default:
		return nil, InvalidParams("the request is of a kind that this service does not know")
	}
}

func (s *Server) callTool(ctx *Context, request *handlerv1.CallTool) (*handlerv1.Finish, error) {
	entry, found := s.tools.Load(request.GetName())
	if !found {
		return nil, InvalidParams("there is no tool %q", request.GetName())
	}
	result, err := entry.(*toolEntry).call(ctx, request.GetArguments())
	if err != nil {
		return nil, err
	}
	return &handlerv1.Finish{Outcome: &handlerv1.Finish_CallTool{CallTool: result}}, nil
}

func (s *Server) getPrompt(ctx *Context, request *handlerv1.GetPrompt) (*handlerv1.Finish, error) {
	loaded, found := s.prompts.Load(request.GetName())
	if !found {
		return nil, InvalidParams("there is no prompt %q", request.GetName())
	}
	entry := loaded.(*promptEntry)
	messages, err := entry.render(ctx, request.GetArguments())
	if err != nil {
		return nil, err
	}
	result := &handlerv1.GetPromptResult{Description: entry.message.GetDescription()}
	for _, message := range messages {
		result.Messages = append(result.Messages, message.message)
	}
	return &handlerv1.Finish{Outcome: &handlerv1.Finish_GetPrompt{GetPrompt: result}}, nil
}

func (s *Server) readResource(ctx *Context, request *handlerv1.ReadResource) (*handlerv1.Finish, error) {
	var read func() (*ReadResult, error)
	if request.GetUriTemplate() == "" {
		if entry, found := s.resources.Load(request.GetUri()); found {
			read = func() (*ReadResult, error) { return entry.(*resourceEntry).read(ctx) }
		}
	} else if entry, found := s.templates.Load(request.GetUriTemplate()); found {
		read = func() (*ReadResult, error) { return entry.(*templateEntry).read(ctx, request.GetUri()) }
	}
	if read == nil {
		return nil, NotFound()
	}
	result, err := read()
	if err != nil {
		return nil, err
	}
	message, err := result.message(request.GetUri())
	if err != nil {
		return nil, err
	}
	return &handlerv1.Finish{Outcome: &handlerv1.Finish_ReadResource{ReadResource: message}}, nil
}

// failure turns what a function returned into what the client reads.
func (a *attempt) failure(err error) *handlerv1.Finish {
	protocol, isProtocol := errors.AsType[*Error](err)
	refused, isRefused := errors.AsType[*AskRefusedError](err)
	_, isUsage := errors.AsType[*UsageError](err)
	switch {
	case isProtocol:
	case isUsage:
		protocol = internalError(nil)
	case isRefused:
		protocol = internalError(refused)
		protocol.message = refused.Error()
	case a.begin.GetCallTool() != nil:
		return &handlerv1.Finish{Outcome: &handlerv1.Finish_CallTool{CallTool: failed(err.Error())}}
	default:
		protocol = internalError(err)
	}
	if protocol.cause != nil {
		a.logger.Error("a function failed", "error", protocol.cause)
		if !isRefused { // a refusal is the edge's doing
			fault.Report(a.ctx, protocol.cause)
		}
	}
	return &handlerv1.Finish{Outcome: &handlerv1.Finish_Error{Error: protocol.proto()}}
}

// logPanic logs where a function panicked. The value is logged only where it is the
// runtime's: any other may hold an argument or an answer.
func logPanic(logger *slog.Logger, value any) {
	description := fmt.Sprintf("a %T", value)
	if failure, isRuntime := value.(runtime.Error); isRuntime {
		description = failure.Error()
	}
	logger.Error("a function panicked", "panic", description, "stack", string(debug.Stack()))
}

// targetOf names what a request is for, in logs. It leaves out URIs, which may hold
// an argument.
func targetOf(begin *handlerv1.Begin) string {
	switch request := begin.GetRequest().(type) {
	case *handlerv1.Begin_CallTool:
		return "tool " + request.CallTool.GetName()
	case *handlerv1.Begin_GetPrompt:
		return "prompt " + request.GetPrompt.GetName()
	case *handlerv1.Begin_ReadResource:
		return "resource " + request.ReadResource.GetUriTemplate()
	default:
		return "unknown"
	}
}
