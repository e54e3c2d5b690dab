package tracing

import (
	"errors"
	"fmt"
	"strings"

	"github.com/countersign-mcp/countersign/services/internal/certificates"
)

// Configuration says where the spans of a process go. The same section is in the
// configuration of every service.
type Configuration struct {
	// Endpoint is the gRPC target of a collector that takes OTLP, for example
	// `dns:///collector:4317`. Without it the process makes no spans, and hands on the
	// trace context that it is given. What the collector asks for beyond TLS, such as a
	// token, goes into the environment variable OTEL_EXPORTER_OTLP_HEADERS.
	Endpoint string `yaml:"endpoint"`
	// SampleRatio is the share of traces, from 0 to 1, that is recorded of those that
	// begin here. A request that comes with a trace context is recorded if that says
	// so, whatever the ratio. Default 1.
	SampleRatio float64 `yaml:"sampleRatio"`
	// Insecure speaks plaintext with the collector. By default it must have a
	// certificate that the system trusts. Spans hold names of methods, tools and
	// services, and nothing of what clients, users and handlers say.
	Insecure bool `yaml:"insecure"`
	// TLS is the client's side of mutual TLS with the collector.
	TLS certificates.Files `yaml:"tls"`
}

// Defaults is the configuration before the file is read.
func Defaults() Configuration { return Configuration{SampleRatio: 1} }

// Check returns an error that says which field is wrong and why.
func (c Configuration) Check() error {
	inRange := c.SampleRatio >= 0 && c.SampleRatio <= 1 // NaN is not
	if !inRange {
		return errors.New("sampleRatio: must be between 0 and 1")
	}

	if strings.HasPrefix(c.Endpoint, "http://") || strings.HasPrefix(c.Endpoint, "https://") {
		return errors.New("endpoint: must be a gRPC target such as dns:///collector:4317, not a URL")
	}

	if c.Endpoint == "" && (c.Insecure || c.TLS.Configured()) {
		return errors.New("endpoint: must not be empty where insecure or tls is given")
	}

	if !c.TLS.Configured() {
		return nil
	}

	if c.Insecure {
		return errors.New("insecure: plaintext and tls exclude each other")
	}

	err := c.TLS.Check()
	if err != nil {
		return fmt.Errorf("tls: %w", err)
	}

	return nil
}
