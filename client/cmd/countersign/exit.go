package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/countersign-mcp/countersign/client/ask"
	"github.com/countersign-mcp/countersign/client/rounds"
	"github.com/countersign-mcp/countersign/client/terminal"
	"github.com/countersign-mcp/countersign/client/wire"
)

// The exit codes, as --help lists them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitRPCError    = 2
	exitToolFailed  = 3
	exitRounds      = 4
	exitUnanswered  = 5
	exitInterrupted = 130
)

// errToolFailed says that the tool's result is a failure. The result is printed,
// so nothing more is said.
var errToolFailed = errors.New("the tool failed")

// unansweredError says that an ask has no answer.
type unansweredError struct {
	reason string
}

// Error says which ask and what to do.
func (e *unansweredError) Error() string { return e.reason }

// console is where the program reads and writes.
type console struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

// fail says what went wrong and returns the exit code.
func (c console) fail(err error) int {
	code := codeOf(err)
	if err == nil || errors.Is(err, errToolFailed) {
		return code
	}
	c.notef("%s", err)
	return code
}

// notef writes a line beside the result. Everything in it that came from a server
// is made harmless.
func (c console) notef(format string, arguments ...any) {
	text := terminal.Text(fmt.Sprintf(format, arguments...))
	_, _ = fmt.Fprintf(c.err, "countersign: %s\n", text) // where nothing can be said, nothing can be said about it
}

// codeOf is the exit code for an error.
func codeOf(err error) int {
	var (
		rpcError   *wire.RPCError
		tooMany    *rounds.TooManyRoundsError
		unanswered *unansweredError
	)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.Is(err, errToolFailed):
		return exitToolFailed
	case errors.As(err, &tooMany):
		return exitRounds
	case errors.As(err, &unanswered), errors.Is(err, ask.ErrDeclined):
		return exitUnanswered
	case errors.As(err, &rpcError):
		return exitRPCError
	default:
		return exitFailed
	}
}

// isTerminal says whether a stream is a terminal.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// width is how many columns a terminal has, or zero.
func width(stream any) int {
	file, ok := stream.(*os.File)
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return columns
}
