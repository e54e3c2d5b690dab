// Package listener opens the addresses a service listens on and decides where a
// service may speak without TLS.
//
// The problem: plaintext gRPC is handy on a developer's machine and between two
// processes of one pod, and a mistake anywhere else. The mechanism: an address is
// either `host:port` or `unix:/path`, and CheckPlaintext allows plaintext only
// where the address cannot be reached from another machine.
//
// The limit: a name such as `localhost` counts as loopback because resolvers must
// resolve it so (RFC 6761); no other name is looked up, since what a name
// resolves to can change. What is lost: a service that listens on a private
// network needs certificates even where the network is trusted.
package listener

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrPlaintext is why a service refuses to start: it would speak without TLS where
// another machine can listen.
var ErrPlaintext = errors.New("plaintext is allowed only on a loopback address or a Unix socket")

// probeTimeout bounds how long Open waits to learn whether somebody listens on a
// socket. A live one on the same machine accepts at once.
const probeTimeout = time.Second

// Address is where a service listens.
type Address struct {
	network string
	address string
}

// Parse reads `host:port` or `unix:/absolute/path`. An empty host means every
// address of the machine, port 0 a free port.
func Parse(text string) (Address, error) {
	if path, found := strings.CutPrefix(text, "unix:"); found {
		if !strings.HasPrefix(path, "/") {
			return Address{}, fmt.Errorf("parse listen address %q: the path of a Unix socket must be absolute", text)
		}

		return Address{network: "unix", address: path}, nil
	}

	_, port, err := net.SplitHostPort(text)
	if err != nil {
		return Address{}, fmt.Errorf("parse listen address %q: want host:port or unix:/path: %w", text, err)
	}

	if port == "" {
		return Address{}, fmt.Errorf("parse listen address %q: the port is missing", text)
	}

	return Address{network: "tcp", address: text}, nil
}

// String returns the address as it was given to Parse. It is also a target that
// a gRPC client accepts.
func (a Address) String() string {
	if a.network == "unix" {
		return "unix:" + a.address
	}

	return a.address
}

// Local says whether only processes of this machine can reach the address.
func (a Address) Local() bool {
	if a.network == "unix" {
		return true
	}

	host, _, err := net.SplitHostPort(a.address)
	if err != nil {
		return false
	}

	if host == "localhost" {
		return true
	}

	parsed, err := netip.ParseAddr(host)

	return err == nil && parsed.Unmap().IsLoopback()
}

// CheckPlaintext returns an error that says why, unless the service has TLS or
// nobody on another machine can reach the address.
func CheckPlaintext(address Address, hasTLS bool) error {
	if hasTLS || address.Local() {
		return nil
	}

	return fmt.Errorf("listen on %q without TLS: %w: configure certificates or listen locally", address, ErrPlaintext)
}

// Open listens on the address. A Unix socket is made with mode 0600, so that only
// the same user can connect, and is removed when the listener closes. A socket
// file that a crashed process left behind is replaced; one that somebody listens
// on is not.
func Open(ctx context.Context, address Address) (net.Listener, error) {
	var configuration net.ListenConfig

	if address.network != "unix" {
		opened, err := configuration.Listen(ctx, address.network, address.address)
		if err != nil {
			return nil, fmt.Errorf("listen on %q: %w", address, err)
		}

		return opened, nil
	}

	err := removeStale(ctx, address.address)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", address, err)
	}

	// The mode is set by the mask while the socket is made: to change it
	// afterwards would leave a moment in which others can connect.
	opened, err := withMask(0o177, func() (net.Listener, error) {
		return configuration.Listen(ctx, address.network, address.address)
	})
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", address, err)
	}

	return opened, nil
}

// removeStale removes a socket that nobody listens on.
func removeStale(ctx context.Context, path string) error {
	information, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}

	if err != nil {
		return fmt.Errorf("look at socket: %w", err)
	}

	if information.Mode().Type() != fs.ModeSocket {
		return errors.New("a file that is not a socket is in the way")
	}

	dialer := net.Dialer{Timeout: probeTimeout}

	connection, err := dialer.DialContext(ctx, "unix", path)
	if err == nil {
		_ = connection.Close() // Nothing was sent; only that it could be opened matters.

		return errors.New("another process listens on the socket")
	}

	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("find out whether the socket is in use: %w", err)
	}

	err = os.Remove(path)
	if err != nil {
		return fmt.Errorf("remove stale socket: %w", err)
	}

	return nil
}

// maskLock guards the file mode creation mask, which belongs to the whole process.
var maskLock sync.Mutex

func withMask(mask int, open func() (net.Listener, error)) (net.Listener, error) {
	maskLock.Lock()
	defer maskLock.Unlock()

	before := syscall.Umask(mask)
	defer syscall.Umask(before)

	return open()
}
