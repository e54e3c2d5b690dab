// Package keysource chooses a source of keys by configuration, for the sealer and
// for whatever has a sealer within it.
//
// Each kind of source is a package in this folder and passes the suite of
// sourcetest. This package knows them all, and nothing else needs to.
package keysource

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/countersign-mcp/countersign/services/internal/config"
	"github.com/countersign-mcp/countersign/services/sealer/keyring"
	"github.com/countersign-mcp/countersign/services/sealer/keysource/ephemeral"
	"github.com/countersign-mcp/countersign/services/sealer/keysource/file"
)

// The values of Configuration.Source.
const (
	// File reads keys from a file.
	File = "file"
	// Ephemeral makes a key for the process alone.
	Ephemeral = "ephemeral"
)

// Configuration is where keys come from and how they age.
type Configuration struct {
	// Source is `file` or `ephemeral`. With `ephemeral` the key is made when the
	// process starts and lost when it ends: request state from another process or
	// from an earlier run is refused.
	Source string `yaml:"source"`
	// File is the path of the key file, for the source `file`. Make it with `sealer
	// keys new`, rotate it with `sealer keys rotate`. Its owner alone may read it,
	// and all replicas need the same.
	File string `yaml:"file"`
	// Refresh is how often the source is asked for new versions, give or take a
	// tenth. Default 30s.
	Refresh config.Duration `yaml:"refresh"`
	// HardAge is how old the keys may be. A sealer whose source does not answer for
	// longer is unavailable; until then it keeps honouring a version that was revoked
	// meanwhile. Default 60m.
	HardAge config.Duration `yaml:"hardAge"`
	// ActivationDelay is how long a new version only opens before it seals. It must
	// be longer than hardAge, so that every sealer that answers knows a version
	// before any seals with it. Default 65m.
	ActivationDelay config.Duration `yaml:"activationDelay"`
}

// Defaults is the configuration of whom was told nothing but where keys come from.
func Defaults() Configuration {
	defaults := keyring.Defaults()

	return Configuration{
		Refresh:         config.Duration(defaults.Refresh),
		HardAge:         config.Duration(defaults.HardAge),
		ActivationDelay: config.Duration(defaults.ActivationDelay),
	}
}

// Settings returns the times that a keyring goes by.
func (c Configuration) Settings() keyring.Settings {
	return keyring.Settings{
		Refresh:         c.Refresh.Duration(),
		HardAge:         c.HardAge.Duration(),
		ActivationDelay: c.ActivationDelay.Duration(),
	}
}

// Check returns an error that names the field that is wrong.
func (c Configuration) Check() error {
	switch {
	case c.Source == "":
		return errors.New("source is missing: want file or ephemeral")
	case c.Source != File && c.Source != Ephemeral:
		return fmt.Errorf("source %q is unknown: want file or ephemeral", c.Source)
	case c.Source == File && c.File == "":
		return errors.New("file is missing: the source is file")
	case c.Source != File && c.File != "":
		return fmt.Errorf("file is given, and the source is %s", c.Source)
	default:
		return c.Settings().Check()
	}
}

// Open makes the source. It reads nothing yet.
func (c Configuration) Open(now time.Time, random io.Reader, logger *slog.Logger) (keyring.Source, error) {
	if c.Source == Ephemeral {
		return ephemeral.New(now, random, logger)
	}

	return file.New(c.File), nil
}
