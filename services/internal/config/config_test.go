package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/countersign-mcp/countersign/services/internal/config"
)

type service struct {
	Listen   string          `yaml:"listen"`
	Limit    config.Bytes    `yaml:"limit"`
	Count    uint8           `yaml:"count"`
	Keys     keys            `yaml:"keys"`
	Handlers []handler       `yaml:"handlers"`
	Wait     config.Duration `yaml:"wait"`
}

type keys struct {
	Source  string          `yaml:"source"`
	Refresh config.Duration `yaml:"refresh"`
}

type handler struct {
	Name string `yaml:"name"`
}

func load(t *testing.T, text string, into any) error {
	t.Helper()

	path := filepath.Join(t.TempDir(), "service.yaml")

	err := os.WriteFile(path, []byte(text), 0o600)
	if err != nil {
		t.Fatal(err)
	}

	return config.Load(path, into)
}

func TestLoadFillsTheStruct(t *testing.T) {
	t.Parallel()

	var got service

	err := load(t, "listen: 127.0.0.1:0\nlimit: 16KiB\nwait: 1h5m\nkeys:\n  refresh: 30s\nhandlers:\n  - name: refunds\n", &got)
	if err != nil {
		t.Fatal(err)
	}

	if got.Limit != 16<<10 || got.Wait.Duration() != 65*time.Minute || got.Keys.Refresh.Duration() != 30*time.Second ||
		got.Listen != "127.0.0.1:0" || len(got.Handlers) != 1 || got.Handlers[0].Name != "refunds" {
		t.Errorf("got %+v", got)
	}
}

func TestLoadKeepsDefaultsTheFileDoesNotName(t *testing.T) {
	t.Parallel()

	for name, text := range map[string]string{
		"a sibling is named": "keys:\n  source: file\n",
		"the file is empty":  "",
		"only comments":      "# nothing\n",
		"only a separator":   "---\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := service{Limit: 7, Keys: keys{Refresh: config.Duration(time.Second)}}

			err := load(t, text, &got)
			if err != nil {
				t.Fatal(err)
			}

			if got.Limit != 7 || got.Keys.Refresh.Duration() != time.Second {
				t.Errorf("defaults were lost: %+v", got)
			}
		})
	}
}

func TestLoadNamesFileLineAndField(t *testing.T) {
	t.Parallel()

	const secret = "hunter2secret"

	for name, test := range map[string]struct {
		text, field, problem string
		line                 int
	}{
		"unknown field":        {"listen: a\nlisten2: " + secret + "\n", "listen2", "is not a field", 2},
		"unknown nested field": {"keys:\n  source: file\n  refesh: 1s\n", "keys.refesh", "is not a field", 3},
		"wrong case":           {"Listen: a\n", "Listen", "is not a field", 1},
		"given twice":          {"listen: a\nlisten: b\n", "", "", 2},
		"bad duration":         {"keys:\n  source: file\n  refresh: " + secret + "\n", "keys.refresh", "is not a duration", 3},
		"duration no unit":     {"wait: 30\n", "wait", "is not a duration", 1},
		"bad bytes":            {"limit: 16 " + secret + "\n", "limit", "is not a number of bytes", 1},
		"negative bytes":       {"limit: -1\n", "limit", "is not a number of bytes", 1},
		"too many bytes":       {"limit: 9223372036854775807GiB\n", "limit", "more bytes than can be counted", 1},
		"wrong type":           {"count: " + secret + "\n", "count", "want uint8", 1},
		"overflow":             {"count: 4000\n", "count", "does not fit uint8", 1},
		"wrong shape":          {"listen: a\nkeys: [" + secret + "]\n", "keys", "want", 2},
		"in a list":            {"handlers:\n  - name: a\n  - nam: b\n", "handlers[1].nam", "is not a field", 3},
		"not YAML":             {"listen: a\n\tlimit: 1\n", "", "is not valid YAML", 2},
		"two documents":        {"listen: a\n---\nlisten: b\n", "", "more than one YAML document", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			err := load(t, test.text, &service{})
			if err == nil {
				t.Fatal("the file was accepted")
			}

			if !strings.Contains(err.Error(), "service.yaml") || !strings.Contains(err.Error(), test.problem) {
				t.Errorf("the error does not name the file and the problem: %v", err)
			}

			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error repeats the value: %v", err)
			}

			var positioned *config.Error
			if test.line > 0 && (!errors.As(err, &positioned) || positioned.Line != test.line || positioned.Field != test.field) {
				t.Errorf("want line %d field %q: %v", test.line, test.field, err)
			}
		})
	}
}

func TestLoadSaysThatTheFileIsMissing(t *testing.T) {
	t.Parallel()

	err := config.Load(filepath.Join(t.TempDir(), "absent.yaml"), &service{})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestValuesReadBackAsWritten(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		want := service{
			Limit: config.Bytes(rapid.Int64Min(0).Draw(t, "bytes")),
			Wait:  config.Duration(rapid.Int64().Draw(t, "nanoseconds")),
		}

		var got service

		err := config.Decode("text", []byte("limit: "+want.Limit.String()+"\nwait: "+want.Wait.String()+"\n"), &got)
		if err != nil {
			t.Fatal(err)
		}

		if got.Limit != want.Limit || got.Wait != want.Wait {
			t.Fatalf("wrote %+v, read %+v", want, got)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("listen: a\nkeys: {refresh: 1s}\n"))
	f.Add([]byte("limit: &a 1\nwait: *a\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		var into service

		err := config.Decode("fuzzed", content, &into)
		if err != nil && !strings.HasPrefix(err.Error(), "fuzzed") {
			t.Errorf("the error does not name the file: %v", err)
		}
	})
}
