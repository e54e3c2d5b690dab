package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/countersign-mcp/countersign/test/client"
)

// requestTimeout bounds one request.
const requestTimeout = time.Minute

// The kinds of replies.
const (
	kindComplete      = "a result"
	kindInputRequired = "a question"
	kindToolFailure   = "a failed tool"
	kindError         = "an error"
)

// outcome is a reply as a judge sees it.
type outcome struct {
	kind   string
	status int
	// text is the error or the result as it came.
	text string
	// code and message are those of an error.
	code    int
	message string
	// questions are those of a question.
	questions map[string]json.RawMessage
	// state is the request state that came with a question.
	state string
}

func (o outcome) String() string {
	const most = 200
	text := o.text
	if len(text) > most {
		text = text[:most] + "…"
	}
	return fmt.Sprintf("%s with HTTP status %d: %s", o.kind, o.status, text)
}

// held is a request state in the hands of a client.
type held struct {
	state, answers string
	questions      map[string]json.RawMessage
}

// obtain sends a request and returns the request state it is asked with.
func (s *session) obtain(ctx context.Context, endpoint Endpoint, request Request) (held, error) {
	reply, err := s.send(ctx, endpoint, request, request.members())
	if err != nil {
		return held{}, err
	}
	if reply.kind != kindInputRequired {
		return held{}, fmt.Errorf("%s %q does not ask: it was answered with %s", request.method(), request.name(), reply)
	}
	if reply.state == "" {
		return held{}, fmt.Errorf("%s %q asks without a request state", request.method(), request.name())
	}
	answers := request.Answers
	if answers == "" {
		answers, err = answersTo(reply.questions)
	}
	return held{state: reply.state, answers: answers, questions: reply.questions}, err
}

// present sends a request with a request state, the text of a JSON value, and the
// answers that complete the target's request.
func (s *session) present(ctx context.Context, request Request, state string) (outcome, error) {
	return s.presentText(ctx, request, append(request.members(), s.round(state)...))
}

// round are the members of the params that belong to the round.
func (s *session) round(state string) []string {
	return []string{`"inputResponses":` + s.answers, `"requestState":` + state}
}

// presentText is present with the members of the params.
func (s *session) presentText(ctx context.Context, request Request, members []string) (outcome, error) {
	s.presented++
	return s.send(ctx, s.target.Endpoint, request, members)
}

// refuse presents a request state that must be refused like every other one.
func (s *session) refuse(ctx context.Context, request Request, state string) error {
	reply, err := s.present(ctx, request, state)
	if err != nil {
		return err
	}
	return s.checkRefusal(reply)
}

// checkRefusal checks that a reply is a refusal and looks like all others.
func (s *session) checkRefusal(reply outcome) error {
	wanted, kind := s.target.Refusal, kindError
	if wanted.As == asToolFailure {
		kind = kindToolFailure
	}
	switch {
	case reply.kind != kind:
		return fmt.Errorf("it was not refused: the reply is %s", reply)
	case wanted.Code != 0 && reply.code != wanted.Code, wanted.Message != "" && reply.message != wanted.Message:
		return fmt.Errorf("it was refused in another way than the target's: the reply is %s", reply)
	}
	s.counted++
	if s.first == nil {
		s.first, s.firstCase = &reply, s.current
	}
	if !wanted.MayDiffer && (reply.status != s.first.status || reply.text != s.first.text) {
		return fmt.Errorf("the refusal can be told from that of case %q: one is %s, the other is %s", s.firstCase, reply, s.first)
	}
	return nil
}

// accept presents a request state that must be accepted.
func (s *session) accept(ctx context.Context, request Request, state string) error {
	reply, err := s.present(ctx, request, state)
	if err != nil {
		return err
	}
	return s.checkAcceptance(reply)
}

func (s *session) checkAcceptance(reply outcome) error {
	if reply.kind != s.completed {
		return fmt.Errorf("it was not accepted: the reply is %s", reply)
	}
	return nil
}

// variant is a variation of a request state.
type variant struct {
	// what says how it was made.
	what string
	// state is the text of a JSON value.
	state string
}

