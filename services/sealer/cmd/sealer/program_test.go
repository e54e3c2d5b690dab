package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// runProgram is the sealer as a process of its own.
func runProgram(t *testing.T, arguments ...string) *exec.Cmd {
	t.Helper()

	executable, err := os.Executable()
	check(t, err)

	command := exec.CommandContext(t.Context(), executable, arguments...)
	command.Env = append(os.Environ(), asProgram+"=1")

	return command
}

// await reads the log up to a line that holds the text.
func await(t *testing.T, logged *bufio.Scanner, text string) {
	t.Helper()

	for logged.Scan() {
		if strings.Contains(logged.Text(), text) {
			return
		}
	}

	t.Errorf("the log ended without %s", text)
}

func TestTheProgramServesUntilItIsTold(t *testing.T) {
	t.Parallel()

	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		directory := t.TempDir()
		keys, socket, file := filepath.Join(directory, "keys"), filepath.Join(directory, "s"), filepath.Join(directory, "sealer.yaml")
		check(t, runProgram(t, "keys", "new", "--file", keys).Run())
		check(t, runProgram(t, "keys", "rotate", "--file", keys).Run())
		check(t, os.WriteFile(file, []byte("listen: unix:"+socket+"\noperationsListen: 127.0.0.1:0\nkeys: {source: file, file: "+keys+"}\n"), 0o600))
		check(t, runProgram(t, "serve", "--config", file, "--validate-config").Run())

		if _, err := os.Stat(socket); !os.IsNotExist(err) {
			t.Errorf("validating opened the listener: %v", err)
		}

		program := runProgram(t, "serve", "--config", file)

		output, err := program.StderrPipe()
		check(t, err)
		check(t, program.Start())

		logged := bufio.NewScanner(output)
		await(t, logged, `"msg":"serving","service":"sealer","listen":"unix:`+socket)

		check(t, roundTrip(t, dial(t, "unix:"+socket, insecure.NewCredentials())))
		check(t, program.Process.Signal(signal))

		await(t, logged, `"msg":"stopping"`)

		err = program.Wait()
		if err != nil {
			t.Errorf("%s: %v", signal, err)
		}

		if _, err := os.Stat(socket); !os.IsNotExist(err) {
			t.Errorf("%s: the socket is still there: %v", signal, err)
		}
	}
}

func TestASecondSignalEndsTheProgramAtOnce(t *testing.T) {
	t.Parallel()

	directory := t.TempDir()
	socket, file := filepath.Join(directory, "s"), filepath.Join(directory, "sealer.yaml")
	check(t, os.WriteFile(file, []byte("listen: unix:"+socket+"\noperationsListen: 127.0.0.1:0\nkeys: {source: ephemeral}\n"), 0o600))

	program := runProgram(t, "serve", "--config", file)

	output, err := program.StderrPipe()
	check(t, err)
	check(t, program.Start())

	logged := bufio.NewScanner(output)
	await(t, logged, `"msg":"serving"`)

	// A stream that is open holds a graceful stop up.
	watch, err := healthv1.NewHealthClient(dial(t, "unix:"+socket, insecure.NewCredentials())).Watch(t.Context(), &healthv1.HealthCheckRequest{})
	check(t, err)

	_, err = watch.Recv()
	check(t, err)
	check(t, program.Process.Signal(syscall.SIGTERM))
	await(t, logged, `"msg":"told to stop`)
	check(t, program.Process.Signal(syscall.SIGTERM))

	err = program.Wait()
	if status, ok := program.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != syscall.SIGTERM {
		t.Errorf("it ended with %v, not by the signal", err)
	}
}

func TestTheProgramRefusesToStartAndSaysWhy(t *testing.T) {
	t.Parallel()

	directory := t.TempDir()
	file := filepath.Join(directory, "sealer.yaml")
	check(t, os.WriteFile(file, []byte("listen: 0.0.0.0:0\nkeys: {source: ephemeral}\n"), 0o600))
	check(t, os.Chmod(file, 0o644))

	for want, arguments := range map[string][]string{
		"plaintext is allowed only on a loopback address or a Unix socket": {"serve", "--config", file},
		"others than its owner": {"keys", "list", "--file", file},
		"file already exists":   {"keys", "new", "--file", file},
		"missing flags":         {"serve"},
	} {
		var output bytes.Buffer

		program := runProgram(t, arguments...)
		program.Stderr = &output

		err := program.Run()
		if err == nil || !strings.Contains(output.String(), want) {
			t.Errorf("%v: got %v, %s", arguments, err, output.String())
		}
	}
}
