package modern

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	sealv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/seal/v1"
	"github.com/countersign-mcp/countersign/services/mcpedge/attempt"
	"github.com/countersign-mcp/countersign/services/mcpedge/canon"
	"github.com/countersign-mcp/countersign/services/mcpedge/failure"
	"github.com/countersign-mcp/countersign/services/mcpedge/question"
	"github.com/countersign-mcp/countersign/services/mcpedge/render"
	"github.com/countersign-mcp/countersign/services/mcpedge/state"
	"github.com/countersign-mcp/countersign/services/mcpedge/telemetry"
)

// exchange is the client's side of one attempt on a modern revision: what it has
// answered so far, and what it must be asked.
//
// An answer counts only for the question it was given to. Answers of earlier
// rounds ride in the request state, each with the digest of its question; answers
// that come with this request are held against the digests of the questions that
// the request state says were asked. When the handler asks something else under
// the same key, because a new version of it was deployed between two rounds, the
// answer is dropped and the question is asked.
//
// A client may send answers without a request state: it has kept them, or guesses
// what will be asked. They are input like the arguments and count by key alone,
// unless the tool says that its questions must have been shown.
type exchange struct {
	server *Server
	call   *call
	sink   Sink
	// target is what the request is about: a name or a URI.
	target string
	// chain is what the request state holds, or what a first one would.
	chain *sealv1.RequestState
	// shown are the digests of the questions that were asked, by key; nil where
	// there was no request state.
	shown map[string][]byte
	// recorded are the answers of earlier rounds, by key.
	recorded map[string][]byte
	// responses are the answers that came with this request, by key.
	responses map[string][]byte
	// asked are the questions of this attempt that were answered, by key.
	asked map[string]*question.Question
	// heard: the handler has said something.
	heard bool
	// lastProgress is the latest progress passed on.
	lastProgress *float64
}

// inputRequiredError ends an attempt: the client must be asked.
type inputRequiredError struct {
	requests []render.InputRequest
	token    string
}

func (*inputRequiredError) Error() string { return "input required" }

// Ask answers a handler's questions with what the client has answered, or ends the
// attempt with those it must be asked.
func (e *exchange) Ask(ctx context.Context, ask *handlerv1.Ask) ([]*handlerv1.Answer, error) {
	e.heard = true
	questions, err := e.read(ask)
	if err != nil {
		return nil, e.refused(err)
	}
	var needs question.Capabilities
	for _, q := range questions {
		needs = needs.And(q.Needs)
	}
	if missing := needs.Missing(e.call.meta.capabilities); missing != (question.Capabilities{}) {
		return nil, &failure.Error{
			Reason: failure.MissingCapability,
			Data:   append(append([]byte(`{"requiredCapabilities":`), missing.JSON()...), '}'),
		}
	}
	answers := make([]*handlerv1.Answer, len(questions))
	var open []*question.Question
	for i, q := range questions {
		answer, err := e.answer(q)
		if err != nil {
			return nil, err
		}
		if answer == nil {
			open = append(open, q)
			continue
		}
		answers[i] = answer
		e.asked[q.Key] = q
	}
	if len(open) == 0 {
		return answers, nil
	}
	return nil, e.end(ctx, open, ask.GetState())
}

// read checks the questions of an ask. The error is a *attempt.Refusal.
func (e *exchange) read(ask *handlerv1.Ask) ([]*question.Question, error) {
	const invalid = handlerv1.AskRefusedReason_ASK_REFUSED_REASON_INVALID_QUESTION
	if len(ask.GetQuestions()) == 0 {
		return nil, attempt.Refuse(invalid, "the ask has no question")
	}
	questions := make([]*question.Question, len(ask.GetQuestions()))
	keys := map[string]bool{}
	for i, asked := range ask.GetQuestions() {
		q, err := question.New(asked)
		if err != nil {
			return nil, attempt.Refuse(invalid, "%v", err)
		}
		if earlier := e.asked[q.Key]; keys[q.Key] || earlier != nil && earlier.Digest != q.Digest {
			return nil, attempt.Refuse(invalid, "two questions have the key %q; name them apart", q.Key)
		}
		keys[q.Key] = true
		questions[i] = q
	}
	return questions, nil
}

