package terminal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign-mcp/countersign/client/ask"
)

// The words that end an ask at any prompt. A text that is meant as one of them is
// typed with a second colon.
const (
	declineWord = ":decline"
	cancelWord  = ":cancel"
)

// Interviewer asks the person at a terminal. It asks one thing at a time.
type Interviewer struct {
	// Server is where the questions come from, as the user named it.
	Server string
	// Color says whether the terminal shows bold text.
	Color bool

	output io.Writer
	lines  chan line
	wanted chan struct{}
}

// line is a line that was typed, or why there is none.
type line struct {
	text string
	err  error
}

// NewInterviewer asks on output and reads what is typed from input. Reading
// happens only while a prompt waits, and ends with the input.
func NewInterviewer(server string, color bool, input io.Reader, output io.Writer) *Interviewer {
	interviewer := &Interviewer{
		Server: server,
		Color:  color,
		output: output,
		lines:  make(chan line, 1),
		wanted: make(chan struct{}, 1),
	}
	go interviewer.read(input)
	return interviewer
}

// Close ends the reading, once the line that is waited for has come or the input
// has ended.
func (i *Interviewer) Close() {
	close(i.wanted)
}

// read reads a line whenever one is wanted. A terminal cannot be waited for
// together with a context, so it is read beside.
func (i *Interviewer) read(input io.Reader) {
	buffered := bufio.NewReader(input)
	for range i.wanted {
		text, err := buffered.ReadString('\n')
		if err != nil && text != "" {
			err = nil
		}
		i.lines <- line{text: strings.TrimRight(text, "\r\n"), err: err}
	}
}

// acted is an ask that ended with an action instead of a value.
type acted struct {
	action ask.Action
}

// Error names the action.
func (a *acted) Error() string { return string(a.action) }

// prompt shows a prompt and waits for a line. The end of the input is a cancel.
func (i *Interviewer) prompt(ctx context.Context, text string) (string, error) {
	i.printf("%s", text)
	select {
	case i.wanted <- struct{}{}:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	var typed line
	select {
	case typed = <-i.lines:
	case <-ctx.Done():
		i.printf("\n")
		return "", context.Cause(ctx)
	}
	switch {
	case errors.Is(typed.err, io.EOF):
		i.printf("\n")
		return "", &acted{ask.Cancel}
	case typed.err != nil:
		return "", fmt.Errorf("read from the terminal: %w", typed.err)
	}
	switch trimmed := strings.TrimSpace(typed.text); trimmed {
	case declineWord:
		return "", &acted{ask.Decline}
	case cancelWord:
		return "", &acted{ask.Cancel}
	case ":" + declineWord, ":" + cancelWord:
		return trimmed[1:], nil
	}
	return typed.text, nil
}

// Ask puts one ask to the person and returns the response.
func (i *Interviewer) Ask(ctx context.Context, asked ask.Ask) (jsontext.Value, error) {
	var response jsontext.Value
	var err error
	switch {
	case asked.Form != nil:
		response, err = i.form(ctx, asked.Form)
	case asked.Link != nil:
		response, err = i.link(ctx, asked.Link)
	case asked.Sampling != nil:
		return i.sampling(ctx, asked.Sampling)
	default:
		return nil, fmt.Errorf("nobody can be asked %q", asked.Key)
	}
	if ended, ok := errors.AsType[*acted](err); ok {
		return ask.Response(ended.action, nil), nil
	}
	return response, err
}

// heading says who asks and what for. The message may be empty.
func (i *Interviewer) heading(what, message string) {
	i.printf("\n%s %s\n", i.bold(Line(i.Server)), what)
	if message == "" {
		return
	}
	for text := range strings.SplitSeq(strings.TrimSpace(Text(message)), "\n") {
		i.printf("  %s\n", text)
	}
}

// bold emphasises where the terminal can.
func (i *Interviewer) bold(text string) string {
	if !i.Color || text == "" {
		return text
	}
	return "\x1b[1m" + text + "\x1b[0m"
}

// printf writes to the terminal. A terminal that is gone shows itself when it is
// read.
func (i *Interviewer) printf(format string, arguments ...any) {
	_, _ = fmt.Fprintf(i.output, format, arguments...) // see above
}
