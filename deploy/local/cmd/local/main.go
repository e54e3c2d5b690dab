// Command local runs the whole suite on this machine, for somebody who wants to
// try it: the sealer, two handler services and the edge, as processes that speak
// gRPC with one another on loopback.
//
// It is started in the root of the checkout, by `make run`, with the programs in
// build/bin. Their configuration is in deploy/local, their logs and the key file
// are in build/run. The key file is made on the first run and kept, so that a
// request state survives a restart of the suite.
//
// A handler service that the edge's configuration names besides, and that does not
// run, is named and not waited for: what it offers is served once it answers.
//
// Ctrl-C ends all of them. When one of them ends by itself, the others are ended
// and the end of its log is shown. Nothing is restarted: that is the work of an
// orchestrator.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/countersign-mcp/countersign/deploy/local/suite"
)

const (
	programs         = "build/bin/"
	runDirectory     = "build/run"
	keyFile          = "build/run/keys.yaml"
	readinessTimeout = time.Minute
	readinessURL     = "http://127.0.0.1:8081/readyz"
)

// service is a program of the suite and the addresses its configuration names.
type service struct {
	name      string
	arguments []string
	addresses []string
}

// services are in the order in which they are started: each needs only those
// before it.
func services() []service {
	return []service{
		{
			name:      "sealer",
			arguments: []string{"serve", "--config", "deploy/local/sealer.yaml"},
			addresses: []string{"127.0.0.1:9101", "127.0.0.1:9111"},
		},
		{
			name:      "refunds",
			arguments: []string{"--listen", "127.0.0.1:9102"},
			addresses: []string{"127.0.0.1:9102"},
		},
		{
			name:      "everything",
			arguments: []string{"--listen", "127.0.0.1:9103"},
			addresses: []string{"127.0.0.1:9103"},
		},
		{
			name:      "mcpedge",
			arguments: []string{"serve", "--config", "deploy/local/mcpedge.yaml"},
			addresses: []string{"127.0.0.1:8080", "127.0.0.1:8081"},
		},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called
	}
}

func run(ctx context.Context) (err error) {
	for _, service := range services() {
		for _, address := range service.addresses {
			if err := suite.Free(ctx, service.name, address); err != nil {
				return err
			}
		}
	}
	if err := makeKeys(ctx); err != nil {
		return err
	}

	var running []*suite.Process
	defer func() { err = errors.Join(err, end(running)) }()
	for _, service := range services() {
		process, err := suite.Start(suite.Program{
			Name:         service.name,
			Path:         programs + service.name,
			Arguments:    service.arguments,
			LogDirectory: runDirectory,
		})
		if err != nil {
			return err
		}
		running = append(running, process)
		sayf("%-10s process %d, log in %s", process.Name(), process.ID(), process.LogFile())
	}

	starting, cancel := context.WithTimeout(ctx, readinessTimeout)
	defer cancel()
	startup := newStartup(suite.Ready(readinessURL), time.Now, os.Stdout)
	err = suite.Await(starting, startup.check, running...)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	sayf("%s", welcome)
	if startup.absent != nil {
		sayf("%s", startup.absence())
	}
	return watch(ctx, running)
}

// makeKeys makes the file with the sealer's root key unless there is one.
func makeKeys(ctx context.Context) error {
	_, err := os.Stat(keyFile)
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look for key file: %w", err)
	}
	if err := os.MkdirAll(runDirectory, 0o750); err != nil {
		return fmt.Errorf("make run directory: %w", err)
	}
	output, err := exec.CommandContext(ctx, programs+"sealer", "keys", "new", "--file", keyFile).CombinedOutput()
	if err != nil {
		return fmt.Errorf("make key file: %w: %s", err, output)
	}
	sayf("made a root key in %s", keyFile)
	return nil
}

// watch returns when the context ends, and with an error when a process does.
func watch(ctx context.Context, running []*suite.Process) error {
	ended := make(chan *suite.Process, len(running))
	for _, process := range running {
		go func() {
			<-process.Done()
			ended <- process
		}()
	}
	select {
	case <-ctx.Done():
		return nil
	case process := <-ended:
		return &suite.EndedError{Process: process}
	}
}

// end stops the processes, the last started first.
func end(running []*suite.Process) error {
	sayf("\nending the suite")
	failures := make([]error, 0, len(running))
	for _, process := range slices.Backward(running) {
		failures = append(failures, process.Stop())
	}
	return errors.Join(failures...)
}

func sayf(format string, arguments ...any) {
	fmt.Fprintf(os.Stdout, format+"\n", arguments...)
}
