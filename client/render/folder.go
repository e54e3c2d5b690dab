package render

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Folder is where content is saved. The names are this program's, never a
// server's, and nothing that exists is overwritten.
type Folder struct {
	// Path is the folder. It is made when something is saved.
	Path string

	saved int
}

// Save writes data to a new file and returns its path.
func (f *Folder) Save(what, mimeType string, data []byte) (string, error) {
	if err := os.MkdirAll(f.Path, 0o750); err != nil {
		return "", fmt.Errorf("make the folder %q: %w", f.Path, err)
	}
	for {
		f.saved++
		path := filepath.Join(f.Path, fmt.Sprintf("%s-%d%s", what, f.saved, extension(mimeType)))
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("make the file %q: %w", path, err)
		}
		if _, err = file.Write(data); err != nil {
			_ = file.Close() // the error of writing is the one that counts
			return "", fmt.Errorf("write the file %q: %w", path, err)
		}
		if err = file.Close(); err != nil {
			return "", fmt.Errorf("write the file %q: %w", path, err)
		}
		return path, nil
	}
}

// extension is the ending of a file's name. What is not known here is not taken
// from the server.
func extension(mimeType string) string {
	extensions := map[string]string{
		"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp", "image/svg+xml": ".svg",
		"audio/wav": ".wav", "audio/mpeg": ".mp3", "audio/ogg": ".ogg",
		"application/pdf": ".pdf", "application/json": ".json", "text/plain": ".txt", "text/markdown": ".md",
	}
	if known, ok := extensions[mimeType]; ok {
		return known
	}
	return ".bin"
}
