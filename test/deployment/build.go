// Package deployment runs the suite's programs for a test: real processes, real
// gRPC and HTTP on loopback, configured by files as an operator would.
//
// The programs are built once for a test binary, with the race detector where Go
// has one. Each runs with a configuration of its own in the test's folder, on ports
// that the system picks and the program logs, and is ended by its process id when
// the test is over. What it printed is shown when the test fails, and a data race
// that it reported fails the test.
//
// The limit: everything is on one machine, and speaks plaintext unless a test gives
// it a certificate.
package deployment

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// Root is the root of the checkout.
func Root() string {
	var caller [1]uintptr
	runtime.Callers(1, caller[:])
	frame, _ := runtime.CallersFrames(caller[:]).Next()
	return filepath.Dir(filepath.Dir(filepath.Dir(frame.File)))
}

// commands are the packages of the programs, by the folder of their module.
var commands = map[string][]string{
	".":                          {"./services/sealer/cmd/sealer", "./services/mcpedge/cmd/mcpedge"},
	"client":                     {"./cmd/countersign"},
	"services/handlers/examples": {"./refunds", "./everything"},
}

// build builds the programs and returns the folder they are in. Several test
// binaries may do so at once and run what another has built: a program is replaced
// in one step, never written where it runs.
var build = sync.OnceValues(func() (string, error) {
	folder := filepath.Join(Root(), "build", "test-bin")
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return "", fmt.Errorf("make folder of programs: %w", err)
	}
	fresh, err := os.MkdirTemp(filepath.Dir(folder), "test-bin-")
	if err != nil {
		return "", fmt.Errorf("make folder of programs: %w", err)
	}
	for module, packages := range commands {
		arguments := []string{"build", "-C", filepath.Join(Root(), module), "-o", fresh + "/"}
		if raceDetector() {
			arguments = append(arguments, "-race")
		}
		output, err := exec.Command("go", append(arguments, packages...)...).CombinedOutput() //nolint:gosec // ends with the test binary
		if err != nil {
			return "", fmt.Errorf("build the programs of %q: %w: %s", module, err, output)
		}
	}
	programs, err := os.ReadDir(fresh)
	if err != nil {
		return "", fmt.Errorf("list programs: %w", err)
	}
	for _, program := range programs {
		if err := os.Rename(filepath.Join(fresh, program.Name()), filepath.Join(folder, program.Name())); err != nil {
			return "", fmt.Errorf("put program in place: %w", err)
		}
	}
	return folder, os.Remove(fresh)
})

// raceDetector says whether programs can be built with the race detector: it needs
// a C compiler.
func raceDetector() bool {
	_, err := exec.LookPath("cc")
	return err == nil
}

// Program returns the path of one of the suite's programs, built from this tree.
func Program(tb testing.TB, name string) string {
	tb.Helper()
	folder, err := build()
	if err != nil {
		tb.Fatal(err)
	}
	return filepath.Join(folder, name)
}
