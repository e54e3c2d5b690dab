package regularfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/countersign-mcp/countersign/services/internal/regularfile"
)

func TestOnlyRegularFilesOfTheRightSizeAndModeAreRead(t *testing.T) {
	t.Parallel()

	directory := t.TempDir()
	path, pipe := filepath.Join(directory, "file"), filepath.Join(directory, "pipe")

	err := errors.Join(os.WriteFile(path, []byte("four"), 0o600), syscall.Mkfifo(pipe, 0o600))
	if err != nil {
		t.Fatal(err)
	}

	forbidden := errors.New("its mode will not do")

	for name, test := range map[string]struct {
		path    string
		most    int64
		allowed func(fs.FileMode) error
		want    string
	}{
		"as long as allowed": {path: path, most: 4},
		"too long":           {path: path, most: 3, want: "longer than 3 bytes"},
		"allowed":            {path: path, most: 4, allowed: func(fs.FileMode) error { return nil }},
		"forbidden":          {path: path, most: 4, allowed: func(fs.FileMode) error { return forbidden }, want: forbidden.Error()},
		"a pipe":             {path: pipe, most: 4, want: "not a regular file"},
		"a directory":        {path: directory, most: 4, want: "not a regular file"},
		"absent":             {path: path + ".absent", most: 4, want: "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			content, err := regularfile.Read(test.path, test.most, test.allowed)

			switch {
			case test.want == "":
				if err != nil || string(content) != "four" {
					t.Errorf("got %q, %v", content, err)
				}
			case err == nil || !strings.Contains(err.Error(), test.want):
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
