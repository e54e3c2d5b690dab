package rounds_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign-mcp/countersign/client/ask"
	"github.com/countersign-mcp/countersign/client/rounds"
	"github.com/countersign-mcp/countersign/client/wire"
)

// scriptedServer answers calls in turn and keeps their parameters.
type scriptedServer struct {
	replies []string
	params  []string
}

// Call answers with the next reply; the last one is repeated.
func (s *scriptedServer) Call(_ context.Context, request wire.Request) (wire.Result, error) {
	text, err := json.Marshal(request.Params, json.Deterministic(true))
	if err != nil {
		return wire.Result{}, err
	}
	s.params = append(s.params, string(text))
	reply := s.replies[min(len(s.params), len(s.replies))-1]
	return wire.Result{JSON: jsontext.Value(reply), InputRequired: strings.Contains(reply, "input_required")}, nil
}

// acceptor accepts every ask.
type acceptor struct{ asked int }

// Answer accepts.
func (a *acceptor) Answer(_ context.Context, asks []ask.Ask) (map[string]jsontext.Value, error) {
	a.asked++
	answers := map[string]jsontext.Value{}
	for _, asked := range asks {
		answers[asked.Key] = jsontext.Value(`{"action":"accept"}`)
	}
	return answers, nil
}

// run carries a call through the replies.
func run(t *testing.T, replies ...string) (*scriptedServer, *acceptor, []time.Duration, jsontext.Value, error) {
	t.Helper()
	server, person, waits := &scriptedServer{replies: replies}, &acceptor{}, []time.Duration{}
	loop := rounds.Loop{Caller: server, Answerer: person, MaxRounds: 3, Sleep: func(_ context.Context, wait time.Duration) error {
		waits = append(waits, wait)
		return nil
	}}
	result, err := loop.Run(t.Context(), wire.Request{Method: "tools/call", Params: map[string]jsontext.Value{"name": jsontext.Value(`"t"`)}})
	return server, person, waits, result, err
}

// asking is an input_required result with one ask and more members.
func asking(key, more string) string {
	return `{"resultType":"input_required","inputRequests":{"` + key +
		`":{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://example.com"}}}` + more + `}`
}

func TestARetryCarriesThisRoundsAnswersAndState(t *testing.T) {
	server, _, _, result, err := run(t, asking("a", `,"requestState":"one\u0041\/\u00e9"`), asking("b", `,"requestState":"two"`), `{"done":true}`)
	if err != nil {
		t.Fatal(err)
	}
	if string(result) != `{"done":true}` {
		t.Errorf("result %s", result)
	}
	for i, want := range []string{
		`{"name":"t"}`,
		`{"inputResponses":{"a":{"action":"accept"}},"name":"t","requestState":"oneA/é"}`,
		`{"inputResponses":{"b":{"action":"accept"}},"name":"t","requestState":"two"}`,
	} {
		if server.params[i] != want {
			t.Errorf("request %d has %s, want %s", i+1, server.params[i], want)
		}
	}
}

func TestAStateOfAnEarlierRoundIsNotSentAgain(t *testing.T) {
	for name, without := range map[string]string{"absent": "", "null": `,"requestState":null`} {
		server, _, _, _, err := run(t, asking("a", `,"requestState":"one"`), asking("b", without), `{}`)
		if err != nil {
			t.Fatal(err)
		}
		if want := `{"inputResponses":{"b":{"action":"accept"}},"name":"t"}`; server.params[2] != want {
			t.Errorf("%s: the last request has %s, want %s", name, server.params[2], want)
		}
	}
}

func TestAServerThatAsksNothingIsCalledAgainAfterAPause(t *testing.T) {
	server, person, waits, _, err := run(t, `{"resultType":"input_required","requestState":"s"}`,
		`{"resultType":"input_required","requestState":"s","inputRequests":{}}`, `{}`)
	if err != nil {
		t.Fatal(err)
	}
	if server.params[1] != `{"name":"t","requestState":"s"}` || person.asked != 0 {
		t.Errorf("the retry has %s, and %d rounds were answered", server.params[1], person.asked)
	}
	if len(waits) != 2 || waits[0] <= 0 || waits[1] <= waits[0] {
		t.Errorf("pauses %v do not grow", waits)
	}
}

func TestAServerThatNeverStopsAskingIsGivenUpOn(t *testing.T) {
	server, person, _, _, err := run(t, asking("a", `,"requestState":"s"`))
	var tooMany *rounds.TooManyRoundsError
	if !errors.As(err, &tooMany) || tooMany.Rounds != 3 {
		t.Fatalf("got %v, want to give up after 3 rounds", err)
	}
	if len(server.params) != 4 || person.asked != 3 {
		t.Errorf("%d requests and %d answered rounds, want 4 and 3", len(server.params), person.asked)
	}
}

func TestAnUnreadableInputRequiredIsAnError(t *testing.T) {
	for name, reply := range map[string]string{
		"nothing to do":            `{"resultType":"input_required"}`,
		"a state that is a number": asking("a", `,"requestState":1`),
		"an unknown ask":           `{"resultType":"input_required","inputRequests":{"a":{"method":"x"}},"requestState":"s"}`,
		"asks in a list":           `{"resultType":"input_required","inputRequests":[],"requestState":"s"}`,
	} {
		server, _, _, _, err := run(t, reply, `{}`)
		if err == nil || len(server.params) != 1 {
			t.Errorf("%s: got %v after %d requests", name, err, len(server.params))
		}
	}
}
