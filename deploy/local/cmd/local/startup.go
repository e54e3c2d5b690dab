package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/countersign-mcp/countersign/deploy/local/suite"
)

// patience is how long the suite may take to be ready before the person who waits
// is told why, and how long a handler service has that this program does not start.
const patience = 3 * time.Second

// handlerCheck stands before the name of a handler service in the edge's report.
const handlerCheck = "handler/"

// startup follows how the suite gets ready.
type startup struct {
	ready func(context.Context) error
	now   func() time.Time
	says  io.Writer
	begun time.Time
	// said is what the person was told last.
	said string
	// absent are the handler services that the suite goes on without; nil if none.
	absent *suite.MissingError
}

func newStartup(ready func(context.Context) error, now func() time.Time, says io.Writer) *startup {
	return &startup{ready: ready, now: now, says: says, begun: now()}
}

// check is a check for [suite.Await]. It returns nil when everything is ready, and
// after a while also when nothing is missing but handler services of somebody else.
func (s *startup) check(ctx context.Context) error {
	err := s.ready(ctx)
	if err == nil || ctx.Err() != nil || s.now().Sub(s.begun) < patience {
		return err
	}
	missing, answered := errors.AsType[*suite.MissingError](err)
	if answered && !ours(missing) {
		s.absent = missing
		return nil
	}
	text := "waiting for " + err.Error()
	if !answered {
		text = "waiting for mcpedge: " + err.Error()
	}
	if text != s.said {
		fmt.Fprintln(s.says, text)
		s.said = text
	}
	return err
}

// ours says whether anything is missing that this program has started.
func ours(missing *suite.MissingError) bool {
	for name := range missing.Sentences {
		handler, isHandler := strings.CutPrefix(name, handlerCheck)
		if !isHandler || slices.ContainsFunc(services(), func(s service) bool { return s.name == handler }) {
			return true
		}
	}
	return false
}

// absence tells what the suite goes on without.
func (s *startup) absence() string {
	var text strings.Builder
	text.WriteString("\nThe suite serves without these, and with them as soon as they answer:\n")
	for _, name := range slices.Sorted(maps.Keys(s.absent.Sentences)) {
		fmt.Fprintf(&text, "\n  %s: %s", name, s.absent.Sentences[name])
	}
	return text.String()
}