// answer returns the client's answer to a question, or nil where it must be asked.
func (e *exchange) answer(q *question.Question) (*handlerv1.Answer, error) {
	if response, ok := e.recorded[q.Key]; ok {
		if bytes.Equal(e.shown[q.Key], q.Digest[:]) {
			return e.check(q, response)
		}
		e.server.Metrics.AnswerDropped(telemetry.QuestionChanged)
		delete(e.recorded, q.Key)
		return nil, nil //nolint:nilnil // no answer is what there is
	}
	response, ok := e.responses[q.Key]
	if !ok {
		return nil, nil //nolint:nilnil // no answer is what there is
	}
	if e.shown != nil {
		digest, wasShown := e.shown[q.Key]
		switch {
		case !wasShown:
			e.server.Metrics.AnswerDropped(telemetry.QuestionNotShown)
			return nil, nil //nolint:nilnil // no answer is what there is
		case !bytes.Equal(digest, q.Digest[:]):
			e.server.Metrics.AnswerDropped(telemetry.QuestionChanged)
			return nil, nil //nolint:nilnil // no answer is what there is
		}
	}
	answer, err := e.check(q, response)
	if err == nil {
		e.recorded[q.Key] = response
	}
	return answer, err
}

// check reads a response as the answer to a question.
func (e *exchange) check(q *question.Question, response []byte) (*handlerv1.Answer, error) {
	answer, err := q.Answer(response)
	if err != nil {
		return nil, failure.Newf(failure.InvalidAnswer, "the input response %q is not valid: %v", q.Key, err)
	}
	return answer, nil
}

// end seals what the next attempt must find and ends this one with the questions
// that are open.
func (e *exchange) end(ctx context.Context, open []*question.Question, handlerState map[string]string) error {
	next := &sealv1.RequestState{
		ChainId:         e.chain.GetChainId(),
		ChainStartedMs:  e.chain.GetChainStartedMs(),
		ChainExpiresMs:  e.chain.GetChainExpiresMs(),
		Round:           e.chain.GetRound() + 1,
		Attempts:        e.chain.GetAttempts() + 1,
		Handler:         e.chain.GetHandler(),
		CatalogRevision: e.chain.GetCatalogRevision(),
	}
	if most := e.server.Sealer.MaxRound(); next.GetRound() > most {
		return e.refused(attempt.Refuse(handlerv1.AskRefusedReason_ASK_REFUSED_REASON_TOO_MANY_ROUNDS,
			"the request has had %d rounds of questions, and no more are allowed", most))
	}
	for _, key := range slices.Sorted(maps.Keys(e.asked)) {
		next.Questions = append(next.Questions, &sealv1.AskedQuestion{Key: key, Digest: e.asked[key].Digest[:]})
		next.Answers = append(next.Answers, &sealv1.RecordedAnswer{Key: key, Response: e.recorded[key]})
	}
	ended := &inputRequiredError{}
	for _, q := range open {
		next.Questions = append(next.Questions, &sealv1.AskedQuestion{Key: q.Key, Digest: q.Digest[:]})
		ended.requests = append(ended.requests, render.InputRequest{Key: q.Key, Request: q.Request})
	}
	for _, key := range slices.Sorted(maps.Keys(handlerState)) {
		next.HandlerState = append(next.HandlerState, &sealv1.StateEntry{Key: key, Value: handlerState[key]})
	}
	binding, err := e.binding()
	if err != nil {
		return err
	}
	ended.token, err = e.server.Sealer.Seal(ctx, binding, next)
	switch {
	case errors.Is(err, state.ErrTooLarge):
		return e.refused(attempt.Refuse(handlerv1.AskRefusedReason_ASK_REFUSED_REASON_STATE_TOO_LARGE,
			"the state (%d bytes) with %d questions and %d answers does not fit into a request state of %d characters; keep less in the state",
			size(handlerState), len(next.GetQuestions()), len(next.GetAnswers()), e.server.Sealer.MaxTokenBytes()))
	case errors.Is(err, state.ErrChainExpired):
		return e.refused(attempt.Refuse(handlerv1.AskRefusedReason_ASK_REFUSED_REASON_CHAIN_EXPIRED,
			"the request began more than %v ago, so an answer could not be used", e.server.ChainLifetime))
	case err != nil:
		return err
	}
	for _, q := range open {
		e.server.Metrics.Asked(q.Kind)
	}
	e.noteUnused(ctx, open)
	return ended
}

