package suite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
)

// maxReportBytes bounds how much of a readiness endpoint's answer is read.
const maxReportBytes = 1 << 20

// MissingError says what a service waits for before it is ready.
type MissingError struct {
	// Sentences say what is wrong, by the name of the check that fails.
	Sentences map[string]string
}

// Error names every check that fails, with its sentence.
func (e *MissingError) Error() string {
	lines := make([]string, 0, len(e.Sentences))
	for _, name := range slices.Sorted(maps.Keys(e.Sentences)) {
		lines = append(lines, name+": "+e.Sentences[name])
	}
	return strings.Join(lines, "; ")
}

// missing reads the answer of a readiness endpoint. It returns nil where the answer
// is none of ours.
func missing(body []byte) *MissingError {
	var report struct {
		Checks map[string]string `json:"checks"`
	}
	if json.Unmarshal(body, &report) != nil {
		report.Checks = nil
	}
	maps.DeleteFunc(report.Checks, func(_, said string) bool { return said == "ok" })
	if len(report.Checks) == 0 {
		return nil
	}
	return &MissingError{Sentences: report.Checks}
}

// Ready returns a check for [Await]: that the readiness endpoint at url answers
// 200. The error is a [MissingError] where the endpoint says what is missing.
func Ready(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return fmt.Errorf("ask %q: %w", url, err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return fmt.Errorf("ask for readiness: %w", err)
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(io.LimitReader(response.Body, maxReportBytes))
		if err != nil {
			return fmt.Errorf("read readiness: %w", err)
		}
		if response.StatusCode != http.StatusOK {
			if missing := missing(body); missing != nil {
				return missing
			}
			return fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(body)))
		}
		return nil
	}
}

// Listening returns a check for [Await]: that something accepts connections at a
// TCP address.
func Listening(address string) func(context.Context) error {
	return func(ctx context.Context) error {
		var dialer net.Dialer
		connection, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		return connection.Close()
	}
}

// Free says whether a TCP address can be listened on. If not, the error is a
// sentence for the person who wants to.
func Free(ctx context.Context, name, address string) error {
	var configuration net.ListenConfig
	listener, err := configuration.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("%s cannot listen on %s: %w; if another program has the address, end it first",
			name, address, errors.Unwrap(err))
	}
	return listener.Close()
}
