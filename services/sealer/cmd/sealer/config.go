package main

import (
	"errors"
	"fmt"
	"math"

	"github.com/countersign-mcp/countersign/services/internal/certificates"
	"github.com/countersign-mcp/countersign/services/internal/config"
	"github.com/countersign-mcp/countersign/services/internal/listener"
	"github.com/countersign-mcp/countersign/services/internal/tracing"
	"github.com/countersign-mcp/countersign/services/sealer/keysource"
)

// Configuration is the configuration file of the sealer. Unknown fields are
// refused.
type Configuration struct {
	// Listen is where edges connect: `host:port`, or `unix:/path` for an edge on the
	// same machine and of the same user.
	Listen string `yaml:"listen"`
	// OperationsListen is where /metrics, /healthz and /readyz are served over plain
	// HTTP. Nothing there is secret; keep it from the public all the same.
	OperationsListen string `yaml:"operationsListen"`
	// TLS is the server's side of mutual TLS: only a client with a certificate from
	// the authorities may call. Without it the sealer speaks plaintext, and starts
	// only if Listen is a loopback address or a socket. The files are read again when
	// they change.
	TLS certificates.Files `yaml:"tls"`
	// Keys are where the root keys come from.
	Keys keysource.Configuration `yaml:"keys"`
	// Tracing is where the spans of calls go; by default there are none.
	Tracing tracing.Configuration `yaml:"tracing"`
	// MaxMessageBytes is the largest message that is accepted or sent. It must hold a
	// request state. Default 4MiB.
	MaxMessageBytes config.Bytes `yaml:"maxMessageBytes"`
}

// loadConfiguration reads and checks a configuration file.
func loadConfiguration(path string) (*Configuration, error) {
	configuration := Configuration{
		Listen:           "127.0.0.1:8091",
		OperationsListen: "127.0.0.1:8092",
		Keys:             keysource.Defaults(),
		Tracing:          tracing.Defaults(),
		MaxMessageBytes:  4 << 20,
	}

	err := config.Load(path, &configuration)
	if err != nil {
		return nil, err
	}

	err = configuration.check()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}

	return &configuration, nil
}

// check returns an error that says which field is wrong and why.
func (c *Configuration) check() error {
	address, err := listener.Parse(c.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}

	err = listener.CheckPlaintext(address, c.TLS.Configured())
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}

	if c.TLS.Configured() {
		err = c.TLS.Check()
		if err != nil {
			return fmt.Errorf("tls: %w", err)
		}
	}

	_, err = listener.Parse(c.OperationsListen)
	if err != nil {
		return fmt.Errorf("operationsListen: %w", err)
	}

	if c.MaxMessageBytes <= 0 || c.MaxMessageBytes > math.MaxInt32 {
		return errors.New("maxMessageBytes must be more than zero and less than 2GiB")
	}

	err = c.Tracing.Check()
	if err != nil {
		return fmt.Errorf("tracing.%w", err)
	}

	err = c.Keys.Check()
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}

	return nil
}
