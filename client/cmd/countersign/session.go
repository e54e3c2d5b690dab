package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign-mcp/countersign/client/render"
	"github.com/countersign-mcp/countersign/client/rounds"
	"github.com/countersign-mcp/countersign/client/terminal"
	"github.com/countersign-mcp/countersign/client/wire"
)

// How often and how long a server that is unavailable is waited for.
const (
	unavailableTimes   = 3
	unavailableLongest = 30 * time.Second
)

// session is one run of a command against one server.
type session struct {
	console  console
	flags    *flags
	client   *wire.Client
	answers  *answerer
	printer  *render.Printer
	progress *render.Progress
}

// open prepares a session. Nothing is sent yet.
func open(flags *flags, console console) (*session, error) {
	endpoint, err := url.Parse(flags.URL)
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https" {
		return nil, fmt.Errorf("%q is not an http or https URL", flags.URL)
	}
	header, err := headers(flags.Header)
	if err != nil {
		return nil, err
	}
	answers, err := newAnswerer(flags, endpoint.Host, console)
	if err != nil {
		return nil, err
	}
	s := &session{
		console:  console,
		flags:    flags,
		client:   wire.NewClient(flags.URL),
		answers:  answers,
		printer:  render.NewPrinter(console.out),
		progress: &render.Progress{Out: console.err, Live: isTerminal(console.err), Width: width(console.err)},
	}
	s.client.Header = header
	s.client.Info = wire.Implementation{Name: "countersign", Version: version()}
	s.client.Capabilities = answers.capabilities()
	s.client.LogLevel = flags.LogLevel
	s.client.Timeout = flags.Timeout
	s.client.Retry = wire.Retry{Times: unavailableTimes, Longest: unavailableLongest, Sleep: sleep, Announce: func(wait time.Duration) {
		s.notef("the server is unavailable; trying again in %s", wait)
	}}
	s.printer.Width = width(console.out)
	if flags.Output != "" {
		s.printer.Folder = &render.Folder{Path: flags.Output}
	}
	return s, nil
}

// close writes what is left and frees what was held. It returns the command's
// error, or else its own.
func (s *session) close(err error) error {
	s.progress.Clear()
	s.answers.close()
	s.client.Close()
	if flushErr := s.printer.Flush(); flushErr != nil && err == nil {
		err = fmt.Errorf("write the result: %w", flushErr)
	}
	if err == nil || errors.Is(err, errToolFailed) {
		for _, key := range s.answers.unused() {
			s.notef("the server never asked %q, which --answer answers", key)
		}
	}
	return err
}

// headers reads the headers that the user wants sent.
func headers(given []string) (http.Header, error) {
	header := http.Header{}
	for _, text := range given {
		name, value, ok := strings.Cut(text, ":")
		name = strings.TrimSpace(name)
		switch {
		case !ok || name == "": // the text may be a credential, so it is not repeated
			return nil, errors.New("--header wants NAME:VALUE")
		case wire.Reserved(name):
			return nil, fmt.Errorf("the header %q belongs to the protocol and cannot be set", name)
		}
		header.Add(name, strings.TrimSpace(value))
	}
	return header, nil
}

// call sends a request that cannot ask and returns its result.
func (s *session) call(ctx context.Context, request wire.Request) (jsontext.Value, error) {
	result, err := s.client.Call(ctx, request)
	return result.JSON, err
}

// carry sends a request that can ask through its rounds.
func (s *session) carry(ctx context.Context, caller rounds.Caller, request wire.Request) (jsontext.Value, error) {
	request.Progress = !s.flags.Quiet
	request.Notify = s.notify
	loop := rounds.Loop{Caller: caller, Answerer: s, MaxRounds: s.flags.MaxInputRounds, Sleep: sleep}
	result, err := loop.Run(ctx, request)
	s.progress.Clear()
	return result, err
}

// notify shows what a server says before its result.
func (s *session) notify(notification wire.Notification) {
	switch notification.Method {
	case "notifications/progress":
		if !s.flags.Quiet {
			s.progress.Show(notification.Params)
		}
	case "notifications/message":
		if s.flags.LogLevel != "" {
			s.log(notification.Params)
		}
	}
}

// log shows a log message of the server's.
func (s *session) log(params jsontext.Value) {
	var message struct {
		Level  string         `json:"level"`
		Logger string         `json:"logger"`
		Data   jsontext.Value `json:"data"`
	}
	if json.Unmarshal(params, &message) != nil {
		return
	}
	text := string(message.Data)
	if message.Data.Kind() == '"' && json.Unmarshal(message.Data, &text) != nil {
		return
	}
	if message.Logger != "" {
		text = message.Logger + ": " + text
	}
	s.progress.Clear()
	_, _ = fmt.Fprintf(s.console.err, "%s %s\n", terminal.Line(message.Level), terminal.Line(text)) // a log that cannot be shown is no reason to fail
}

// notef writes a note beside the result, unless the user wants none.
func (s *session) notef(format string, arguments ...any) {
	if !s.flags.Quiet {
		s.progress.Clear()
		s.console.notef(format, arguments...)
	}
}

// printJSON prints JSON exactly. On a terminal, what the terminal might act on is
// escaped, which leaves the meaning as it is.
func (s *session) printJSON(value jsontext.Value) {
	s.printer.JSON(value, isTerminal(s.console.out))
}

// show prints a result: as JSON, or with what shows it to people.
func (s *session) show(result jsontext.Value, people func(jsontext.Value) error) error {
	if s.flags.JSON {
		s.printJSON(result)
		return nil
	}
	return people(result)
}

// sleep waits, or returns early with the reason why the context ended.
func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// wantsColor says whether bold text is welcome (https://no-color.org).
func wantsColor() bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