// noteUnused counts and logs answers to questions that were shown and that this
// attempt did not ask again before it asked something else. The handler's author
// has to look: a question that is worded anew each time, with a clock or a random
// number in it, is asked for ever.
func (e *exchange) noteUnused(ctx context.Context, open []*question.Question) {
	askedNow := map[string]bool{}
	for _, q := range open {
		askedNow[q.Key] = true
	}
	unused := 0
	for key := range e.shown {
		_, recorded := e.recorded[key]
		_, responded := e.responses[key]
		if (recorded || responded) && e.asked[key] == nil && !askedNow[key] {
			unused++
			e.server.Metrics.AnswerDropped(telemetry.QuestionNotAskedAgain)
		}
	}
	if unused > 0 {
		e.server.Logger.LogAttrs(ctx, slog.LevelWarn, "answered questions were not asked again", append(e.call.invocation.logAttributes(), slog.Int("questions", unused))...)
	}
}

// binding is what the request state is bound to. It is made only where there is a
// request state to seal or open, because it reads all parameters.
func (e *exchange) binding() (state.Binding, error) {
	digest, err := canon.ParamsDigest(e.call.Message.Params)
	if err != nil {
		return state.Binding{}, failure.Newf(failure.InvalidParams, "the params are not valid: %v", err)
	}
	return state.Binding{Method: e.call.Message.Method, Target: e.target, Principal: e.call.Principal, ParamsDigest: digest}, nil
}

// size is how many bytes a handler's state has.
func size(handlerState map[string]string) int {
	total := 0
	for key, value := range handlerState {
		total += len(key) + len(value)
	}
	return total
}

// refused counts an ask that is refused to the handler.
func (e *exchange) refused(err error) error {
	if refusal, ok := errors.AsType[*attempt.Refusal](err); ok {
		e.server.Metrics.AskRefused(strings.ToLower(strings.TrimPrefix(refusal.Reason.String(), "ASK_REFUSED_REASON_")))
	}
	return err
}

// Progress passes progress on where the client wants it. MCP demands that it
// grows; a report that does not is dropped.
func (e *exchange) Progress(progress *handlerv1.Progress) error {
	e.heard = true
	if e.call.meta.progressToken == nil {
		return nil
	}
	if value := progress.GetProgress(); e.lastProgress != nil && value <= *e.lastProgress {
		e.server.Metrics.ProgressDropped()
		return nil
	}
	params, err := render.Progress(e.call.meta.progressToken, progress)
	if err != nil {
		return failure.New(failure.HandlerMalformed, err)
	}
	value := progress.GetProgress()
	e.lastProgress = &value
	return e.notify("notifications/progress", params)
}

// Log passes a log message on where the client wants one of its level.
func (e *exchange) Log(log *handlerv1.Log) error {
	e.heard = true
	level := logLevelName(log.GetLevel())
	if wanted := e.call.meta.logLevel; wanted == 0 || log.GetLevel() < wanted || level == "" {
		return nil
	}
	params, err := render.Log(level, log)
	if err != nil {
		return failure.New(failure.HandlerMalformed, err)
	}
	return e.notify("notifications/message", params)
}

func (e *exchange) notify(method string, params []byte) error {
	if err := e.sink.Notify(method, params); err != nil {
		return failure.New(failure.Cancelled, err)
	}
	return nil
}
