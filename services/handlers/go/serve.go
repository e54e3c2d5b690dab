package handler

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
)

const (
	defaultGracePeriod     = 10 * time.Second
	defaultMaxMessageBytes = 16 << 20
)

// Options says how a service listens. The zero value is good except for Listen.
type Options struct {
	// Listen is `host:port` or `unix:///path/of/a/socket`. Port 0 picks a free one.
	Listen string
	// TLS makes the service speak mutual TLS. Without it the service starts only on
	// a loopback address or a Unix socket: arguments, answers and principals would
	// cross the network in the clear, and anybody could call the handlers.
	TLS *TLSFiles
	// GracePeriod is how long running attempts get to finish when the service is
	// told to stop; 10 s when 0.
	GracePeriod time.Duration
	// MaxMessageBytes is the longest message the service takes; 16 MiB when 0.
	MaxMessageBytes int
	// Ready is called once with the address that is listened on; may be nil.
	Ready func(net.Addr)
	// ServerOptions are passed to gRPC after the kit's own: interceptors, for
	// example. Use TLS for credentials.
	ServerOptions []grpc.ServerOption
}

// TLSFiles names the PEM files of mutual TLS. They are read again for every
// connection, so that a certificate can be renewed under a running service.
type TLSFiles struct {
	// Certificate is the service's certificate with its chain.
	Certificate string
	// Key is the certificate's private key.
	Key string
	// ClientCA holds the authorities whose clients may call: the edge's.
	ClientCA string
}

// Run serves until the context is cancelled; make it with NotifyContext of package
// os/signal to stop on a signal. Run returns nil after an orderly stop.
func Run(ctx context.Context, server *Server, options Options) error {
	network, address := "tcp", options.Listen
	if path, isSocket := strings.CutPrefix(address, "unix://"); isSocket {
		network, address = "unix", path
	} else if options.TLS == nil {
		resolved, err := net.ResolveTCPAddr(network, address)
		if err != nil {
			return fmt.Errorf("listen on %q: %w", options.Listen, err)
		}
		if !isLocal(resolved) {
			return plaintextRefused(options.Listen)
		}
		address = resolved.String()
	}
	listener, err := new(net.ListenConfig).Listen(ctx, network, address)
	if err != nil {
		return fmt.Errorf("listen on %q: %w", options.Listen, err)
	}
	return server.Serve(ctx, listener, options)
}

// Serve serves on a listener of the caller's, and closes it. Options.Listen is not
// looked at. See [Run].
func (s *Server) Serve(ctx context.Context, listener net.Listener, options Options) error {
	grpcServer, healthServer, err := s.newGRPCServer(listener.Addr(), options)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	if options.Ready != nil {
		options.Ready(listener.Addr())
	}
	s.logger.Info("serving", "address", listener.Addr().String())
	stopped := make(chan struct{})
	served := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-ctx.Done():
			healthServer.Shutdown()
			s.closeWatchers()
			stopGracefully(grpcServer, options.GracePeriod)
		case <-served:
		}
	}()
	err = grpcServer.Serve(listener)
	close(served)
	<-stopped
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve on %q: %w", listener.Addr(), err)
	}
	s.logger.Info("stopped")
	return nil
}

func (s *Server) newGRPCServer(address net.Addr, options Options) (*grpc.Server, *health.Server, error) {
	maxMessageBytes := options.MaxMessageBytes
	if maxMessageBytes == 0 {
		maxMessageBytes = defaultMaxMessageBytes
	}
	serverOptions := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxMessageBytes),
		// Windows of a fixed size: gRPC otherwise sends a ping with every burst of data
		// to find one.
		grpc.StaticStreamWindowSize(1 << 20), grpc.StaticConnWindowSize(4 << 20),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 20 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime: 10 * time.Second, PermitWithoutStream: true,
		}),
	}
	switch {
	case options.TLS != nil:
		if _, err := options.TLS.config(); err != nil {
			return nil, nil, err
		}
		serverOptions = append(serverOptions, grpc.Creds(credentials.NewTLS(&tls.Config{
			MinVersion: tls.VersionTLS13,
			GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
				return options.TLS.config()
			},
		})))
	case !isLocal(address):
		return nil, nil, plaintextRefused(address.String())
	}
	grpcServer := grpc.NewServer(append(serverOptions, options.ServerOptions...)...)
	handlerv1.RegisterHandlerServiceServer(grpcServer, s)
	healthServer := health.NewServer()
	healthServer.SetServingStatus(handlerv1.HandlerService_ServiceDesc.ServiceName, healthv1.HealthCheckResponse_SERVING)
	healthv1.RegisterHealthServer(grpcServer, healthServer)
	reflection.Register(grpcServer)
	return grpcServer, healthServer, nil
}

func plaintextRefused(address string) error {
	return fmt.Errorf("listen on %q: without TLS only a loopback address or a Unix socket is allowed", address)
}

// isLocal reports whether nobody beyond this machine can reach the address.
func isLocal(address net.Addr) bool {
	tcp, isTCP := address.(*net.TCPAddr)
	return !isTCP || tcp.IP.IsLoopback()
}

// stopGracefully lets running attempts finish for the grace period, then cancels
// their contexts and waits no longer.
func stopGracefully(grpcServer *grpc.Server, gracePeriod time.Duration) {
	if gracePeriod == 0 {
		gracePeriod = defaultGracePeriod
	}
	finished := make(chan struct{})
	go func() { // it waits for functions that never return, too
		defer close(finished)
		grpcServer.GracefulStop()
	}()
	timer := time.NewTimer(gracePeriod)
	defer timer.Stop()
	select {
	case <-finished:
	case <-timer.C:
		grpcServer.Stop()
	}
}

func (f *TLSFiles) config() (*tls.Config, error) {
	certificate, err := tls.LoadX509KeyPair(f.Certificate, f.Key)
	if err != nil {
		return nil, fmt.Errorf("load the certificate %q: %w", f.Certificate, err)
	}
	authorities, err := os.ReadFile(f.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("read the client authorities %q: %w", f.ClientCA, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authorities) {
		return nil, fmt.Errorf("the file %q holds no certificate", f.ClientCA)
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{certificate},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    pool,
		NextProtos:   []string{"h2"},
	}, nil
}
