package handlertest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc"

	"github.com/countersign-mcp/countersign/services/handlers/go/internal/fault"
)

// Effect reports that something happened that must not happen twice for one request:
// a charge, a mail. Call it from the fakes that stand in for the outside world. It
// does nothing where the context is not of a handler that [Run] or [Check] runs.
func Effect(ctx context.Context, name string) {
	recorder, found := ctx.Value(recorderKey{}).(*recorder)
	if !found {
		return
	}
	recorder.effect(name, ctx.Err() != nil)
}

type recorderKey struct{}

// recorder sees an attempt from the inside.
type recorder struct {
	ended chan error // how each attempt's stream ended, on the handler's side

	mutex   sync.Mutex
	attempt int
	effects map[string]int // name → the attempt it happened on first
	wrong   []error
	faults  []error // why the kit gave up on the function
}

func newRecorder() *recorder {
	return &recorder{ended: make(chan error, 1), effects: make(map[string]int)}
}

func (r *recorder) begin(attempt int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.attempt = attempt
}

func (r *recorder) effect(name string, late bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if late {
		r.wrong = append(r.wrong, fmt.Errorf("the effect %q happened after its attempt had ended: "+
			"the function must return the error of the ask", name))
		return
	}
	first, happened := r.effects[name]
	if !happened {
		r.effects[name] = r.attempt
		return
	}
	if first != r.attempt {
		r.wrong = append(r.wrong, fmt.Errorf("the effect %q happened on attempt %d and again on attempt %d: "+
			"put it into Once, or after the last ask", name, first, r.attempt))
	}
}

func (r *recorder) violations() error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return errors.Join(r.wrong...)
}

// fault is called by the kit.
func (r *recorder) fault(cause error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.faults = append(r.faults, cause)
}

func (r *recorder) failure() error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if len(r.faults) == 0 {
		return nil
	}
	return fmt.Errorf("the handler has a fault: %w", errors.Join(r.faults...))
}

// intercept puts the recorder into the context of every stream and notes how the
// stream ended.
func (r *recorder) intercept(
	server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler,
) error {
	ctx := fault.WithReporter(context.WithValue(stream.Context(), recorderKey{}, r), r.fault)
	err := next(server, recordedStream{stream, ctx})
	if info.FullMethod == invokeMethod {
		r.ended <- err
	}
	return err
}

type recordedStream struct {
	grpc.ServerStream

	ctx context.Context //nolint:containedctx // it stands in for the stream's own
}

func (s recordedStream) Context() context.Context { return s.ctx }
