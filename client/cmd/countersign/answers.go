package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign-mcp/countersign/client/ask"
	"github.com/countersign-mcp/countersign/client/terminal"
)

// answerer has asks answered: by the flags where they do, else by the person at
// the terminal.
type answerer struct {
	given       map[string]string
	used        map[string]bool
	roots       []root
	interviewer *terminal.Interviewer
	server      string
	console     console
}

// root is a root as the protocol has it.
type root struct {
	URI string `json:"uri"`
}

// newAnswerer reads the flags that answer. The server is named as the user named
// it, not as it names itself.
func newAnswerer(flags *flags, server string, console console) (*answerer, error) {
	answers := &answerer{given: map[string]string{}, used: map[string]bool{}, server: server, console: console}
	for _, text := range flags.Answer {
		key, value, ok := strings.Cut(text, "=")
		switch {
		case !ok || key == "":
			return nil, errors.New("--answer wants KEY=JSON")
		case answers.given[key] != "":
			return nil, fmt.Errorf("--answer gives %q twice", key)
		case value == "":
			return nil, fmt.Errorf("--answer gives nothing for %q", key)
		}
		answers.given[key] = value
	}
	for _, uri := range flags.Root {
		if !strings.HasPrefix(uri, "file://") {
			return nil, fmt.Errorf("--root wants a file:// URI, not %q", uri)
		}
		answers.roots = append(answers.roots, root{URI: uri})
	}
	return answers, nil
}

// capabilities declares what can be answered here. Forms, URLs and sampling are a
// person's to answer, or --answer's; roots are there when --root names some.
func (a *answerer) capabilities() jsontext.Value {
	if len(a.roots) > 0 {
		return jsontext.Value(`{"elicitation":{"form":{},"url":{}},"roots":{},"sampling":{}}`)
	}
	return jsontext.Value(`{"elicitation":{"form":{},"url":{}},"sampling":{}}`)
}

// unused are the keys that --answer gave and no ask had.
func (a *answerer) unused() []string {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(a.given)) {
		if !a.used[key] {
			keys = append(keys, key)
		}
	}
	return keys
}

// close ends the reading from the terminal.
func (a *answerer) close() {
	if a.interviewer != nil {
		a.interviewer.Close()
	}
}

// Answer answers the asks of a round. Progress gives way to the questions.
func (s *session) Answer(ctx context.Context, asks []ask.Ask) (map[string]jsontext.Value, error) {
	s.progress.Clear()
	if err := s.printer.Flush(); err != nil {
		return nil, fmt.Errorf("write the result: %w", err)
	}
	return s.answers.answer(ctx, asks)
}

// answer answers what the flags can answer first, so that nobody is asked in vain.
func (a *answerer) answer(ctx context.Context, asks []ask.Ask) (map[string]jsontext.Value, error) {
	responses := map[string]jsontext.Value{}
	var left []ask.Ask
	for _, asked := range asks {
		response, err := a.fromFlags(asked)
		if err != nil {
			return nil, err
		}
		if response == nil {
			left = append(left, asked)
			continue
		}
		responses[asked.Key] = response
	}
	if len(left) > 0 && (!isTerminal(a.console.in) || !isTerminal(a.console.err)) {
		return nil, &unansweredError{reason: missing(left) + a.misplaced()}
	}
	for _, asked := range left {
		if a.interviewer == nil {
			a.interviewer = terminal.NewInterviewer(a.server, wantsColor(), a.console.in, a.console.err)
		}
		response, err := a.interviewer.Ask(ctx, asked)
		if err != nil {
			return nil, fmt.Errorf("the ask %q: %w", asked.Key, err)
		}
		responses[asked.Key] = response
	}
	return responses, nil
}

// fromFlags answers an ask from the flags, or returns nil where they do not.
func (a *answerer) fromFlags(asked ask.Ask) (jsontext.Value, error) {
	if given, ok := a.given[asked.Key]; ok {
		a.used[asked.Key] = true
		response, err := asked.Scripted(given)
		if errors.Is(err, ask.ErrDeclined) {
			return nil, fmt.Errorf("the ask %q: %w", asked.Key, err)
		}
		if err != nil {
			return nil, &unansweredError{reason: fmt.Sprintf("--answer for %q does not fit: %v; pass for example %s", asked.Key, err, example(asked))}
		}
		return response, nil
	}
	if !asked.Roots {
		return nil, nil
	}
	roots := a.roots
	if roots == nil {
		roots = []root{}
	}
	response, err := json.Marshal(map[string]any{"roots": roots})
	if err != nil {
		return nil, fmt.Errorf("encode the roots: %w", err)
	}
	return response, nil
}

// missing says which asks have no answer and what would answer them.
func missing(asks []ask.Ask) string {
	var text strings.Builder
	text.WriteString("the server asks something, and there is neither a terminal nor an --answer for it:")
	for _, asked := range asks {
		fmt.Fprintf(&text, "\n  %q: %s\n    pass %s", asked.Key, question(asked), example(asked))
	}
	return text.String()
}

// misplaced says which of --answer's keys no question has had: where a question is
// left without an answer, one of them may be meant for it.
func (a *answerer) misplaced() string {
	var text strings.Builder
	for _, key := range a.unused() {
		fmt.Fprintf(&text, "\n  the --answer for %q fits no question asked so far", key)
	}
	return text.String()
}

// question is what an ask asks, in a line.
func question(asked ask.Ask) string {
	switch {
	case asked.Form != nil:
		return terminal.Line(asked.Form.Message)
	case asked.Link != nil:
		return terminal.Line(asked.Link.Message + " " + asked.Link.URL)
	default:
		return "a model's reply"
	}
}

// example is a flag that would answer an ask, ready for a shell.
func example(asked ask.Ask) string {
	return "--answer " + shellQuoted(asked.Key+"="+asked.Example())
}

// shellQuoted quotes a text for a POSIX shell.
func shellQuoted(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
