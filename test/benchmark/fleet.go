package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-mcp/countersign/deploy/local/suite"
)

// fleet is the processes that are measured.
type fleet struct {
	// programs is the folder of the suite's programs.
	programs string
	// folder is for configurations and logs.
	folder string
	// keys is the sealer's key file.
	keys      string
	processes []*suite.Process
}

// process is a running program.
type process struct {
	*suite.Process
	// address is where it serves.
	address string
	// operations is where it serves its operator; empty for none.
	operations string
}

func newFleet(programs string) (*fleet, error) {
	folder, err := os.MkdirTemp("", "countersign-benchmark-")
	if err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	f := &fleet{programs: programs, folder: folder, keys: filepath.Join(folder, "keys.yaml")}
	output, err := exec.Command(filepath.Join(programs, "sealer"), "keys", "new", "--file", f.keys).CombinedOutput() //nolint:gosec,noctx // our own program
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a key file: %w: %s", err, output), os.RemoveAll(folder))
	}
	return f, nil
}

// close ends all processes, the last one first.
func (f *fleet) close() error {
	var failures []error
	for _, started := range slices.Backward(f.processes) {
		failures = append(failures, started.Stop())
	}
	return errors.Join(append(failures, os.RemoveAll(f.folder))...)
}

// What the programs log once they serve.
var (
	servesAt     = regexp.MustCompile(`\bserving\b.*?\b(?:address|listen)"?[=:]"?([^\s",]+)`)
	operationsAt = regexp.MustCompile(`\bserving\b.*?\boperations"?[=:]"?([^\s",]+)`)
)

const startTimeout = time.Minute

// asShipped is the value of GOGC that stands for none: each program decides.
const asShipped = "unset"

// start starts a program with a value of GOGC, and waits until it serves.
func (f *fleet) start(path, gogc string, arguments ...string) (*process, error) {
	if gogc == asShipped {
		gogc = "" // as good as absent to the runtime
	}
	name := fmt.Sprintf("%02d-%s", len(f.processes), filepath.Base(path))
	started, err := suite.Start(suite.Program{
		Name: name, Path: path, Arguments: arguments, Environment: []string{"GOGC=" + gogc}, LogDirectory: f.folder,
	})
	if err != nil {
		return nil, err
	}
	f.processes = append(f.processes, started)
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	p := &process{Process: started}
	err = suite.Await(ctx, func(context.Context) error {
		log, err := os.ReadFile(started.LogFile())
		if err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
		match := servesAt.FindSubmatch(log)
		if match == nil {
			return errors.New("it has not logged where it serves")
		}
		p.address = string(match[1])
		if match := operationsAt.FindSubmatch(log); match != nil {
			p.operations = string(match[1])
		}
		return nil
	}, started)
	if err == nil && p.operations != "" {
		err = suite.Await(ctx, suite.Ready("http://"+p.operations+"/readyz"), started)
	}
	if err != nil {
		return nil, fmt.Errorf("start %s: %w: %s", name, err, started.LogTail(5))
	}
	return p, nil
}

// server starts a server of package server.
func (f *fleet) server(gogc, name string, options ...string) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return f.start(program, gogc, append([]string{"serve", name}, options...)...)
}

// configured starts one of the suite's programs with a configuration.
func (f *fleet) configured(gogc, name string, configuration map[string]any) (*process, error) {
	text, err := json.Marshal(configuration) // JSON is YAML
	if err != nil {
		return nil, fmt.Errorf("write the configuration of %s: %w", name, err)
	}
	path := filepath.Join(f.folder, fmt.Sprintf("%02d-%s.yaml", len(f.processes), name))
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, fmt.Errorf("write the configuration of %s: %w", name, err)
	}
	return f.start(filepath.Join(f.programs, name), gogc, "serve", "--config", path)
}

func (f *fleet) sealer(gogc string) (*process, error) {
	return f.configured(gogc, "sealer", map[string]any{
		"listen": "127.0.0.1:0", "operationsListen": "127.0.0.1:0",
		"keys": map[string]any{"source": "file", "file": f.keys},
	})
}

func (f *fleet) edge(gogc string, sealer, handler *process) (*process, error) {
	return f.configured(gogc, "mcpedge", map[string]any{
		"listen": "127.0.0.1:0", "operationsListen": "127.0.0.1:0",
		"context":  map[string]any{"audience": "http://127.0.0.1/mcp", "environment": "benchmark"},
		"sealer":   sealer.address,
		"handlers": []map[string]any{{"name": "benchmark", "target": handler.address}},
	})
}

// deployment is an edge with what is behind it.
type deployment struct {
	sealer, handler, edge *process
}

// deploy starts an edge, a sealer and a handler service with some tools.
func (f *fleet) deploy(gogc string, tools int) (deployment, error) {
	var d deployment
	var err error
	if d.sealer, err = f.sealer(gogc); err != nil {
		return d, err
	}
	if d.handler, err = f.server(gogc, "handler", "--tools", strconv.Itoa(tools)); err != nil {
		return d, err
	}
	d.edge, err = f.edge(gogc, d.sealer, d.handler)
	return d, err
}

// tick is the unit of processor time in /proc: USER_HZ, 100 a second on every
// architecture that Go runs on.
const tick = 10 * time.Millisecond

// processorTime is how much processor time processes have used.
func processorTime(processes []*process) (time.Duration, error) {
	var total time.Duration
	for _, p := range processes {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.ID()))
		if err != nil {
			return 0, fmt.Errorf("read processor time: %w", err)
		}
		// The name of the program, in parentheses, may hold spaces (proc(5)).
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		for _, field := range fields[11:13] { // utime, stime
			ticks, err := strconv.Atoi(field)
			if err != nil {
				return 0, fmt.Errorf("read processor time: %w", err)
			}
			total += time.Duration(ticks) * tick
		}
	}
	return total, nil
}

// residentBytes is how much memory a process has.
func residentBytes(p *process) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.ID()))
	if err != nil {
		return 0, fmt.Errorf("read memory: %w", err)
	}
	fields := strings.Fields(string(text))
	pages, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0, fmt.Errorf("read memory: %w", err)
	}
	return pages * os.Getpagesize(), nil
}
