package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// Ready returns a check for [Await]: that the readiness endpoint at url answers
// 200. The error is what the endpoint says is missing.
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
		body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
		if err != nil {
			return fmt.Errorf("read readiness: %w", err)
		}
		if response.StatusCode != http.StatusOK {
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
