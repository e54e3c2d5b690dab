// Package certificates gives a service mutual TLS from files that may change
// while it runs.
//
// The problem: certificates are short-lived, whoever renews them writes new files,
// and a service that must be restarted for it is restarted at the worst time. A
// Kubernetes secret changes by swapping the symbolic link `..data`, so that the
// files' own directory entries never change. The mechanism: the directories of the
// files are watched, and when events have settled the three files are read again;
// when their content is new and valid, an atomic pointer moves to it. A handshake
// reads the pointer and nothing else, so connections that stand keep what they
// have. The files are also read every few minutes without an event, because some
// file systems send none.
//
// The limit: the certificate and its key are two files and cannot be read in one
// step. A pair that does not match, like any other bad file, is logged and
// counted and the certificate in use stays. What is lost: if nobody looks at the
// log or at the count, a bad renewal shows only when the old certificate ends.
package certificates

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
	"google.golang.org/grpc/credentials"

	"github.com/countersign-mcp/countersign/services/internal/regularfile"
)

const (
	// settleAfter is how long no event must come before the files are read, so that
	// a renewal of several files is read as a whole.
	settleAfter = 100 * time.Millisecond
	// rereadAfter is when the files are read though no event came.
	rereadAfter = 5 * time.Minute
	// maxSize bounds each file; the authorities of all the world have some hundred
	// kilobytes.
	maxSize = 4 << 20
	// closeTimeout is how long Close waits for a reading under way.
	closeTimeout = time.Second
)

// Files names the files of one side of mutual TLS.
type Files struct {
	// Certificate is the path of the certificate chain in PEM, the service's own
	// certificate first.
	Certificate string `yaml:"certificate"`
	// Key is the path of the private key in PEM that belongs to the certificate.
	Key string `yaml:"key"`
	// Authorities is the path of the certificates in PEM of those whose word is
	// taken about who a peer is.
	Authorities string `yaml:"authorities"`
}

// Configured says whether any file is named. Open then needs all three.
func (f Files) Configured() bool { return f != Files{} }

// Check returns an error that says which file is not named.
func (f Files) Check() error {
	for position, name := range []string{"certificate", "key", "authorities"} {
		if f.paths()[position] == "" {
			return fmt.Errorf("mutual TLS needs certificate, key and authorities: %s is not given", name)
		}
	}

	return nil
}

// Source holds the certificates in use and follows the files.
type Source struct {
	files   Files
	logger  *slog.Logger
	current atomic.Pointer[material]
	reloads atomic.Uint64
	refused atomic.Uint64
	// refusedPeers counts handshakes of a server that failed; refusalLogged is when
	// one was last logged, in nanoseconds.
	refusedPeers  atomic.Uint64
	refusalLogged atomic.Int64
	watcher       *fsnotify.Watcher
	stopped       chan struct{}
	changed       chan struct{}
}

// material is one consistent reading of the files.
type material struct {
	certificate tls.Certificate
	authorities *x509.CertPool
	digest      [sha256.Size]byte
}

// Open reads the files and starts to follow them. The caller closes the Source.
func Open(files Files, logger *slog.Logger) (*Source, error) {
	err := files.Check()
	if err != nil {
		return nil, err
	}

	first, err := read(files)
	if err != nil {
		return nil, err
	}

	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch certificate files: %w", err)
	}

	for _, path := range files.paths() {
		err = watcher.Add(filepath.Dir(path))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("watch the directory of %q: %w", path, err), watcher.Close())
		}
	}

	source := &Source{
		files: files, logger: logger, watcher: watcher,
		stopped: make(chan struct{}), changed: make(chan struct{}, 1),
	}
	source.current.Store(first)

	// What changed between the first reading and the start of the watch would
	// otherwise be missed.
	source.reload()

	go source.follow()

	return source, nil
}

// Close stops following the files. Credentials made from the Source keep working
// with the certificates it had. A reading that hangs, on a file system that does not
// answer, is left behind after a moment, with an error.
func (s *Source) Close() error {
	err := s.watcher.Close()
	if err != nil {
		err = fmt.Errorf("stop watching certificate files: %w", err)
	}

	hanging := time.NewTimer(closeTimeout)
	defer hanging.Stop()

	select {
	case <-s.stopped:
		return err
	case <-hanging.C:
		return errors.Join(err, errors.New("stop watching certificate files: one is still being read"))
	}
}

// Reloads is how many times new certificates were taken.
func (s *Source) Reloads() uint64 { return s.reloads.Load() }

// Refused is how many times new files were bad and the old certificates stayed.
func (s *Source) Refused() uint64 { return s.refused.Load() }

// Changed receives after files were read again, whatever came of it. Readings in
// quick succession are reported together.
func (s *Source) Changed() <-chan struct{} { return s.changed }

