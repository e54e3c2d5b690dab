package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/countersign-mcp/countersign/deploy/local/suite"
)

// starting is a startup whose endpoint gives one answer, some time after the start.
func starting(after time.Duration, answer error) (*startup, *strings.Builder) {
	now := time.Date(2026, time.October, 1, 0, 0, 0, 0, time.UTC)
	said := &strings.Builder{}
	s := newStartup(func(context.Context) error { return answer }, func() time.Time { return now }, said)
	now = now.Add(after)
	return s, said
}

func missing(names ...string) error {
	e := &suite.MissingError{Sentences: map[string]string{}}
	for _, name := range names {
		e.Sentences[name] = "does not answer"
	}
	return e
}

func TestTheSuiteGoesOnWithoutAHandlerOfSomebodyElse(t *testing.T) {
	s, said := starting(patience, missing("handler/forgotten"))
	if err := s.check(t.Context()); err != nil {
		t.Fatalf("got %v, want the suite to go on", err)
	}
	if got := s.absence(); !strings.Contains(got, "  handler/forgotten: does not answer") {
		t.Errorf("the person is told %q, want the handler named", got)
	}
	if said.Len() > 0 {
		t.Errorf("the person is also told to wait: %q", said)
	}
}

func TestAHandlerOfSomebodyElseHasAMomentToAnswer(t *testing.T) {
	s, said := starting(patience-1, missing("handler/forgotten"))
	if err := s.check(t.Context()); err == nil || said.Len() > 0 {
		t.Errorf("got %v, and the person is told %q; want to wait in silence", err, said)
	}
}

func TestWhatIsWaitedForIsSaidOnce(t *testing.T) {
	for name, test := range map[string]struct {
		answer error
		want   string
	}{
		"a service of the suite":         {missing("handler/forgotten", "handler/refunds"), "waiting for handler/forgotten: does not answer; handler/refunds: does not answer\n"},
		"the sealer":                     {missing("sealer"), "waiting for sealer: does not answer\n"},
		"an edge that does not answer":   {errors.New("connection refused"), "waiting for mcpedge: connection refused\n"},
		"an edge that answers strangely": {errors.New("503: gone"), "waiting for mcpedge: 503: gone\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s, said := starting(patience, test.answer)
			for range 2 {
				if err := s.check(t.Context()); !errors.Is(err, test.answer) {
					t.Fatalf("got %v, want to wait on", err)
				}
			}
			if said.String() != test.want {
				t.Errorf("the person is told %q, want %q", said, test.want)
			}
		})
	}
}