// refuseAll presents variations that must all be refused. The error counts those
// that were not and names the first.
func (s *session) refuseAll(ctx context.Context, variants []variant) error {
	var first error
	failures := 0
	for _, each := range variants {
		err := s.refuse(ctx, s.target.Request, each.state)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			failures++
			if first == nil {
				first = fmt.Errorf("%s: %w", each.what, err)
			}
		}
	}
	if failures > 1 {
		return fmt.Errorf("%d of %d variations; the first: %w", failures, len(variants), first)
	}
	return first
}

// send sends a request with the members of its params, as text.
func (s *session) send(ctx context.Context, endpoint Endpoint, request Request, members []string) (outcome, error) {
	return s.sendText(ctx, endpoint, request, strings.Join(members, ","), ",")
}

// sendText is send with the text of the members, and the text that separates them
// from the `_meta`.
func (s *session) sendText(ctx context.Context, endpoint Endpoint, request Request, members, separator string) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	c := s.clientOf(endpoint)
	meta, err := json.Marshal(c.Meta())
	if err != nil {
		return outcome{}, fmt.Errorf("encode _meta: %w", err)
	}
	reply, err := c.SendText(ctx, request.method(), request.name(), "{"+members+separator+`"_meta":`+string(meta)+"}")
	if err != nil {
		return outcome{}, fmt.Errorf("there is no JSON-RPC reply: %w", err)
	}
	return outcomeOf(reply)
}

func outcomeOf(reply *client.Reply) (outcome, error) {
	var raw struct {
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(reply.Message, &raw); err != nil {
		return outcome{}, fmt.Errorf("read the reply: %w", err)
	}
	judged := outcome{status: reply.Status, text: string(raw.Result)}
	switch {
	case reply.Error != nil:
		judged.kind, judged.text = kindError, string(raw.Error)
		judged.code, judged.message = reply.Error.Code, reply.Error.Message
	case reply.Result.Type == "input_required":
		judged.kind, judged.questions, judged.state = kindInputRequired, reply.Result.InputRequests, reply.Result.RequestState
	case reply.Result.IsError:
		judged.kind = kindToolFailure
	default:
		judged.kind = kindComplete
	}
	return judged, nil
}

// clientOf returns the client of an endpoint.
func (s *session) clientOf(endpoint Endpoint) *client.Client {
	header := make(http.Header, len(endpoint.Headers))
	for name, value := range endpoint.Headers {
		header.Set(name, value)
	}
	i := slices.IndexFunc(s.clients, func(each *client.Client) bool { return each.URL == endpoint.URL && sameHeader(each.Header, header) })
	if i >= 0 {
		return s.clients[i]
	}
	c := client.New(endpoint.URL)
	c.Header = header
	c.Capabilities = map[string]any{
		"elicitation": map[string]any{"form": map[string]any{}, "url": map[string]any{}},
		"sampling":    map[string]any{"tools": map[string]any{}, "context": map[string]any{}},
		"roots":       map[string]any{},
	}
	s.clients = append(s.clients, c)
	return c
}

func sameHeader(one, other http.Header) bool {
	if len(one) != len(other) {
		return false
	}
	for name := range one {
		if one.Get(name) != other.Get(name) {
			return false
		}
	}
	return true
}

// do carries out an action; none is nothing to do.
func (a *Action) do(ctx context.Context) error {
	switch {
	case a == nil:
		return nil
	case len(a.Command) > 0 && a.Post == "":
		output, err := exec.CommandContext(ctx, a.Command[0], a.Command[1:]...).CombinedOutput() //nolint:gosec // the target's description names the program
		if err != nil {
			return fmt.Errorf("run %q: %w: %s", a.Command[0], err, output)
		}
		return nil
	case len(a.Command) == 0 && a.Post != "":
		return post(ctx, a.Post)
	default:
		return errors.New("an action needs either a command or a URL to post to")
	}
}

func post(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
	if err != nil {
		return fmt.Errorf("post to %q: %w", url, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("post to %q: %w", url, err)
	}
	if err := response.Body.Close(); err != nil {
		return fmt.Errorf("post to %q: %w", url, err)
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("post to %q: %s", url, response.Status)
	}
	return nil
}
