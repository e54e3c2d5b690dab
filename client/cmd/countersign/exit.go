package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
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
	c.notef("%s%s", err, hint(err))
	return code
}

// hint is what the user can do about an error, where a flag would help.
func hint(err error) string {
	if has[*wire.TimeoutError](err) {
		return "; --timeout changes how long to wait"
	}
	rpcError, ok := errors.AsType[*wire.RPCError](err)
	if !ok || rpcError.Code != wire.CodeMissingClientCapability {
		return ""
	}
	var missing struct {
		Capabilities map[string]jsontext.Value `json:"requiredCapabilities"`
	}
	if json.Unmarshal(rpcError.Data, &missing) == nil && missing.Capabilities["roots"] != nil {
		return "; --root offers roots"
	}
	return ""
}

// notef writes a line beside the result. Everything in it that came from a server
// is made harmless. Further lines are indented, so that none can pass for a line of
// the program's own.
func (c console) notef(format string, arguments ...any) {
	const indent = "  "
	lines := strings.Split(terminal.Text(fmt.Sprintf(format, arguments...)), "\n")
	for i, line := range lines[1:] {
		if !strings.HasPrefix(line, indent) {
			lines[i+1] = indent + line
		}
	}
	_, _ = fmt.Fprintf(c.err, "countersign: %s\n", strings.Join(lines, "\n")) // where nothing can be said, nothing can be said about it
}

// codeOf is the exit code for an error.
func codeOf(err error) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.Is(err, errToolFailed):
		return exitToolFailed
	case has[*rounds.TooManyRoundsError](err):
		return exitRounds
	case has[*unansweredError](err), errors.Is(err, ask.ErrDeclined):
		return exitUnanswered
	case has[*wire.RPCError](err):
		return exitRPCError
	default:
		return exitFailed
	}
}

// has says whether an error is of a type.
func has[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
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
