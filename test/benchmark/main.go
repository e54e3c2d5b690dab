// Command benchmark measures Countersign against other servers of the Model Context
// Protocol and against what its parts cost at least. All of it is measured in one
// run, in turns, and told as ratios: a number of one machine says little about
// another. docs/performance.md says what came of it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/countersign-mcp/countersign/test/benchmark/server"
)

// commands are the program's commands.
type commands struct {
	Run   run   `cmd:"" default:"withargs" help:"Measure everything."`
	Serve serve `cmd:"" help:"Be one of the servers that are measured."`
}

// run is the command that measures.
type run struct {
	Programs string        `help:"The folder with the programs mcpedge and sealer."        required:"" type:"existingdir"`
	Only     []string      `help:"Measure only these: calls, rounds, seals, tools, streams."`
	GOGC     []string      `help:"The values of GOGC for all servers."                     default:"100,1000,unset"`
	Rounds   int           `help:"How often each is measured; the median counts."          default:"5"`
	Duration time.Duration `help:"How long each is measured in a round."                   default:"1s"`
	Streams  int           `help:"How many listen streams are opened."                     default:"9000"`
}

// serve is the command that is a server.
type serve struct {
	Name    string `arg:"" enum:"${servers}" help:"One of ${servers}."`
	Tools   int    `help:"How many tools a handler service has." default:"2"`
	Backend string `help:"Where a server that forwards does so."`
}

func main() {
	parsed := kong.Parse(&commands{}, kong.Name("benchmark"), kong.Vars{"servers": server.Names()})
	parsed.FatalIfErrorf(parsed.Run())
}

// Run runs the server until SIGINT or SIGTERM.
func (s *serve) Run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return server.Run(ctx, s.Name, server.Options{Tools: s.Tools, Backend: s.Backend}, os.Stdout)
}

// benchmark is one run.
type benchmark struct {
	fleet    *fleet
	rounds   int
	duration time.Duration
	streams  int
	output   io.Writer
}

// Run measures everything and prints it.
func (r *run) Run() error {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return fmt.Errorf("read what else the machine does: %w", err)
	}
	fmt.Fprintf(os.Stdout, "%d processors, %s, load %s", runtime.NumCPU(), runtime.Version(), load)
	for _, part := range []struct {
		name    string
		measure func(b *benchmark, gogc string) error
	}{
		{"calls", (*benchmark).calls},
		{"rounds", (*benchmark).twoRounds},
		{"seals", (*benchmark).seals},
		{"tools", (*benchmark).tools},
		{"streams", (*benchmark).idleStreams},
	} {
		if len(r.Only) > 0 && !slices.Contains(r.Only, part.name) {
			continue
		}
		for _, gogc := range r.GOGC {
			if err := r.measure(part.measure, gogc); err != nil {
				return fmt.Errorf("measure %s: %w", part.name, err)
			}
		}
	}
	return nil
}

// measure runs one part with processes of its own.
func (r *run) measure(part func(*benchmark, string) error, gogc string) (err error) {
	f, err := newFleet(r.Programs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	return part(&benchmark{fleet: f, rounds: r.Rounds, duration: r.Duration, streams: r.Streams, output: os.Stdout}, gogc)
}

// compare prints the scores of contestants, and what each is to the first.
func (b *benchmark) compare(title string, contestants []contestant, scores []score) {
	b.header(title, "", "calls a second", "to the first", "processor time a call", "to the first")
	for i, c := range contestants {
		processor, ratio := "-", "-"
		if len(c.processes) > 0 {
			processor = scores[i].processor.Round(100 * time.Nanosecond).String()
			ratio = fmt.Sprintf("%.2f", float64(scores[i].processor)/float64(scores[0].processor))
		}
		b.row(c.name, fmt.Sprintf("%.0f", scores[i].perSecond), fmt.Sprintf("%.2f", scores[i].perSecond/scores[0].perSecond), processor, ratio)
	}
}

// header begins a table.
func (b *benchmark) header(title string, columns ...string) {
	fmt.Fprintf(b.output, "\n### %s\n\n", title)
	b.row(columns...)
	b.row(slices.Repeat([]string{"---"}, len(columns))...)
}

func (b *benchmark) row(cells ...string) {
	fmt.Fprintf(b.output, "| %s |\n", strings.Join(cells, " | "))
}
