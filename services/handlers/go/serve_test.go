package handler_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	handler "github.com/countersign-mcp/countersign/services/handlers/go"
)

// running is a service that listens on the network.
type running struct {
	address net.Addr
	stop    func() error
}

func run(t *testing.T, server *handler.Server, options handler.Options) running {
	t.Helper()
	ready, done := make(chan net.Addr, 1), make(chan error, 1)
	options.Ready = func(address net.Addr) { ready <- address }
	ctx, cancel := context.WithCancel(context.Background())
	go func() { done <- handler.Run(ctx, server, options) }()
	stop := func() error {
		cancel()
		return <-done
	}
	select {
	case address := <-ready:
		return running{address, stop}
	case err := <-done:
		cancel()
		t.Fatal(err)
		return running{}
	}
}

func dial(t *testing.T, target string, transport credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	connection, err := grpc.NewClient(target, grpc.WithTransportCredentials(transport))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return connection
}

func TestPlaintextIsServedOnlyWhereNobodyElseCanListen(t *testing.T) {
	for _, listen := range []string{"0.0.0.0:0", "[::]:0", ":0"} {
		err := handler.Run(t.Context(), fullServer(), handler.Options{Listen: listen})
		if want := "listen on \"" + listen + "\": without TLS"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", listen, err)
		}
	}
	if err := handler.Run(t.Context(), fullServer(), handler.Options{Listen: "nonsense"}); err == nil {
		t.Error("nonsense was listened on")
	}
}

func TestAServiceOnASocketHasHealthAndReflectionAndStopsInOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	service := run(t, fullServer(), handler.Options{Listen: "unix://" + path})
	connection := dial(t, "unix://"+path, insecure.NewCredentials())
	for _, name := range []string{"", "countersign.handler.v1.HandlerService"} {
		response, err := healthv1.NewHealthClient(connection).Check(t.Context(), &healthv1.HealthCheckRequest{Service: name})
		if err != nil || response.GetStatus() != healthv1.HealthCheckResponse_SERVING {
			t.Errorf("the health of %q is %v, %v", name, response, err)
		}
	}
	reflected, err := reflectionv1.NewServerReflectionClient(connection).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = reflected.Send(&reflectionv1.ServerReflectionRequest{
		MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{},
	})
	if err != nil {
		t.Fatal(err)
	}
	listed, err := reflected.Recv()
	if err != nil || !strings.Contains(listed.String(), "countersign.handler.v1.HandlerService") {
		t.Errorf("the services are %v, %v", listed, err)
	}
	if err := reflected.CloseSend(); err != nil {
		t.Fatal(err)
	}
	watched, err := handlerv1.NewHandlerServiceClient(connection).Watch(t.Context(), new(handlerv1.WatchRequest))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watched.Recv(); err != nil {
		t.Fatal(err)
	}
	if err := service.stop(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if _, err := watched.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("the watch ended with %v", err)
	}
}

func TestARunningAttemptGetsTheGracePeriod(t *testing.T) {
	for name, test := range map[string]struct {
		grace time.Duration
		want  error
	}{
		"and may finish":         {time.Minute, nil},
		"and is cancelled after": {time.Millisecond, handler.ErrAttemptEnded},
	} {
		t.Run(name, func(t *testing.T) {
			started, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			service := run(t, serverWith(func(ctx *handler.Context, _ none) (string, error) {
				close(started)
				select {
				case <-goOn:
				case <-ctx.Done():
				}
				ended <- ctx.State().Set("a", "b")
				return "finished", nil
			})(), handler.Options{Listen: "127.0.0.1:0", GracePeriod: test.grace})
			client := handlerv1.NewHandlerServiceClient(dial(t, service.address.String(), insecure.NewCredentials()))
			stream := invoke(t.Context(), t, client, new(handlerv1.Begin))
			<-started
			stopped := make(chan error, 1)
			go func() { stopped <- service.stop() }()
			if test.want == nil {
				close(goOn)
				if receive(t, stream).GetFinish() == nil {
					t.Error("the attempt did not finish")
				}
			}
			if err := <-ended; !errors.Is(err, test.want) {
				t.Errorf("the attempt ended with %v", err)
			}
			if err := <-stopped; err != nil {
				t.Errorf("the service ended with %v", err)
			}
		})
	}
}

// authority makes certificates that its file vouches for.
type authority struct {
	folder      string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	created := &authority{folder: t.TempDir()}
	created.certificate, created.key = created.issue(t, "ca")
	return created
}

