// Package rounds carries one request through its rounds: it sends the request,
// has what the server asks answered, and sends it again with the answers, until
// the server has a result.
//
// The mechanism is the one of the revision (basic/patterns/mrtr). A retry is a
// request of its own with a new id. It holds the original parameters, the answers
// of this round alone, and the requestState of this round exactly as it came; a
// round that brought none is answered without one. An input_required that asks
// nothing is a server that wants to be called again, and gets a pause that grows.
//
// The limit. A server that never stops asking is given up on after a number of
// rounds. What was answered by then is lost to this side; what the server did
// with it is not known here.
package rounds

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign-mcp/countersign/client/ask"
	"github.com/countersign-mcp/countersign/client/wire"
)

// The pauses before a server that asked nothing is called again.
const (
	firstPause   = 250 * time.Millisecond
	longestPause = 4 * time.Second
)

// Caller sends one request. [wire.Client] does.
type Caller interface {
	Call(ctx context.Context, request wire.Request) (wire.Result, error)
}

// Answerer answers the asks of one round, each under its key.
type Answerer interface {
	Answer(ctx context.Context, asks []ask.Ask) (map[string]jsontext.Value, error)
}

// Loop carries requests through their rounds.
type Loop struct {
	// Caller sends them.
	Caller Caller
	// Answerer answers what is asked.
	Answerer Answerer
	// MaxRounds is how many rounds are answered before giving up.
	MaxRounds int
	// Sleep waits, or returns early with the context's error.
	Sleep func(ctx context.Context, wait time.Duration) error
}

// TooManyRoundsError says that a server went on asking.
type TooManyRoundsError struct {
	// Rounds is how many rounds were answered.
	Rounds int
}

// Error says how many rounds were answered.
func (e *TooManyRoundsError) Error() string {
	return fmt.Sprintf("gave up: after %d answered rounds the server still asks for input", e.Rounds)
}

// Run sends the request and returns its final result.
func (l *Loop) Run(ctx context.Context, request wire.Request) (jsontext.Value, error) {
	params := request.Params
	for round := 1; ; round++ {
		result, err := l.Caller.Call(ctx, request)
		if err != nil {
			return nil, err
		}
		if !result.InputRequired {
			return result.JSON, nil
		}
		if round > l.MaxRounds {
			return nil, &TooManyRoundsError{Rounds: l.MaxRounds}
		}
		added, err := l.answer(ctx, result.JSON, round)
		if err != nil {
			return nil, err
		}
		request.Params = maps.Clone(params)
		if request.Params == nil {
			request.Params = map[string]jsontext.Value{}
		}
		maps.Copy(request.Params, added)
	}
}

// answer returns the members that a retry adds to the original parameters.
func (l *Loop) answer(ctx context.Context, text jsontext.Value, round int) (map[string]jsontext.Value, error) {
	var required struct {
		InputRequests jsontext.Value `json:"inputRequests"`
		RequestState  jsontext.Value `json:"requestState"`
	}
	if err := json.Unmarshal(text, &required); err != nil {
		return nil, fmt.Errorf("read what the server asks: %w", err)
	}
	added := map[string]jsontext.Value{}
	switch required.RequestState.Kind() {
	case '"':
		added["requestState"] = required.RequestState
	case 0, 'n':
	default:
		return nil, errors.New("the server sent a requestState that is not a string")
	}
	var asks []ask.Ask
	if kind := required.InputRequests.Kind(); kind != 0 && kind != 'n' {
		var err error
		if asks, err = ask.Parse(required.InputRequests); err != nil {
			return nil, err
		}
	}
	if len(asks) == 0 {
		if len(added) == 0 {
			return nil, errors.New("the server asks for input without saying which")
		}
		return added, l.Sleep(ctx, pause(round))
	}
	answers, err := l.Answerer.Answer(ctx, asks)
	if err != nil {
		return nil, err
	}
	responses, err := json.Marshal(answers, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("encode the answers: %w", err)
	}
	added["inputResponses"] = responses
	return added, nil
}

// pause is how long a server that asked nothing is left alone.
func pause(round int) time.Duration {
	wait := firstPause
	for ; round > 1 && wait < longestPause; round-- {
		wait *= 2
	}
	return min(wait, longestPause)
}
