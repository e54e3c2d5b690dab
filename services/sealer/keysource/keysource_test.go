package keysource_test

import (
	"crypto/rand"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign-mcp/countersign/services/internal/config"
	"github.com/countersign-mcp/countersign/services/sealer/keyring"
	"github.com/countersign-mcp/countersign/services/sealer/keysource"
	"github.com/countersign-mcp/countersign/services/sealer/keysource/file"
)

func TestAConfigurationThatIsWrongNamesTheField(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"source: ephemeral":                                   "",
		"source: file\nfile: /keys":                           "",
		"file: /keys":                                         "source is missing",
		"source: vault":                                       `source "vault" is unknown`,
		"source: file":                                        "file is missing",
		"source: ephemeral\nfile: /keys":                      "file is given",
		"source: ephemeral\nrefresh: 0s":                      "refresh",
		"source: ephemeral\nhardAge: 10s":                     "hard age",
		"source: ephemeral\nactivationDelay: 60m":             "activation delay",
		"source: ephemeral\nhardAge: 5m\nrefresh: 1m":         "",
		"source: ephemeral\nhardAge: 2h\nactivationDelay: 3h": "",
	} {
		configuration := keysource.Defaults()

		err := config.Decode("text", []byte(text), &configuration)
		if err != nil {
			t.Fatal(err)
		}

		err = configuration.Check()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestTheDefaultsAreThoseOfTheKeyring(t *testing.T) {
	t.Parallel()

	if got := keysource.Defaults().Settings(); got != keyring.Defaults() {
		t.Errorf("got %+v", got)
	}
}

func TestOpenMakesTheSourceThatIsNamed(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "keys")

	err := file.Create(path, time.Now(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	for _, configuration := range []keysource.Configuration{{Source: keysource.File, File: path}, {Source: keysource.Ephemeral}} {
		source, err := configuration.Open(time.Now(), rand.Reader, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}

		versions, err := source.Versions(t.Context())
		if err != nil || len(versions) != 1 {
			t.Errorf("%s: got %d versions, %v", configuration.Source, len(versions), err)
		}
	}
}
