package main

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/countersign-mcp/countersign/services/sealer/keysource/file"
)

func TestAConfigurationFileIsCheckedFieldByField(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"keys: {source: ephemeral}":                                                               "",
		"listen: unix:/run/sealer.sock\nkeys: {source: file, file: /keys}":                        "",
		"keys: {source: ephemeral}\nlistens: a":                                                   `sealer.yaml:2: field "listens"`,
		"listen: nowhere\nkeys: {source: ephemeral}":                                              "listen: parse",
		"listen: :8443\nkeys: {source: ephemeral}":                                                "plaintext is allowed only",
		"listen: :8443\ntls: {certificate: a}\nkeys: {source: ephemeral}":                         "tls: mutual TLS needs",
		"listen: :8443\ntls: {certificate: a, key: b, authorities: c}\nkeys: {source: ephemeral}": "",
		"operationsListen: nowhere\nkeys: {source: ephemeral}":                                    "operationsListen: parse",
		"maxMessageBytes: 2GiB\nkeys: {source: ephemeral}":                                        "maxMessageBytes",
		"maxMessageBytes: 0\nkeys: {source: ephemeral}":                                           "maxMessageBytes",
		"listen: 127.0.0.1:0":                                                                     "keys: source is missing",
		"keys: {source: ephemeral, hardAge: 2h}":                                                  "keys: activation delay",
		"keys: {source: ephemeral}\ntracing: {endpoint: 'collector:4317', sampleRatio: 2}":        "tracing.sampleRatio: must be",
		"keys: {source: ephemeral}\ntracing: {endpoint: 'collector:4317', insecure: true}":        "",
	} {
		path := filepath.Join(t.TempDir(), "sealer.yaml")
		check(t, os.WriteFile(path, []byte(text), 0o600))

		_, err := loadConfiguration(path)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestCoreDumpsAreDisabled(t *testing.T) {
	t.Parallel()

	check(t, disableCoreDumps())

	var limit syscall.Rlimit

	check(t, syscall.Getrlimit(syscall.RLIMIT_CORE, &limit))

	if limit.Cur != 0 || limit.Max != 0 {
		t.Errorf("got %+v", limit)
	}
}

func TestListingTakesTheFileAndTheDelayFromAConfiguration(t *testing.T) {
	t.Parallel()

	directory := t.TempDir()
	path := filepath.Join(directory, "keys")
	made := time.Now().Add(-3 * time.Hour)

	check(t, file.Create(path, made, rand.Reader))

	_, err := file.Rotate(path, made.Add(time.Hour), rand.Reader)
	check(t, err)

	configure := func(name, keys string) string {
		written := filepath.Join(directory, name)
		check(t, os.WriteFile(written, []byte("keys: {"+keys+"}\n"), 0o600))

		return written
	}
	slow := configure("slow.yaml", "source: file, file: "+path+", activationDelay: 4h")
	ephemeral := configure("ephemeral.yaml", "source: ephemeral")

	for _, test := range []struct {
		arguments []string
		want      string
		succeeds  bool
	}{
		{arguments: []string{"--file", path}, want: "active", succeeds: true},
		{arguments: []string{"--file", path, "--activation-delay", "4h"}, want: "prepared", succeeds: true},
		{arguments: []string{"--config", slow}, want: "prepared", succeeds: true},
		{arguments: []string{"--config", ephemeral}, want: "there is no file to list"},
		{arguments: []string{"--config", slow, "--file", path}, want: "can't be used together"},
		{arguments: []string{"--config", slow, "--activation-delay", "1h"}, want: "can't be used together"},
		{arguments: nil, want: "missing flags: --file=FILE or --config=FILE"},
	} {
		output, err := runProgram(t, append([]string{"keys", "list"}, test.arguments...)...).CombinedOutput()

		lines := strings.Split(strings.TrimSpace(string(output)), "\n")
		if last := lines[len(lines)-1]; (err == nil) != test.succeeds || !strings.Contains(last, test.want) {
			t.Errorf("%v: got %v, %s", test.arguments, err, output)
		}
	}
}

func TestKeysAreListedWithTheirStates(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "keys.yaml")
	made := time.Date(2026, time.October, 1, 0, 0, 0, 0, time.UTC)

	check(t, file.Create(path, made, rand.Reader))

	_, err := file.Rotate(path, made.Add(24*time.Hour), rand.Reader)
	check(t, err)

	var table bytes.Buffer

	check(t, listKeys(&table, path, made.Add(24*time.Hour), time.Hour))

	lines := strings.Split(strings.TrimSpace(table.String()), "\n")
	if len(lines) != 3 || !strings.HasSuffix(lines[1], "2026-10-01T00:00:00Z  active") || !strings.HasSuffix(lines[2], "2026-10-02T00:00:00Z  prepared") {
		t.Errorf("got %s", table.String())
	}
}
