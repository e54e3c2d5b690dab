package handler

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"sync"

	"google.golang.org/grpc"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	"github.com/countersign-mcp/countersign/services/handlers/go/internal/fault"
)

// attempt is the kit's side of one Invoke stream.
type attempt struct {
	begin  *handlerv1.Begin
	stream grpc.BidiStreamingServer[handlerv1.InvokeRequest, handlerv1.InvokeResponse]
	logger *slog.Logger
	cancel context.CancelFunc
	ctx    context.Context //nolint:containedctx // an attempt is what its context ends

	// incoming carries what the edge sends after Begin. It is closed when the edge
	// has closed its side of the stream.
	incoming chan *handlerv1.InvokeRequest

	sending sync.Mutex // held while a message is sent; a stream takes one sender
	asking  sync.Mutex // held for the whole of an ask

	mutex     sync.Mutex // guards what follows
	carried   bool       // an ask was carried away
	state     map[string]string
	keys      map[string]bool
	ordinals  map[string]int
	onceLocks map[string]*sync.Mutex
}

func newAttempt(
	stream grpc.BidiStreamingServer[handlerv1.InvokeRequest, handlerv1.InvokeResponse],
	begin *handlerv1.Begin, logger *slog.Logger,
) *attempt {
	ctx, cancel := context.WithCancel(stream.Context())
	state := maps.Clone(begin.GetState())
	if state == nil {
		state = make(map[string]string)
	}
	return &attempt{
		begin:     begin,
		stream:    stream,
		logger:    logger.With("target", targetOf(begin), "invocation", begin.GetInvocationId()),
		ctx:       ctx,
		cancel:    cancel,
		incoming:  make(chan *handlerv1.InvokeRequest),
		state:     state,
		keys:      make(map[string]bool),
		ordinals:  make(map[string]int),
		onceLocks: make(map[string]*sync.Mutex),
	}
}

// receive passes on what the edge sends until the stream or the attempt ends.
func (a *attempt) receive() {
	defer close(a.incoming)
	for {
		request, err := a.stream.Recv()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			a.cancel()
			return
		}
		select {
		case a.incoming <- request:
		case <-a.ctx.Done():
			return
		}
	}
}

// over returns ErrAttemptEnded once nothing the function does counts any more.
func (a *attempt) over() error {
	if a.ctx.Err() != nil {
		return ErrAttemptEnded
	}
	return nil
}

// misused makes a mistake of the handler's author known, whatever the function does
// with the error.
func (a *attempt) misused(cause error) error {
	a.logger.Error("a function misuses the kit", "error", cause)
	fault.Report(a.ctx, cause)
	return &UsageError{cause}
}

// carriedAway reports whether the attempt ended at an ask.
func (a *attempt) carriedAway() bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.carried
}

func (a *attempt) send(response *handlerv1.InvokeResponse) error {
	a.sending.Lock()
	defer a.sending.Unlock()
	if err := a.over(); err != nil {
		return err
	}
	if err := a.stream.Send(response); err != nil {
		if a.stream.Context().Err() != nil || errors.Is(err, io.EOF) {
			a.cancel()
			return ErrAttemptEnded
		}
		return fmt.Errorf("send to the edge: %w", err)
	}
	return nil
}

// exchange puts questions to the client and waits for the answers, in the order
// of the questions.
func (a *attempt) exchange(questions []*handlerv1.Question) ([]*handlerv1.Answer, error) {
	a.asking.Lock()
	defer a.asking.Unlock()
	if err := a.over(); err != nil {
		return nil, err
	}
	a.mutex.Lock()
	state := maps.Clone(a.state)
	a.mutex.Unlock()
	err := a.send(&handlerv1.InvokeResponse{Message: &handlerv1.InvokeResponse_Ask{
		Ask: &handlerv1.Ask{Questions: questions, State: state},
	}})
	if err != nil {
		return nil, err
	}
	select {
	case request, open := <-a.incoming:
		if !open {
			return nil, a.carryAway()
		}
		return readAnswers(request, questions)
	case <-a.ctx.Done():
		return nil, a.carryAway()
	}
}

// carryAway ends the attempt at an ask.
func (a *attempt) carryAway() error {
	a.mutex.Lock()
	a.carried = true
	a.mutex.Unlock()
	a.cancel()
	return ErrAttemptEnded
}

func readAnswers(request *handlerv1.InvokeRequest, questions []*handlerv1.Question) ([]*handlerv1.Answer, error) {
	if refused := request.GetAskRefused(); refused != nil {
		return nil, &AskRefusedError{
			Reason: AskRefusedReason(refused.GetReason()), Message: refused.GetMessage(),
		}
	}
	answers := request.GetAnswers().GetAnswers()
	if len(answers) != len(questions) {
		return nil, fmt.Errorf("the edge sent %d answers to %d questions", len(answers), len(questions))
	}
	for i, answer := range answers {
		if answer.GetKey() != questions[i].GetKey() {
			return nil, fmt.Errorf("the edge sent an answer to %q where %q was asked",
				answer.GetKey(), questions[i].GetKey())
		}
	}
	return answers, nil
}
