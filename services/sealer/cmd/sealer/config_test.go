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
