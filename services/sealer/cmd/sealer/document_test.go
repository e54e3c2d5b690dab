package main

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/countersign-mcp/countersign/services/internal/certificates"
	"github.com/countersign-mcp/countersign/services/internal/config/configtest"
	"github.com/countersign-mcp/countersign/services/internal/tracing"
	"github.com/countersign-mcp/countersign/services/sealer/keysource"
)

func TestEveryOptionOfTheSealerIsDescribed(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "sealer.yaml")
	check(t, os.WriteFile(path, []byte("keys: {source: ephemeral}\n"), 0o600))

	configuration, err := loadConfiguration(path)
	check(t, err)

	configuration.Keys.Source = "" // It has no default, and must be given.

	configtest.Document{
		Path:    "../../../../docs/operations.md",
		Heading: "The sealer's options",
		Shared: map[reflect.Type]string{
			reflect.TypeFor[certificates.Files]():      "Certificates",
			reflect.TypeFor[keysource.Configuration](): "Keys",
			reflect.TypeFor[tracing.Configuration]():   "Tracing",
		},
	}.Compare(t, *configuration)
}
