package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	sealv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/seal/v1"
	"github.com/countersign-mcp/countersign/services/internal/certificates"
	"github.com/countersign-mcp/countersign/services/internal/listener"
	"github.com/countersign-mcp/countersign/services/internal/operations"
	"github.com/countersign-mcp/countersign/services/internal/tracing"
	"github.com/countersign-mcp/countersign/services/sealer/keyring"
	"github.com/countersign-mcp/countersign/services/sealer/server"
)

const (
	// stopTimeout is how long calls under way may take when the service stops.
	stopTimeout = 10 * time.Second
	// readinessInterval is how often the health service learns whether there are
	// usable keys. The calls themselves always know.
	readinessInterval = time.Second

	connectionTimeout = 10 * time.Second
	// Connections are renewed now and then, so that clients find new replicas and
	// show certificates that are still good.
	maxConnectionAge   = 30 * time.Minute
	maxConnectionGrace = time.Minute
	minPingInterval    = 10 * time.Second
	pingInterval       = time.Minute
	pingTimeout        = 20 * time.Second

	// How much a caller may send before it is read, in one call and on one connection.
	// Windows that gRPC finds by itself cost a ping for every burst of data.
	streamWindow     = 256 << 10
	connectionWindow = 4 << 20
)

// service is the sealer with everything around it.
type service struct {
	clock     func() time.Time
	logger    *slog.Logger
	keys      *keyring.Keyring
	registry  *prometheus.Registry
	health    *health.Server
	grpc      *grpc.Server
	callers   net.Listener
	operators net.Listener
	// release gives back what the service holds beside its listeners.
	release func() error
}

// newService opens everything that the configuration names and serves nothing
// yet.
func newService(
	ctx context.Context, configuration *Configuration, clock func() time.Time, random io.Reader, logger *slog.Logger,
) (*service, error) {
	made := &service{
		clock: clock, logger: logger, registry: prometheus.NewRegistry(),
		health: health.NewServer(), release: func() error { return nil },
	}
	made.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))

	source, err := configuration.Keys.Open(clock(), random, logger)
	if err != nil {
		return nil, err
	}

	made.keys, err = keyring.New(source, configuration.Keys.Settings(), clock, logger)
	if err != nil {
		return nil, err
	}

	sealer, err := server.New(made.keys, clock, random, made.registry, logger)
	if err != nil {
		return nil, err
	}

	options := serverOptions(configuration)

	if configuration.TLS.Configured() {
		opened, err := made.openCertificates(configuration.TLS)
		if err != nil {
			return nil, err
		}

		options = append(options, grpc.Creds(opened.ServerCredentials()))
	}

	traces, err := tracing.Open(ctx, configuration.Tracing, tracing.Process{Service: "sealer", Version: version}, made.registry, logger)
	if err != nil {
		return nil, errors.Join(err, made.release())
	}

	closeCertificates := made.release
	made.release = func() error {
		traces.Close()

		return closeCertificates()
	}
	options = append(options, traces.ServerOptions(sealv1.SealerService_Seal_FullMethodName, sealv1.SealerService_Open_FullMethodName)...)

	made.grpc = grpc.NewServer(options...)
	sealv1.RegisterSealerServiceServer(made.grpc, sealer)
	healthv1.RegisterHealthServer(made.grpc, made.health)
	reflection.Register(made.grpc)

	err = made.listen(ctx, configuration)
	if err != nil {
		return nil, errors.Join(err, made.release())
	}

	return made, nil
}

func serverOptions(configuration *Configuration) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(int(configuration.MaxMessageBytes)),
		grpc.MaxSendMsgSize(int(configuration.MaxMessageBytes)),
		grpc.ConnectionTimeout(connectionTimeout),
		grpc.WaitForHandlers(true),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connectionWindow),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionAge: maxConnectionAge, MaxConnectionAgeGrace: maxConnectionGrace, Time: pingInterval, Timeout: pingTimeout,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPingInterval, PermitWithoutStream: true}),
	}
}

func (s *service) openCertificates(files certificates.Files) (*certificates.Source, error) {
	opened, err := certificates.Open(files, s.logger)
	if err != nil {
		return nil, err
	}

	s.release = opened.Close

	err = opened.Register(s.registry, "listener")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("register metrics of certificates: %w", err), opened.Close())
	}

	return opened, nil
}

// listen opens both listeners.
func (s *service) listen(ctx context.Context, configuration *Configuration) error {
	address, err := listener.Parse(configuration.Listen)
	if err != nil {
		return err
	}

	// Asked again here, where the listener is opened: whoever makes a service has no
	// other way to one.
	err = listener.CheckPlaintext(address, configuration.TLS.Configured())
	if err != nil {
		return err
	}

	operators, err := listener.Parse(configuration.OperationsListen)
	if err != nil {
		return err
	}

	s.callers, err = listener.Open(ctx, address)
	if err != nil {
		return err
	}

	s.operators, err = listener.Open(ctx, operators)
	if err != nil {
		return errors.Join(err, s.callers.Close())
	}

	return nil
}

// run serves until the context ends or a listener fails. It returns when everything
// it started has ended.
func (s *service) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()

	err := s.keys.Refresh(ctx)
	if err != nil {
		s.logger.ErrorContext(ctx, "no keys at the start: not ready until the source gives some", "error", err)
	}

	readiness := operations.NewReadiness(s.logger, operations.Check{
		Name:     "keys",
		Run:      func(context.Context) error { return s.keys.Ready(s.clock()) },
		Sentence: "there are no keys that may be used: the source of keys gave none or has not answered for too long",
	})

	s.showReadiness()

	var running sync.WaitGroup

	failures := make(chan error, 2)

	running.Go(func() { s.keys.Run(ctx, rand.Float64) })
	running.Go(func() { s.followReadiness(ctx) })
	running.Go(func() {
		defer stop()

		failures <- operations.Serve(ctx, s.operators, operations.Handler(s.registry, readiness))
	})
	running.Go(func() {
		defer stop()

		failures <- s.grpc.Serve(s.callers)
	})

	s.logger.InfoContext(ctx, "serving", "listen", target(s.callers.Addr()), "operations", target(s.operators.Addr()))
	<-ctx.Done()
	s.logger.Info("stopping")
	s.stop()
	running.Wait()
	close(failures)

	err = s.release()
	for failure := range failures {
		err = errors.Join(err, failure)
	}

	return err
}

// stop lets calls under way finish, for a while.
func (s *service) stop() {
	s.health.Shutdown()

	stopped := make(chan struct{})

	go func() {
		defer close(stopped)

		s.grpc.GracefulStop()
	}()

	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()

	select {
	case <-stopped:
	case <-timer.C:
		s.logger.Warn("calls under way were cut off")
		s.grpc.Stop()
		<-stopped
	}
}

// followReadiness keeps what the health service says up to date.
func (s *service) followReadiness(ctx context.Context) {
	ticker := time.NewTicker(readinessInterval)
	defer ticker.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.showReadiness()
		}
	}
}

// showReadiness tells the health service whether there are usable keys.
func (s *service) showReadiness() {
	serving := healthv1.HealthCheckResponse_SERVING
	if s.keys.Ready(s.clock()) != nil {
		serving = healthv1.HealthCheckResponse_NOT_SERVING
	}

	s.health.SetServingStatus("", serving)
	s.health.SetServingStatus(sealv1.SealerService_ServiceDesc.ServiceName, serving)
}

// target returns an address as a gRPC client accepts it.
func target(address net.Addr) string {
	if address.Network() == "unix" {
		return "unix:" + address.String()
	}

	return address.String()
}
