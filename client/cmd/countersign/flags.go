package main

import (
	"context"
	"fmt"
	"reflect"
	"runtime/debug"
	"time"

	"github.com/alecthomas/kong"
)

// flags are what every command takes.
type flags struct {
	URL            string        `default:"http://127.0.0.1:8080/mcp" env:"COUNTERSIGN_URL" help:"The MCP endpoint." name:"url" placeholder:"URL"`
	Header         []string      `env:"COUNTERSIGN_HEADER" help:"Send this HTTP header with every request. Repeat it for more. From the environment a credential stays out of the list of processes." placeholder:"NAME:VALUE" sep:"none" short:"H"`
	Timeout        time.Duration `default:"2m" help:"Give up on a request that has no result by then; 0 is never. Time spent answering does not count."`
	MaxInputRounds int           `default:"8" help:"Give up when the server has asked in this many rounds and asks again."`
	Answer         []string      `help:"Answer the ask with this key: with a form's content or a whole response as JSON, or with accept, decline or cancel. Repeat it for more." placeholder:"KEY=JSON" sep:"none"`
	Root           []string      `help:"A root to tell the server when it asks. Repeat it for more. Without one, roots are not offered." placeholder:"file:///PATH" sep:"none"`
	JSON           bool          `help:"Print the result's JSON exactly as the server sent it and nothing else. A list prints one result for each page." name:"json"`
	Output         string        `help:"Save pictures, sounds and resources in this folder." placeholder:"FOLDER" type:"path"`
	LogLevel       string        `default:"" enum:",debug,info,notice,warning,error,critical,alert,emergency" help:"Show the server's log messages from this level on: debug, info, notice, warning, error, critical, alert or emergency." placeholder:"LEVEL"`
	Quiet          bool          `help:"Show no progress and no notes." short:"q"`
}

// grammar is the command line.
type grammar struct {
	flags

	Discover discoverCommand  `cmd:"" help:"Show what the server says about itself."`
	List     listCommand      `cmd:"" help:"List what the server offers."`
	Call     callCommand      `cmd:"" help:"Call a tool."`
	Prompt   promptCommand    `cmd:"" help:"Get a prompt."`
	Read     readCommand      `cmd:"" help:"Read a resource."`
	Complete completeCommand  `cmd:"" help:"Suggest values for an argument of a prompt or a resource template."`
	Listen   listenCommand    `cmd:"" help:"Print changes as they happen, until Ctrl-C."`
	Version  kong.VersionFlag `help:"Print the version."`
}

// Help is the part of --help that explains what the flags cannot.
func (*grammar) Help() string {
	return `A server may stop in the middle of a call, a prompt or a read and ask something.
At a terminal you are asked, one thing at a time; ":decline" says no and ":cancel"
says nothing, at any prompt. A web page that a server wants opened is shown, never
opened. Elsewhere --answer gives the answers by their keys; without one for a key,
the program says which key and what to pass.

Ctrl-C closes the response, which tells the server to stop.

Exit codes:

  0    it went well; a declined or cancelled ask too, if the server made a result of it
  1    wrong usage, no connection, or a server that breaks the protocol
  2    the server answered with a JSON-RPC error
  3    the tool says that it failed (isError)
  4    gave up: more rounds of asks than --max-input-rounds
  5    an ask went unanswered: no terminal and no --answer, an answer that does not
       fit, or a sampling request declined
  130  interrupted by Ctrl-C
`
}

// command is what the user wants done.
type command func(ctx context.Context, session *session) error

// runner is what every command of the grammar is.
type runner interface {
	run(ctx context.Context, session *session) error
}

// parse reads the command line. Without a command to run, the code is the exit
// code.
func parse(arguments []string, console console) (command, *flags, int) {
	var line grammar
	exited, code := false, exitOK
	parser, err := kong.New(&line,
		kong.Name("countersign"),
		kong.Description("A client of the Model Context Protocol, revision 2026-07-28, that answers what a server asks."),
		kong.Vars{"version": version()},
		kong.Writers(console.out, console.err),
		kong.Exit(func(status int) { exited, code = true, status }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	if err != nil {
		return nil, nil, console.fail(fmt.Errorf("read the command line: %w", err))
	}
	parsed, err := parser.Parse(arguments)
	if exited { // --help and --version end here; the parser goes on only because this Exit returns
		return nil, nil, code
	}
	if err != nil {
		return nil, nil, console.fail(fmt.Errorf("%w; see countersign --help", err))
	}
	chosen, ok := reflect.TypeAssert[runner](parsed.Selected().Target.Addr())
	if !ok {
		return nil, nil, console.fail(fmt.Errorf("%q is no command", parsed.Command()))
	}
	return chosen.run, &line.flags, exitOK
}

// version is the version this program was built from.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
