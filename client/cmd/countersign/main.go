// Countersign is a client of the Model Context Protocol for the command line: it
// lists and calls what a server offers, and when the server asks something in the
// middle of a request, it asks the person at the terminal or takes the answer from
// its flags. See `countersign --help`.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], console{in: os.Stdin, out: os.Stdout, err: os.Stderr})
	stop()
	os.Exit(code)
}

// run does what the arguments say and returns the exit code.
func run(ctx context.Context, arguments []string, console console) int {
	command, flags, code := parse(arguments, console)
	if command == nil {
		return code
	}
	session, err := open(flags, console)
	if err != nil {
		return console.fail(err)
	}
	err = session.close(command(ctx, session))
	return console.fail(err)
}