func (a *authority) path(name string) string { return filepath.Join(a.folder, name) }

// issue writes NAME.crt and NAME.key.
func (a *authority) issue(t *testing.T, name string) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: name == "ca", BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	parent, signer := a.certificate, a.key
	if parent == nil {
		parent, signer = template, key
	}
	encoded, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	encodedKey, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		name + ".crt": {Type: "CERTIFICATE", Bytes: encoded},
		name + ".key": {Type: "PRIVATE KEY", Bytes: encodedKey},
	} {
		if err := os.WriteFile(a.path(file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	certificate, err := x509.ParseCertificate(encoded)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

func (a *authority) client(t *testing.T, certificates ...string) credentials.TransportCredentials {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	config := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}
	for _, name := range certificates {
		pair, err := tls.LoadX509KeyPair(a.path(name+".crt"), a.path(name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = append(config.Certificates, pair)
	}
	return credentials.NewTLS(config)
}

func TestMutualTLSLetsOnlyVouchedClientsInAndTakesANewCertificate(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	ours.issue(t, "service")
	ours.issue(t, "edge")
	theirs.issue(t, "edge")
	files := &handler.TLSFiles{
		Certificate: ours.path("service.crt"), Key: ours.path("service.key"), ClientCA: ours.path("ca.crt"),
	}
	service := run(t, fullServer(), handler.Options{Listen: "127.0.0.1:0", TLS: files})
	describeWith := func(transport credentials.TransportCredentials) error {
		client := handlerv1.NewHandlerServiceClient(dial(t, service.address.String(), transport))
		_, err := client.Describe(t.Context(), new(handlerv1.DescribeRequest))
		return err
	}
	if err := describeWith(ours.client(t, "edge")); err != nil {
		t.Errorf("the edge is refused: %v", err)
	}
	if err := describeWith(ours.client(t)); err == nil {
		t.Error("a client without a certificate is let in")
	}
	pair, err := tls.LoadX509KeyPair(theirs.path("edge.crt"), theirs.path("edge.key"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ours.certificate)
	// GetClientCertificate, because Certificates is left out where the issuer is unknown.
	stranger := credentials.NewTLS(&tls.Config{
		RootCAs: pool, MinVersion: tls.VersionTLS13,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil },
	})
	if err := describeWith(stranger); err == nil {
		t.Error("a client of another authority is let in")
	}
	renewed, _ := ours.issue(t, "service")
	var seen *big.Int
	watching := credentials.NewTLS(&tls.Config{
		RootCAs: pool, MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{mustLoad(t, ours, "edge")},
		VerifyConnection: func(state tls.ConnectionState) error {
			seen = state.PeerCertificates[0].SerialNumber
			return nil
		},
	})
	if err := describeWith(watching); err != nil || seen == nil || seen.Cmp(renewed.SerialNumber) != 0 {
		t.Errorf("the renewed certificate is not used: %v", err)
	}
	if err := service.stop(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

func mustLoad(t *testing.T, from *authority, name string) tls.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(from.path(name+".crt"), from.path(name+".key"))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func TestTLSFilesThatCannotBeUsedStopTheServiceFromStarting(t *testing.T) {
	ours := newAuthority(t)
	ours.issue(t, "service")
	empty := ours.path("empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for problem, files := range map[string]handler.TLSFiles{
		"load the certificate":        {Certificate: ours.path("no"), Key: ours.path("service.key"), ClientCA: ours.path("ca.crt")},
		"read the client authorities": {Certificate: ours.path("service.crt"), Key: ours.path("service.key"), ClientCA: ours.path("no")},
		"holds no certificate":        {Certificate: ours.path("service.crt"), Key: ours.path("service.key"), ClientCA: empty},
	} {
		err := handler.Run(t.Context(), fullServer(), handler.Options{Listen: "127.0.0.1:0", TLS: &files})
		if err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("got %v, want %q", err, problem)
		}
	}
}

func TestAFunctionThatNeverReturnsDoesNotHoldUpTheEnd(t *testing.T) {
	started, goOn := make(chan struct{}), make(chan struct{})
	service := run(t, serverWith(func(*handler.Context, none) (string, error) {
		close(started)
		<-goOn
		return "", nil
	})(), handler.Options{Listen: "127.0.0.1:0", GracePeriod: time.Millisecond})
	client := handlerv1.NewHandlerServiceClient(dial(t, service.address.String(), insecure.NewCredentials()))
	invoke(t.Context(), t, client, new(handlerv1.Begin))
	<-started
	if err := service.stop(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	close(goOn)
}
