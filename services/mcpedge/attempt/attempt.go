// Package attempt runs one attempt of a handler over its gRPC stream.
//
// A handler reports progress, logs, puts questions and finishes. What a question
// means differs between protocol revisions: a legacy client is sent a request and
// the stream waits for its reply; a modern client gets the questions as the reply
// to its own request, and the stream is cut. Both are a Client here, and the loop
// that reads the stream is the same.
//
// The limit of an attempt is its context: when it ends, because the client went
// away or the time is up, the stream is cancelled and the handler unwinds. A
// handler that finishes and does not close its stream is given finishGrace; a
// message after Finish is a broken contract.
package attempt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	"github.com/countersign-mcp/countersign/services/mcpedge/failure"
)

// finishGrace is how long a handler may take to close its stream after Finish.
const finishGrace = time.Second

// Client is the other end of the conversation, as the revision has it.
type Client interface {
	// Progress passes progress on.
	Progress(progress *handlerv1.Progress) error
	// Log passes a log message on.
	Log(log *handlerv1.Log) error
	// Ask puts questions. It returns an answer to each, in order; or a *Refusal,
	// which the handler is told of and may survive; or any other error, which
	// ends the attempt.
	Ask(ctx context.Context, ask *handlerv1.Ask) ([]*handlerv1.Answer, error)
}

// Refusal is why questions cannot be put to the client.
type Refusal struct {
	// Reason is the kind of reason.
	Reason handlerv1.AskRefusedReason
	// Message is a sentence for the handler's author.
	Message string
}

// Error returns the message.
func (r *Refusal) Error() string { return r.Message }

// Refuse returns a Refusal with a sentence for the handler's author.
func Refuse(reason handlerv1.AskRefusedReason, format string, arguments ...any) *Refusal {
	return &Refusal{Reason: reason, Message: fmt.Sprintf(format, arguments...)}
}

// Run starts an attempt and follows it to its end. It returns what the handler
// finished with, or the error of the client's Ask, or a *failure.Error.
func Run(ctx context.Context, handler handlerv1.HandlerServiceClient, begin *handlerv1.Begin, client Client) (*handlerv1.Finish, error) {
	// Cancelling on return is what cuts the stream after an Ask.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := handler.Invoke(ctx)
	if err != nil {
		return nil, Failure(ctx, err)
	}
	if err := send(stream, &handlerv1.InvokeRequest{Message: &handlerv1.InvokeRequest_Begin{Begin: begin}}); err != nil {
		return nil, Failure(ctx, err)
	}
	for {
		response, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil, malformed("the end of the stream without Finish")
		}
		if err != nil {
			return nil, Failure(ctx, err)
		}
		switch message := response.GetMessage().(type) {
		case *handlerv1.InvokeResponse_Progress:
			err = client.Progress(message.Progress)
		case *handlerv1.InvokeResponse_Log:
			err = client.Log(message.Log)
		case *handlerv1.InvokeResponse_Ask:
			err = ask(ctx, stream, client, message.Ask)
		case *handlerv1.InvokeResponse_Finish:
			return message.Finish, awaitEnd(stream, cancel)
		default:
			err = malformed("a message of no known kind")
		}
		if err != nil {
			return nil, err
		}
	}
}

// ask puts questions to the client and sends the handler what came of it.
func ask(ctx context.Context, stream handlerv1.HandlerService_InvokeClient, client Client, ask *handlerv1.Ask) error {
	answers, err := client.Ask(ctx, ask)
	reply := &handlerv1.InvokeRequest{Message: &handlerv1.InvokeRequest_Answers{Answers: &handlerv1.Answers{Answers: answers}}}
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		reply.Message = &handlerv1.InvokeRequest_AskRefused{AskRefused: &handlerv1.AskRefused{Reason: refusal.Reason, Message: refusal.Message}}
	} else if err != nil {
		return err
	}
	if err := send(stream, reply); err != nil {
		return Failure(ctx, err)
	}
	return nil
}

// send sends a message. A stream that the handler has ended reports io.EOF here
// and its status only to Recv.
func send(stream handlerv1.HandlerService_InvokeClient, message *handlerv1.InvokeRequest) error {
	err := stream.Send(message)
	if !errors.Is(err, io.EOF) {
		return err
	}
	if _, err := stream.Recv(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return malformed("the end of the stream without Finish")
}

// awaitEnd waits until the handler has closed its stream after Finish.
func awaitEnd(stream handlerv1.HandlerService_InvokeClient, cancel context.CancelFunc) error {
	// The edge has nothing more to say: a handler that reads sees the end.
	if err := stream.CloseSend(); err != nil {
		return failure.New(failure.HandlerFailed, err)
	}
	timer := time.AfterFunc(finishGrace, cancel)
	defer timer.Stop()
	if _, err := stream.Recv(); err == nil {
		return malformed("a message after Finish")
	}
	// However the stream ended, the handler had finished.
	return nil
}

func malformed(what string) error {
	return failure.New(failure.HandlerMalformed, errors.New("the handler sent "+what))
}

// Failure names what the error of a gRPC call means for the request. ctx is the
// call's.
func Failure(ctx context.Context, err error) error {
	if e, ok := errors.AsType[*failure.Error](err); ok {
		return e
	}
	switch status.Code(err) {
	case codes.Unavailable:
		return failure.New(failure.HandlerUnavailable, said(err))
	case codes.DeadlineExceeded:
		return failure.New(failure.HandlerTimeout, said(err))
	case codes.ResourceExhausted:
		// gRPC's own words, and only they, are about the size of a message; anybody
		// else's are about a quota, which is there again later.
		if strings.Contains(status.Convert(err).Message(), "larger than max") {
			return failure.New(failure.HandlerTooLarge, said(err))
		}
		return failure.New(failure.HandlerUnavailable, said(err))
	case codes.Canceled:
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return failure.New(failure.HandlerTimeout, said(err))
		case ctx.Err() != nil:
			return failure.New(failure.Cancelled, said(err))
		}
	}
	return failure.New(failure.HandlerFailed, said(err))
}

// said is what the operator's log may have of a gRPC error. A handler's own words
// may quote an argument or an answer; those of this process's gRPC library about a
// connection may not.
func said(err error) error {
	message := status.Convert(err).Message()
	for _, ours := range []string{"connection error:", "name resolver error:", "larger than max"} {
		if strings.Contains(message, ours) {
			return err
		}
	}
	return fmt.Errorf("gRPC status %s", status.Code(err))
}
