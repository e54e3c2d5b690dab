package file

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/countersign-mcp/countersign/services/sealer/keyring"
	"github.com/countersign-mcp/countersign/services/sealer/token"
)

// Create makes a key file with one version. It never replaces a file.
func Create(path string, now time.Time, random io.Reader) error {
	return locked(path, func() error {
		_, err := os.Lstat(path)
		if err == nil {
			return fmt.Errorf("make key file %q: %w", path, fs.ErrExist)
		}

		if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("make key file: %w", err)
		}

		return write(path, 1, nil, now, random)
	})
}

// Rotate adds a version to a key file, with a root of its own, and returns its
// number. Readers see the file as it was or as it is, never in between.
func Rotate(path string, now time.Time, random io.Reader) (number uint64, err error) {
	err = locked(path, func() error {
		content, err := read(path)
		if err != nil {
			return fmt.Errorf("rotate key file %q: %w", path, err)
		}

		found, err := parse(path, content)
		if err != nil {
			return fmt.Errorf("rotate key file: %w", err)
		}

		versions, err := found.keys(path)
		if err != nil {
			return fmt.Errorf("rotate: %w", err)
		}

		_, err = keyring.NewRing(versions, now)
		if err != nil {
			return fmt.Errorf("rotate key file %q: %w", path, err)
		}

		for _, each := range versions {
			number = max(number, each.Number)
			// A clock that is behind must not make the new version an old one.
			if now.Before(each.Created) {
				return fmt.Errorf("rotate key file %q: version %d was made in the future, at %s", path, each.Number, each.Created.Format(time.RFC3339))
			}
		}

		number++

		return write(path, found.MinVersion, versions, now, random)
	})

	return number, err
}

// write replaces the file with one that holds the versions and a new one.
func write(path string, minVersion uint64, versions []keyring.Version, now time.Time, random io.Reader) error {
	root := make([]byte, token.MinRootSize)

	_, err := io.ReadFull(random, root)
	if err != nil {
		return fmt.Errorf("make root: %w", err)
	}

	var number uint64
	for _, each := range versions {
		number = max(number, each.Number)
	}

	versions = append(versions, keyring.Version{Number: number + 1, Created: now, Root: token.NewSecret(root)})
	content := fmt.Appendf(nil, "minVersion: %d\nversions:\n", minVersion)

	for _, each := range versions {
		content = fmt.Appendf(content, "  - number: %d\n    created: %s\n    root: ", each.Number, each.Created.UTC().Format(time.RFC3339))
		content = base64.StdEncoding.AppendEncode(content, each.Root.Reveal())
		content = append(content, '\n')
	}

	err = replace(path, content)
	if err != nil {
		return fmt.Errorf("write key file %q: %w", path, err)
	}

	return nil
}

// replace puts the content where the path is in one step that survives a crash.
func replace(path string, content []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), ".keys-*") // Mode 0600.
	if err != nil {
		return err
	}

	_, err = temporary.Write(content)
	if err == nil {
		err = temporary.Sync()
	}

	err = errors.Join(err, temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}

	if err != nil {
		return errors.Join(err, os.Remove(temporary.Name()))
	}

	directory, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}

	// Without this the new name may be lost in a crash. The old file is then there.
	return errors.Join(directory.Sync(), directory.Close())
}

// locked runs the change while no other process changes a key file in the same
// directory: of two rotations at the same time, none is lost.
func locked(path string, change func() error) error {
	directory, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("open the directory of the key file: %w", err)
	}
	defer func() { _ = directory.Close() }() // Closing it also unlocks it.

	err = syscall.Flock(int(directory.Fd()), syscall.LOCK_EX)
	if err != nil {
		return fmt.Errorf("lock the directory of %q: %w", path, err)
	}

	return change()
}
