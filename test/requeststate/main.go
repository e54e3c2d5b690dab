// Command requeststate puts the `requestState` of an MCP server to the test.
//
// It is the probe's command: it takes the target from a YAML description, from
// flags, or from both, prints a verdict for each case, and exits with 0 where no case
// failed, with 1 where one did, and with 2 where the target could not be tested.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/countersign-mcp/countersign/test/requeststate/probe"
)

// What the process exits with.
const (
	exitPassed = iota
	exitFailed
	exitNotTested
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the command with its arguments and outputs.
func run(ctx context.Context, arguments []string, output, problems io.Writer) int {
	target, asJSON, err := read(arguments, problems)
	if errors.Is(err, flag.ErrHelp) {
		return exitPassed
	}
	if err != nil {
		fmt.Fprintf(problems, "requeststate: %v\n", err)
		return exitNotTested
	}
	verdicts, err := probe.Run(ctx, target)
	write := writeTable
	if asJSON {
		write = writeJSON
	}
	if err := write(output, verdicts); err != nil {
		fmt.Fprintf(problems, "requeststate: %v\n", err)
		return exitNotTested
	}
	if err != nil {
		fmt.Fprintf(problems, "requeststate: %v\n", err)
		return exitNotTested
	}
	for _, verdict := range verdicts {
		if verdict.Verdict == probe.Failed {
			return exitFailed
		}
	}
	return exitPassed
}

// read reads the target from the arguments. A flag counts more than the description.
func read(arguments []string, problems io.Writer) (*probe.Target, bool, error) {
	var given probe.Target
	headers := map[string]string{}
	flags := flag.NewFlagSet("requeststate", flag.ContinueOnError)
	flags.SetOutput(problems)
	description := flags.String("target", "", "`file` that describes the target (YAML)")
	flags.StringVar(&given.URL, "url", "", "`URL` of the MCP endpoint")
	flags.StringVar(&given.Metrics, "metrics", "", "`URL` of Countersign's metrics: check the reason of each refusal")
	flags.StringVar(&given.Request.Tool, "tool", "", "`name` of a tool that asks")
	flags.StringVar(&given.Request.Prompt, "prompt", "", "`name` of a prompt that asks")
	flags.StringVar(&given.Request.Resource, "resource", "", "`URI` of a resource that asks")
	flags.StringVar(&given.Request.Arguments, "arguments", "", "`JSON` of the arguments")
	flags.StringVar(&given.Request.Answers, "answers", "", "`JSON` of the inputResponses; by default every form is accepted")
	flags.IntVar(&given.Samples, "samples", 0, "about how `many` changed characters to try (500)")
	flags.Uint64Var(&given.Seed, "seed", 0, "`number` that makes the choice of samples repeatable")
	flags.Func("header", "`Name: value` to send with every request; may be repeated", func(text string) error {
		name, value, found := strings.Cut(text, ":")
		if !found {
			return errors.New("want Name: value")
		}
		headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
		return nil
	})
	asJSON := flags.Bool("json", false, "print the verdicts as JSON")
	if err := flags.Parse(arguments); err != nil {
		return nil, false, err
	}
	if flags.NArg() > 0 {
		return nil, false, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	target := new(probe.Target)
	if *description != "" {
		var err error
		if target, err = probe.Load(*description); err != nil {
			return nil, false, err
		}
	}
	override(target, given, headers)
	return target, *asJSON, nil
}

// override replaces what the flags have given.
func override(target *probe.Target, given probe.Target, headers map[string]string) {
	for _, each := range []struct {
		field *string
		value string
	}{
		{&target.URL, given.URL},
		{&target.Metrics, given.Metrics},
		{&target.Request.Arguments, given.Request.Arguments},
		{&target.Request.Answers, given.Request.Answers},
	} {
		if each.value != "" {
			*each.field = each.value
		}
	}
	if request := given.Request; request.Tool+request.Prompt+request.Resource != "" {
		target.Request.Tool, target.Request.Prompt, target.Request.Resource = request.Tool, request.Prompt, request.Resource
	}
	if given.Samples != 0 {
		target.Samples = given.Samples
	}
	if given.Seed != 0 {
		target.Seed = given.Seed
	}
	for name, value := range headers {
		if target.Headers == nil {
			target.Headers = map[string]string{}
		}
		target.Headers[name] = value
	}
}

// writeTable writes the verdicts for a person.
func writeTable(output io.Writer, verdicts []probe.Verdict) error {
	counts := map[string]int{}
	table := tabwriter.NewWriter(output, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "VERDICT\tCASE\tPRESENTED\tDETAIL")
	for _, verdict := range verdicts {
		counts[verdict.Verdict]++
		detail := verdict.Detail
		if verdict.Verdict == probe.Failed {
			detail = verdict.Checks + ": " + detail
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\n", verdict.Verdict, verdict.Case, verdict.Presented, detail)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	_, err := fmt.Fprintf(output, "\n%d passed, %d failed, %d not applicable\n",
		counts[probe.Passed], counts[probe.Failed], counts[probe.NotApplicable])
	if err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

// writeJSON writes the verdicts for a program.
func writeJSON(output io.Writer, verdicts []probe.Verdict) error {
	encoder := json.NewEncoder(output)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(verdicts); err != nil {
		return fmt.Errorf("write the verdicts: %w", err)
	}
	return nil
}