// ServerCredentials returns what a gRPC server needs to be known by its
// certificate and to let in only clients that have one from the authorities.
func (s *Source) ServerCredentials() credentials.TransportCredentials {
	return serverCredentials{source: s, TransportCredentials: credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS13,
		ClientAuth: tls.RequireAndVerifyClientCert,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			current := s.current.Load()

			return &tls.Config{
				MinVersion:   tls.VersionTLS13,
				NextProtos:   []string{"h2"},
				ClientAuth:   tls.RequireAndVerifyClientCert,
				Certificates: []tls.Certificate{current.certificate},
				ClientCAs:    current.authorities,
				// A ticket would let a client back in after its authority has been
				// taken away.
				SessionTicketsDisabled: true,
			}, nil
		},
	})}
}

// ClientCredentials returns what a gRPC client needs to show its certificate and
// to accept only a server that the authorities call serverName. An empty
// serverName means the name or the IP address that is dialled.
func (s *Source) ClientCredentials(serverName string) credentials.TransportCredentials {
	return &clientCredentials{source: s, serverName: serverName}
}

// clientCredentials makes the credentials of each handshake from the certificates
// in use at that moment: crypto/tls has a hook for the client's own certificate and
// none for the authorities.
type clientCredentials struct {
	source     *Source
	serverName string
}

// ClientHandshake implements credentials.TransportCredentials.
func (c *clientCredentials) ClientHandshake(
	ctx context.Context, authority string, connection net.Conn,
) (net.Conn, credentials.AuthInfo, error) {
	if c.serverName != "" {
		authority = c.serverName
	}

	return c.now().ClientHandshake(ctx, authority, connection)
}

// ServerHandshake implements credentials.TransportCredentials. Client credentials
// serve nobody.
func (c *clientCredentials) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("these are the credentials of a client")
}

// Info implements credentials.TransportCredentials.
func (c *clientCredentials) Info() credentials.ProtocolInfo { return c.now().Info() }

// Clone implements credentials.TransportCredentials.
func (c *clientCredentials) Clone() credentials.TransportCredentials {
	clone := *c

	return &clone
}

// OverrideServerName implements credentials.TransportCredentials.
func (c *clientCredentials) OverrideServerName(serverName string) error {
	c.serverName = serverName

	return nil
}

func (c *clientCredentials) now() credentials.TransportCredentials {
	current := c.source.current.Load()

	return credentials.NewTLS(&tls.Config{
		MinVersion:   tls.VersionTLS13,
		ServerName:   c.serverName,
		Certificates: []tls.Certificate{current.certificate},
		RootCAs:      current.authorities,
	})
}

// follow reads the files again after events, until the watcher is closed.
func (s *Source) follow() {
	defer close(s.stopped)

	due := time.NewTimer(rereadAfter)
	defer due.Stop()

	for {
		select {
		case _, open := <-s.watcher.Events:
			if !open {
				return
			}

			due.Reset(settleAfter)
		case err, open := <-s.watcher.Errors:
			if !open {
				return
			}

			s.logger.Error("watching certificate files failed", "error", err)
			due.Reset(settleAfter) // Events may have been lost.
		case <-due.C:
			s.reload()
			due.Reset(rereadAfter)
		}
	}
}

// reload takes what the files hold, if it is new and valid.
func (s *Source) reload() {
	before := s.current.Load()
	next, err := read(s.files)

	switch {
	case err != nil:
		s.refused.Add(1)
		s.logger.Error("new certificate files are not usable, the certificate in use stays", "error", err)
	case next.digest == before.digest:
		return
	default:
		s.current.Store(next)
		s.reloads.Add(1)
		s.logger.Info("certificates reloaded", "notAfter", next.certificate.Leaf.NotAfter)
	}

	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func (f Files) paths() [3]string { return [3]string{f.Certificate, f.Key, f.Authorities} }

// read reads the three files and checks that they belong together.
func read(files Files) (*material, error) {
	var content [3][]byte

	digest := sha256.New()

	for position, path := range files.paths() {
		read, err := regularfile.Read(path, maxSize, nil)
		if err != nil {
			return nil, fmt.Errorf("read certificate file %q: %w", path, err)
		}

		content[position] = read
		each := sha256.Sum256(read)
		digest.Write(each[:])
	}

	certificate, err := tls.X509KeyPair(content[0], content[1])
	if err != nil {
		return nil, fmt.Errorf("use certificate %q with key %q: %w", files.Certificate, files.Key, err)
	}

	found := &material{certificate: certificate, authorities: x509.NewCertPool()}
	digest.Sum(found.digest[:0])

	if !found.authorities.AppendCertsFromPEM(content[2]) {
		return nil, fmt.Errorf("read authorities %q: no certificate in it", files.Authorities)
	}

	return found, nil
}
