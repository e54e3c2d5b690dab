// Package ephemeral is a source of keys that makes one key when the process starts
// and forgets it when the process ends.
//
// It serves a trial on one machine, where nobody should have to make a key first.
// What is lost is everything that outlives the process or leaves it: a token made
// by another process or by an earlier run is refused. It says so in the log.
package ephemeral

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/countersign-mcp/countersign/services/sealer/keyring"
	"github.com/countersign-mcp/countersign/services/sealer/token"
)

// Warning is what the log says when a source is made.
const Warning = "the keys are ephemeral: request state from another process or from an earlier run of this one is refused"

// Source gives one version.
type Source struct{ version keyring.Version }

// New makes a root from the random source.
func New(now time.Time, random io.Reader, logger *slog.Logger) (*Source, error) {
	root := make([]byte, token.MinRootSize)

	_, err := io.ReadFull(random, root)
	if err != nil {
		return nil, fmt.Errorf("make ephemeral key: %w", err)
	}

	logger.Warn(Warning)

	return &Source{version: keyring.Version{Number: 1, Created: now, Root: token.NewSecret(root)}}, nil
}

// Versions implements keyring.Source.
func (s *Source) Versions(ctx context.Context) ([]keyring.Version, error) {
	err := ctx.Err()
	if err != nil {
		return nil, fmt.Errorf("read ephemeral key: %w", err)
	}

	return []keyring.Version{s.version}, nil
}
