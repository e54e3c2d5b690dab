// Package suite starts the programs of Countersign as processes of this machine
// and ends them again.
//
// Somebody who tries the suite, and the tests that prove it, need the same thing:
// real processes, started in order, known to be ready, and gone afterwards. A
// [Process] is one program with its output in a log file. It is told to stop with
// SIGTERM and killed if it does not; it is always ended by its own process id,
// never by a name. Readiness is asked for, with [Await], never assumed after a
// while.
//
// The limit: nothing restarts a program that has died. Whoever starts a process
// watches [Process.Done]. On Linux a process ends with the program that started
// it; elsewhere it outlives one that was killed outright.
package suite

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// stopGrace is how long a program has to shut down before it is killed.
const stopGrace = 10 * time.Second

// Program says what to start.
type Program struct {
	// Name names the program in messages, and its log file.
	Name string
	// Path is the executable.
	Path string
	// Arguments are the arguments after the program's name.
	Arguments []string
	// Environment is added to the environment of this process, as NAME=value.
	Environment []string
	// LogDirectory receives a file NAME.log with all that the program prints. It
	// is made if it is not there.
	LogDirectory string
}

// Process is a running program.
type Process struct {
	name    string
	command *exec.Cmd
	logFile string
	done    chan struct{}
	err     error
}

// Start starts a program.
func Start(program Program) (*Process, error) {
	if err := os.MkdirAll(program.LogDirectory, 0o750); err != nil {
		return nil, fmt.Errorf("make log directory of %s: %w", program.Name, err)
	}
	logFile := filepath.Join(program.LogDirectory, program.Name+".log")
	output, err := os.OpenFile(logFile, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log of %s: %w", program.Name, err)
	}
	defer func() { _ = output.Close() }() // the child has a descriptor of its own

	// Not bound to a context: a context kills, and a program is to be asked first.
	command := exec.Command(program.Path, program.Arguments...) //nolint:gosec,noctx // the caller names the program; Stop ends it
	command.Env = append(os.Environ(), program.Environment...)
	command.Stdout = output
	command.Stderr = output
	command.SysProcAttr = processAttributes()
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", program.Name, err)
	}
	process := &Process{name: program.Name, command: command, logFile: logFile, done: make(chan struct{})}
	go func() {
		process.err = command.Wait()
		close(process.done)
	}()
	return process, nil
}

// Name returns the program's name.
func (p *Process) Name() string { return p.name }

// ID returns the process id.
func (p *Process) ID() int { return p.command.Process.Pid }

// LogFile returns the path of the file that holds what the program printed.
func (p *Process) LogFile() string { return p.logFile }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says how the process ended: nil when it ended well or has not ended.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Stop asks the process to shut down, waits until it has, and kills it when it
// takes longer than ten seconds, which is an error.
func (p *Process) Stop() error {
	// An error of Signal means that the process has already ended.
	_ = p.command.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		p.Kill()
		return fmt.Errorf("%s did not shut down within %s and was killed", p.name, stopGrace)
	}
}

// Kill ends the process at once and waits until it is gone.
func (p *Process) Kill() {
	_ = p.command.Process.Kill()
	<-p.done
}

// LogTail returns the last lines that the program printed, each indented.
func (p *Process) LogTail(lines int) string {
	file, err := os.Open(p.logFile)
	if err != nil {
		return fmt.Sprintf("  (no log: %v)", err)
	}
	defer func() { _ = file.Close() }()
	tail := make([]string, 0, lines)
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		if len(tail) == lines {
			tail = tail[1:]
		}
		tail = append(tail, "  "+scanner.Text())
	}
	return strings.Join(tail, "\n")
}

// Await calls check until it returns nil. It gives up when the context ends or
// one of the processes does, and then says what check said last. A check that the
// end of the context cuts off says nothing but that, so the answer before it counts.
func Await(ctx context.Context, check func(context.Context) error, processes ...*Process) error {
	ended := make(chan *Process, len(processes))
	watching, stop := context.WithCancel(ctx)
	defer stop()
	for _, process := range processes {
		go func() {
			select {
			case <-process.Done():
				ended <- process
			case <-watching.Done():
			}
		}()
	}
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case process := <-ended:
			return &EndedError{Process: process}
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w", last)
		case <-ticker.C:
		}
	}
}

// EndedError says that a process ended that should have gone on.
type EndedError struct {
	// Process is the process that ended.
	Process *Process
}

// Error names the program and shows the end of its log.
func (e *EndedError) Error() string {
	how := "ended"
	if err := e.Process.Err(); err != nil {
		how = fmt.Sprintf("ended (%v)", err)
	}
	return fmt.Sprintf("%s %s; the end of its log %s:\n%s", e.Process.name, how, e.Process.logFile, e.Process.LogTail(20))
}
