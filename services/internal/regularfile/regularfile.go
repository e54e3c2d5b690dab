// Package regularfile opens files that an operator names and may replace while a
// service runs.
//
// The problem: to open a named pipe waits until somebody writes to it, so a path
// that is one for a moment would stop whoever reads it, and for good. The
// mechanism: the file is opened without waiting, and what was opened, not the path,
// is looked at, as the path may have been replaced in between. Whatever is not a
// regular file is refused.
//
// The limit: a regular file on a file system that does not answer still makes the
// caller wait. What is lost: a file cannot be given as a pipe, such as the shell's
// `<(...)`.
package regularfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Read returns the content of the file at path, which must be regular and no longer
// than most bytes. Allowed, if it is not nil, says whether the file's mode will do.
// The error does not name the path.
func Read(path string, most int64, allowed func(fs.FileMode) error) ([]byte, error) {
	// The Go library adds O_CLOEXEC.
	opened, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		// What fails with its path would name it twice.
		if failed, ok := errors.AsType[*fs.PathError](err); ok {
			err = failed.Err
		}

		return nil, fmt.Errorf("open: %w", err)
	}
	defer func() { _ = opened.Close() }() // Nothing was written.

	information, err := opened.Stat()
	if err != nil {
		return nil, err
	}

	if !information.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}

	if allowed != nil {
		err = allowed(information.Mode())
		if err != nil {
			return nil, err
		}
	}

	content, err := io.ReadAll(io.LimitReader(opened, most+1))
	if err != nil {
		return nil, err
	}

	if int64(len(content)) > most {
		return nil, fmt.Errorf("it is longer than %d bytes", most)
	}

	return content, nil
}
