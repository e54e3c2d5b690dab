package certificates

import (
	"errors"
	"io"
	"net"
	"time"

	"google.golang.org/grpc/credentials"
)

// refusalLogInterval is the least time between two log lines about refused peers:
// a peer that tries again and again must not fill the log.
const refusalLogInterval = 10 * time.Second

// serverCredentials count and log peers that are refused. gRPC itself says nothing
// of them, and the peer sees only that the connection ends.
type serverCredentials struct {
	credentials.TransportCredentials

	source *Source
}

// ServerHandshake implements credentials.TransportCredentials.
func (c serverCredentials) ServerHandshake(connection net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := c.TransportCredentials.ServerHandshake(connection)
	// A peer that hangs up before it says anything is a probe, not a refusal.
	if err != nil && !errors.Is(err, io.EOF) {
		c.source.peerRefused(connection.RemoteAddr(), err)
	}

	return secured, info, err
}

// Clone implements credentials.TransportCredentials.
func (c serverCredentials) Clone() credentials.TransportCredentials {
	return serverCredentials{TransportCredentials: c.TransportCredentials.Clone(), source: c.source}
}

func (s *Source) peerRefused(address net.Addr, err error) {
	refused := s.refusedPeers.Add(1)
	now, last := time.Now().UnixNano(), s.refusalLogged.Load()

	if (last == 0 || now-last >= refusalLogInterval.Nanoseconds()) && s.refusalLogged.CompareAndSwap(last, now) {
		s.logger.Warn("peer refused in the TLS handshake", "address", address.String(), "error", err, "refusedSinceStart", refused)
	}
}

// RefusedPeers is how many peers were refused in the handshake.
func (s *Source) RefusedPeers() uint64 { return s.refusedPeers.Load() }
