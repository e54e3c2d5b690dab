package deployment

import (
	"os"
	"path/filepath"
	"testing"
)

// Python is the interpreter that has the packages of the tests.
func Python(tb testing.TB) string {
	tb.Helper()
	path := os.Getenv("COUNTERSIGN_PYTHON")
	if path == "" {
		path = filepath.Join(Root(), "build", "venv", "bin", "python")
	}
	if _, err := os.Stat(path); err != nil { //nolint:gosec // whoever runs the tests names the interpreter
		tb.Fatalf("the Python packages are not installed; `make test-end-to-end` installs them: %v", err)
	}
	return path
}
