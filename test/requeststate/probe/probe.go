// Package probe looks for ways to misuse the `requestState` of an MCP server.
//
// A server may let what it has to remember between two rounds of a request travel
// through the client. The client is then a place where it can be read, changed, kept
// and given to others, and the specification says what a server owes against that
// (2026-07-28, basic/patterns/mrtr, "Server Requirements"). Nothing of it shows when
// client and server are both well-behaved. The probe is a client that is not: it
// obtains request states from a request that asks, presents variations of them and
// judges the replies.
//
// It works on the wire alone and supposes nothing about how a request state is made,
// so that any server can be pointed at. What it must know of the server, and what it
// cannot bring about by itself (a second principal, another deployment, a clock that
// moves, a key that is retired), the Target describes; a case whose need is not met
// is reported as not applicable, with the need.
//
// The limit: it tells what a server accepts, not how well its keys are kept; and it
// tries samples where there is no end to the variations. What is lost: the request
// that asks is completed many times, so it must be one without an effect.
package probe

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/countersign-mcp/countersign/test/client"
)

// The values of Verdict.Verdict.
const (
	// Passed: the server does what the case demands.
	Passed = "pass"
	// Failed: it does not.
	Failed = "fail"
	// NotApplicable: the target does not offer what the case needs.
	NotApplicable = "not applicable"
)

// Verdict is the outcome of a case.
type Verdict struct {
	// Case is the name of the case.
	Case string `json:"case"`
	// Checks says what the case demands.
	Checks string `json:"checks"`
	// Source is what the specification says.
	Source string `json:"source"`
	// Verdict is Passed, Failed or NotApplicable.
	Verdict string `json:"verdict"`
	// Presented is how many requests with a request state were sent.
	Presented int `json:"presented"`
	// Detail says what went wrong or what is needed.
	Detail string `json:"detail,omitempty"`
	// Reasons is how often the server counted each reason, where its metrics are
	// known.
	Reasons map[string]int `json:"reasons,omitempty"`
}

// Run puts a target to the test. It returns an error where the target does not
// serve the request that all cases build on, or where the context ends; what has
// been judged until then is returned as well.
func Run(ctx context.Context, target *Target) ([]Verdict, error) {
	if err := target.Check(); err != nil {
		return nil, fmt.Errorf("the target's description: %w", err)
	}
	s := &session{
		target: target,
		random: rand.New(rand.NewPCG(target.Seed, target.Seed)), //nolint:gosec // samples that can be repeated, no secret
	}
	defer s.close()
	if err := s.control(ctx); err != nil {
		return nil, fmt.Errorf("the request that all cases build on is not served: %w", err)
	}
	var verdicts []Verdict
	for _, c := range cases {
		verdict, err := s.judge(ctx, c)
		if err != nil {
			return verdicts, fmt.Errorf("case %q: %w", c.name, err)
		}
		verdicts = append(verdicts, verdict)
	}
	return verdicts, nil
}

// testCase is one way to misuse a request state, or to use it in a way that must
// work.
type testCase struct {
	// name, checks and source are those of its Verdict.
	name, checks, source string
	// needs says what the target lacks for the case; empty where nothing.
	needs func(*Target) string
	// reasons are Countersign's names for these refusals.
	reasons []string
	// counter is the metric that counts them; that of refused request states when
	// empty.
	counter string
	// run does it.
	run func(context.Context, *session) error
}

// unsuitableError is a case that does not apply to the request states at hand.
type unsuitableError string

func (e unsuitableError) Error() string { return string(e) }

// session is one run against a target.
type session struct {
	target  *Target
	random  *rand.Rand
	clients []*client.Client
	// answers complete the target's request.
	answers string
	// completed is the kind of reply that completing it gives.
	completed string
	// first is the first refusal, which the others must not be told from, and the
	// name of its case.
	first     *outcome
	firstCase string

	// current is the name of the case that runs; presented and counted are how many
	// request states it has presented, and how many of those the server must have
	// counted.
	current            string
	presented, counted int
}

func (s *session) close() {
	for _, each := range s.clients {
		each.HTTP.CloseIdleConnections()
	}
}

// judge runs a case. The error is the context's, or that of the metrics.
func (s *session) judge(ctx context.Context, c testCase) (Verdict, error) {
	verdict := Verdict{Case: c.name, Checks: c.checks, Source: c.source, Verdict: Passed}
	if c.needs != nil {
		if need := c.needs(s.target); need != "" {
			verdict.Verdict, verdict.Detail = NotApplicable, "needs "+need
			return verdict, nil
		}
	}
	s.current, s.presented, s.counted = c.name, 0, 0
	counter := c.counter
	if counter == "" {
		counter = refusalsCounter
	}
	before, err := s.counts(ctx, counter)
	if err != nil {
		return verdict, err
	}
	failed := c.run(ctx, s)
	if err := ctx.Err(); err != nil {
		return verdict, err
	}
	after, err := s.counts(ctx, counter)
	if err != nil {
		return verdict, err
	}
	verdict.Presented, verdict.Reasons = s.presented, difference(before, after)
	if failed == nil && s.target.Metrics != "" {
		failed = checkReasons(verdict.Reasons, c.reasons, s.counted)
	}
	unsuitable, isUnsuitable := errors.AsType[unsuitableError](failed)
	switch {
	case isUnsuitable:
		verdict.Verdict, verdict.Detail = NotApplicable, unsuitable.Error()
	case failed != nil:
		verdict.Verdict, verdict.Detail = Failed, failed.Error()
	}
	return verdict, nil
}

// control completes the target's request once as it is meant to be.
func (s *session) control(ctx context.Context) error {
	held, err := s.obtain(ctx, s.target.Endpoint, s.target.Request)
	if err != nil {
		return err
	}
	s.answers = held.answers
	reply, err := s.present(ctx, s.target.Request, quote(held.state))
	if err != nil {
		return err
	}
	if reply.kind != kindComplete && reply.kind != kindInputRequired {
		return fmt.Errorf("the retry with the answers and the request state, as they are, was answered with %s", reply)
	}
	s.completed = reply.kind
	return nil
}
