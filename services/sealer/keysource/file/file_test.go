package file_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/countersign-mcp/countersign/services/sealer/keysource/file"
	"github.com/countersign-mcp/countersign/services/sealer/keysource/sourcetest"
)

var start = time.Date(2026, time.October, 1, 0, 0, 0, 0, time.UTC)

func create(t *testing.T) string {
	t.Helper()

	path := filepath.Join(t.TempDir(), "keys.yaml")

	err := file.Create(path, start, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	return path
}

func TestSource(t *testing.T) {
	t.Parallel()

	sourcetest.Run(t, func(t *testing.T) sourcetest.Backend {
		t.Helper()

		path := create(t)
		now := start

		return sourcetest.Backend{
			Source: file.New(path),
			Rotate: func(t *testing.T) {
				t.Helper()

				now = now.Add(time.Hour)

				_, err := file.Rotate(path, now, rand.Reader)
				if err != nil {
					t.Fatal(err)
				}
			},
			RetireOldest: func(t *testing.T) {
				t.Helper()
				edit(t, path, "minVersion: 1", "minVersion: 2")
			},
			Break: func(t *testing.T) {
				t.Helper()
				edit(t, path, "versions:", "version:")
			},
			Mend: func(t *testing.T) {
				t.Helper()
				edit(t, path, "version:", "versions:")
			},
		}
	})
}

func edit(t *testing.T, path, before, after string) {
	t.Helper()

	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	err = os.WriteFile(path, bytes.Replace(content, []byte(before), []byte(after), 1), 0o600)
	if err != nil {
		t.Fatal(err)
	}
}

func TestOnlyTheOwnerMayReadAKeyFile(t *testing.T) {
	t.Parallel()

	for mode, allowed := range map[fs.FileMode]bool{
		0o600: true, 0o400: true, 0o640: false, 0o604: false, 0o620: false, 0o610: false, 0o644: false,
	} {
		path := create(t)

		err := os.Chmod(path, mode)
		if err != nil {
			t.Fatal(err)
		}

		_, err = file.Read(path)
		if (err == nil) != allowed {
			t.Errorf("mode %v: %v", mode, err)
		}

		if err != nil && !strings.Contains(err.Error(), "want 0600") {
			t.Errorf("the error does not say what to do: %v", err)
		}
	}
}

func TestAPipeIsRefusedAtOnce(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "keys.yaml")

	err := syscall.Mkfifo(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}

	// Nobody ever writes to it.
	_, err = file.New(path).Versions(t.Context())
	if err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("got %v", err)
	}
}

func TestAFileIsMadePrivateAndNeverReplaced(t *testing.T) {
	t.Parallel()

	path := create(t)

	information, err := os.Stat(path)
	if err != nil || information.Mode() != 0o600 {
		t.Errorf("got %v, %v", information.Mode(), err)
	}

	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	err = file.Create(path, start, rand.Reader)
	if !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v", err)
	}

	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file was changed, %v", err)
	}
}

func TestNoRotationIsLost(t *testing.T) {
	t.Parallel()

	path := create(t)

	var rotating sync.WaitGroup
	for range 8 {
		rotating.Go(func() {
			_, err := file.Rotate(path, start, rand.Reader)
			if err != nil {
				t.Error(err)
			}
		})
	}

	rotating.Wait()

	versions, err := file.Read(path)
	if err != nil || len(versions) != 9 || versions[8].Number != 9 {
		t.Errorf("got %d versions, %v", len(versions), err)
	}

	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestARotationThatFailsChangesNothing(t *testing.T) {
	t.Parallel()

	path := create(t)

	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	broken := errors.New("broken")

	_, err = file.Rotate(path, start, iotest.ErrReader(broken))
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}

	_, err = file.Rotate(path, start.Add(-time.Minute), rand.Reader)
	if err == nil || !strings.Contains(err.Error(), "in the future") {
		t.Errorf("with a clock that is behind: %v", err)
	}

	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file was changed, %v", err)
	}
}

func TestWhatIsNoKeyFileIsRefusedWithoutShowingIt(t *testing.T) {
	t.Parallel()

	root := base64.StdEncoding.EncodeToString([]byte("canary-canary-canary-canary-canary"))
	good := "{\"minVersion\": 1, \"versions\": [{\"number\": 1, \"created\": \"2026-10-01T00:00:00Z\", \"root\": \"" + root + "\"}]}"

	for name, test := range map[string]struct{ before, after, want string }{
		"an unknown field":    {`"number"`, `"nummer"`, "keys.json:1: is not a field"},
		"an unknown top":      {`"minVersion"`, `"minversion"`, "keys.json:1: is not a field"},
		"a bad time":          {"2026-10-01T00:00:00Z", "yesterday", "version 1: created"},
		"no time":             {`"created": "2026-10-01T00:00:00Z", `, "", "version 1: created"},
		"no base64":           {root[:4], "!" + root[1:4], "version 1: root is not base64"},
		"not canonical":       {root[len(root)-3:], "f==", "version 1: root is not base64"},
		"a short root":        {root, root[:16], "version 1: root has 12 bytes"},
		"no root":             {`, "root": "` + root + `"`, "", "version 1: root has 0 bytes"},
		"a root that is list": {`"` + root + `"`, `["` + root + `"]`, "version 1: root"},
		"a root as a name":    {`"root": "` + root + `"`, `"` + root + `": 1`, "is not a field"},
		"a negative number":   {`"number": 1`, `"number": -1`, "number"},
		"no YAML":             {"}]}", "", "not valid YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			path := filepath.Join(t.TempDir(), "keys.json")

			err := os.WriteFile(path, []byte(good), 0o600)
			if err != nil {
				t.Fatal(err)
			}

			_, err = file.Read(path)
			if err != nil {
				t.Fatalf("JSON is not read: %v", err)
			}

			edit(t, path, test.before, test.after)

			_, err = file.Read(path)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "keys.json") {
				t.Fatalf("got %v", err)
			}

			for _, shown := range []string{root[:10], "canary", "yesterday"} {
				if strings.Contains(err.Error(), shown) {
					t.Errorf("the error shows what is in the file: %v", err)
				}
			}
		})
	}

	_, err := file.Read(t.TempDir())
	if err == nil {
		t.Error("a directory was read")
	}
}
