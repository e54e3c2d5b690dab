package file

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/countersign-mcp/countersign/services/sealer/token"
)

// FuzzParse finds a defect if a key file makes the parser panic, gives a root that
// is too short, or has its root in an error.
func FuzzParse(f *testing.F) {
	root := base64.StdEncoding.EncodeToString([]byte("canary-canary-canary-canary-canary"))
	f.Add([]byte("minVersion: 1\nversions:\n  - number: 1\n    created: 2026-10-01T00:00:00Z\n    root: " + root + "\n"))
	f.Add([]byte(`{"versions": [{"number": 1, "created": "x", "root": "` + root + `"}]}`))
	f.Add([]byte("versions: [{root: " + root))
	f.Add([]byte("root: " + root + "\n\troot"))

	f.Fuzz(func(t *testing.T, content []byte) {
		found, err := parse("fuzzed", content)
		if err == nil {
			versions, keysErr := found.keys("fuzzed")
			err = keysErr

			for _, version := range versions {
				if len(version.Root.Reveal()) < token.MinRootSize {
					t.Error("a short root was taken")
				}
			}
		}

		if err != nil && strings.Contains(err.Error(), root[:20]) {
			t.Errorf("the error holds the root: %v", err)
		}
	})
}
