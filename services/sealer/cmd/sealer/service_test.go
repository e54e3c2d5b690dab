package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	sealv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/seal/v1"
	"github.com/countersign-mcp/countersign/services/internal/certificates"
	"github.com/countersign-mcp/countersign/services/internal/certificates/certificatestest"
	"github.com/countersign-mcp/countersign/services/internal/operations"
	"github.com/countersign-mcp/countersign/services/sealer/keysource"
	"github.com/countersign-mcp/countersign/services/sealer/keysource/file"
	"github.com/countersign-mcp/countersign/services/sealer/keysource/sourcetest"
)

// asProgram is the variable that makes the test binary the program itself.
const asProgram = "SEALER_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()

		return
	}

	goleak.VerifyTestMain(m)
}

// logBuffer is a log that a test reads while the service writes it.
type logBuffer struct {
	lock    sync.Mutex
	content bytes.Buffer
}

func (b *logBuffer) Write(content []byte) (int, error) {
	b.lock.Lock()
	defer b.lock.Unlock()

	return b.content.Write(content)
}

func (b *logBuffer) String() string {
	b.lock.Lock()
	defer b.lock.Unlock()

	return b.content.String()
}

// started is a service that runs until its test ends.
type started struct {
	*service

	logged *logBuffer
	stop   func()
}

// configure is a configuration with a key file of its own.
func configure(t *testing.T) *Configuration {
	t.Helper()

	keys := keysource.Defaults()
	keys.Source, keys.File = keysource.File, filepath.Join(t.TempDir(), "keys.yaml")

	check(t, file.Create(keys.File, time.Now(), rand.Reader))

	return &Configuration{Listen: "127.0.0.1:0", OperationsListen: "127.0.0.1:0", Keys: keys, MaxMessageBytes: 1 << 20}
}

func start(t *testing.T, configuration *Configuration) *started {
	t.Helper()

	logged := new(logBuffer)
	logger := slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug}))

	made, err := newService(t.Context(), configuration, time.Now, rand.Reader, logger)
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)

	go func() { ended <- made.run(ctx) }()

	running := &started{service: made, logged: logged, stop: sync.OnceFunc(func() {
		cancel()

		err := <-ended
		if err != nil {
			t.Errorf("the service ended with %v", err)
		}
	})}
	t.Cleanup(running.stop)

	// The first answer is given when the service serves.
	running.get(t, "/healthz")

	return running
}

// get asks the operations listener.
func (s *started) get(t *testing.T, path string) (statusCode int, body string) {
	t.Helper()

	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.operators.Addr().String()+path, http.NoBody)
	check(t, err)

	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

	response, err := client.Do(request)
	check(t, err)

	defer response.Body.Close()

	content, err := io.ReadAll(response.Body)
	check(t, err)

	return response.StatusCode, string(content)
}

func (s *started) dial(t *testing.T, transport credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()

	return dial(t, target(s.callers.Addr()), transport)
}

func dial(t *testing.T, address string, transport credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()

	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(transport))
	check(t, err)

	t.Cleanup(func() { check(t, connection.Close()) })

	return connection
}

func check(t *testing.T, err error) {
	t.Helper()

	if err != nil {
		t.Fatal(err)
	}
}

func sealRequest() *sealv1.SealRequest {
	digest := sha256.Sum256([]byte("params"))

	return &sealv1.SealRequest{
		Purpose: sealv1.Purpose_PURPOSE_ENCRYPTED_REQUEST_STATE,
		Binding: &sealv1.Binding{
			Context: &sealv1.Context{Audience: "https://tools.example/mcp"},
			Method:  "tools/call", Target: "refund", PrincipalIssuer: "anonymous", ParamsDigest: digest[:],
		},
		RequestState: &sealv1.RequestState{
			ChainId: "chain", ChainStartedMs: time.Now().UnixMilli(), ChainExpiresMs: time.Now().Add(time.Hour).UnixMilli(), Round: 1,
			HandlerState: []*sealv1.StateEntry{{Key: "order", Value: "17"}},
		},
		TimeToLive: durationpb.New(time.Minute),
	}
}

// roundTrip seals and opens over the connection.
func roundTrip(t *testing.T, connection *grpc.ClientConn) error {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	client := sealv1.NewSealerServiceClient(connection)
	request := sealRequest()

	sealed, err := client.Seal(ctx, request)
	if err != nil {
		return err
	}

	response, err := client.Open(ctx, &sealv1.OpenRequest{
		Token: sealed.GetToken(), Purpose: request.GetPurpose(), Expected: request.GetBinding(), MaxRound: 1,
	})
	if err != nil {
		return err
	}

	if entries := response.GetOpened().GetRequestState().GetHandlerState(); len(entries) != 1 || entries[0].GetValue() != "17" {
		t.Errorf("got %v", response)
	}

	return nil
}

func TestSealAndOpenOverLoopbackAndOverASocket(t *testing.T) {
	t.Parallel()

	for _, listen := range []string{"127.0.0.1:0", "unix:" + filepath.Join(t.TempDir(), "s")} {
		configuration := configure(t)
		configuration.Listen = listen
		running := start(t, configuration)

		check(t, roundTrip(t, running.dial(t, insecure.NewCredentials())))

		_, metrics := running.get(t, "/metrics")
		for _, want := range []string{
			`countersign_seal_total{purpose="encrypted_request_state",result="ok"} 1`,
			`countersign_open_total{purpose="encrypted_request_state",reason="none",result="ok"} 1`,
		} {
			if !strings.Contains(metrics, want) {
				t.Errorf("the metrics lack %s", want)
			}
		}
	}
}

func TestMutualTLSLetsInKnownEdgesAlone(t *testing.T) {
	t.Parallel()

	authority := certificatestest.NewAuthority(t)
	configuration := configure(t)
	configuration.TLS = authority.Write(t, t.TempDir(), "sealer")
	running := start(t, configuration)

	check(t, roundTrip(t, running.dial(t, clientCredentials(t, authority))))

	for name, transport := range map[string]credentials.TransportCredentials{
		"plaintext":         insecure.NewCredentials(),
		"another authority": clientCredentials(t, certificatestest.NewAuthority(t)),
	} {
		err := roundTrip(t, running.dial(t, transport))
		if status.Code(err) != codes.Unavailable {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func clientCredentials(t *testing.T, authority *certificatestest.Authority) credentials.TransportCredentials {
	t.Helper()

	source, err := certificates.Open(authority.Write(t, t.TempDir(), "edge"), slog.New(slog.DiscardHandler))
	check(t, err)

	t.Cleanup(func() { check(t, source.Close()) })

	return source.ClientCredentials("localhost")
}

func TestCertificatesAreReloadedWhenASecretIsSwapped(t *testing.T) {
	t.Parallel()

	former, next := certificatestest.NewAuthority(t), certificatestest.NewAuthority(t)
	mounted := t.TempDir()
	project := func(version string, authority *certificatestest.Authority) {
		directory := filepath.Join(mounted, version)
		check(t, os.Mkdir(directory, 0o700))
		authority.Write(t, directory, "sealer")
		check(t, os.Symlink(version, filepath.Join(mounted, "..data_tmp")))
		check(t, os.Rename(filepath.Join(mounted, "..data_tmp"), filepath.Join(mounted, "..data")))
	}

	project("..1", former)

	configuration := configure(t)
	configuration.TLS = certificates.Files{
		Certificate: filepath.Join(mounted, "tls.crt"), Key: filepath.Join(mounted, "tls.key"), Authorities: filepath.Join(mounted, "ca.crt"),
	}

	for _, name := range []string{"tls.crt", "tls.key", "ca.crt"} {
		check(t, os.Symlink(filepath.Join("..data", name), filepath.Join(mounted, name)))
	}

	running := start(t, configuration)
	standing := running.dial(t, clientCredentials(t, former))
	check(t, roundTrip(t, standing))

	project("..2", next)

	// The service has no event for this; its metric is what an operator sees.
	for {
		_, metrics := running.get(t, "/metrics")
		if strings.Contains(metrics, "countersign_certificate_reloads_total 1") {
			break
		}
	}

	check(t, roundTrip(t, running.dial(t, clientCredentials(t, next))))
	check(t, roundTrip(t, standing))

	err := roundTrip(t, running.dial(t, clientCredentials(t, former)))
	if status.Code(err) != codes.Unavailable {
		t.Errorf("the former authority still lets in: %v", err)
	}
}

func TestPlaintextWhereOthersCanListenIsRefused(t *testing.T) {
	t.Parallel()

	configuration := configure(t)
	configuration.Listen = "0.0.0.0:0"

	_, err := newService(t.Context(), configuration, time.Now, rand.Reader, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "plaintext is allowed only on a loopback address") {
		t.Fatalf("got %v", err)
	}

	configuration.TLS = certificatestest.NewAuthority(t).Write(t, t.TempDir(), "sealer")
	start(t, configuration)
}

func TestHealthAndReflectionAreServed(t *testing.T) {
	t.Parallel()

	connection := start(t, configure(t)).dial(t, insecure.NewCredentials())
	health := healthv1.NewHealthClient(connection)

	for _, name := range []string{"", sealv1.SealerService_ServiceDesc.ServiceName} {
		response, err := health.Check(t.Context(), &healthv1.HealthCheckRequest{Service: name})
		if err != nil || response.GetStatus() != healthv1.HealthCheckResponse_SERVING {
			t.Errorf("%q: got %v, %v", name, response, err)
		}
	}

	reflecting, err := reflectionv1.NewServerReflectionClient(connection).ServerReflectionInfo(t.Context())
	check(t, err)
	check(t, reflecting.Send(&reflectionv1.ServerReflectionRequest{
		MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{},
	}))

	response, err := reflecting.Recv()
	check(t, err)
	check(t, reflecting.CloseSend())

	found := slices.ContainsFunc(response.GetListServicesResponse().GetService(), func(service *reflectionv1.ServiceResponse) bool {
		return service.GetName() == sealv1.SealerService_ServiceDesc.ServiceName
	})
	if !found {
		t.Errorf("got %v", response)
	}
}

func TestCallsAreBounded(t *testing.T) {
	t.Parallel()

	client := sealv1.NewSealerServiceClient(start(t, configure(t)).dial(t, insecure.NewCredentials()))

	// The context of a test has no deadline.
	_, err := client.Seal(t.Context(), sealRequest())
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "deadline") {
		t.Errorf("without a deadline: %v", err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	request := sealRequest()
	request.RequestState.HandlerState[0].Value = strings.Repeat("a", 1<<20)

	_, err = client.Seal(ctx, request)
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("with too large a message: %v", err)
	}
}

func TestWithoutKeysNothingIsReadyAndTheCauseIsNamed(t *testing.T) {
	t.Parallel()

	configuration := configure(t)
	check(t, os.Chmod(configuration.Keys.File, 0o644))
	running := start(t, configuration)
	connection := running.dial(t, insecure.NewCredentials())

	err := roundTrip(t, connection)
	if status.Code(err) != codes.Unavailable || strings.Contains(err.Error(), configuration.Keys.File) {
		t.Errorf("got %v", err)
	}

	health, err := healthv1.NewHealthClient(connection).Check(t.Context(), &healthv1.HealthCheckRequest{})
	if err != nil || health.GetStatus() != healthv1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("got %v, %v", health, err)
	}

	code, body := running.get(t, "/readyz")

	var report operations.Report

	check(t, json.Unmarshal([]byte(body), &report))

	if code != http.StatusServiceUnavailable || report.Ready || !strings.Contains(report.Checks["keys"], "no keys") {
		t.Errorf("got %d %s", code, body)
	}

	if !strings.Contains(running.logged.String(), "its mode is 0644") {
		t.Errorf("the log does not name the cause: %s", running.logged)
	}

	if code, _ := running.get(t, "/healthz"); code != http.StatusOK {
		t.Errorf("the process is not healthy: %d", code)
	}

	check(t, os.Chmod(configuration.Keys.File, 0o600))
	check(t, running.keys.Refresh(t.Context()))
	check(t, roundTrip(t, connection))

	if code, body := running.get(t, "/readyz"); code != http.StatusOK {
		t.Errorf("got %d %s", code, body)
	}
}

// TestNoKeyLeaves does everything that logs, fails, counts or prints, and looks
// for the keys in all of it.
func TestNoKeyLeaves(t *testing.T) {
	t.Parallel()

	configuration := configure(t)
	running := start(t, configuration)
	connection := running.dial(t, insecure.NewCredentials())
	client := sealv1.NewSealerServiceClient(connection)
	shown := new(strings.Builder)

	before, err := file.Read(configuration.Keys.File)
	check(t, err)

	_, err = file.Rotate(configuration.Keys.File, time.Now(), rand.Reader)
	check(t, err)
	check(t, running.keys.Refresh(t.Context()))
	check(t, roundTrip(t, connection))
	check(t, listKeys(shown, configuration.Keys.File, time.Now(), time.Hour))

	versions, err := file.Read(configuration.Keys.File)
	check(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	// A refusal, a call that breaks the contract, and files that break in several
	// ways around the key.
	refused, err := client.Open(ctx, &sealv1.OpenRequest{
		Token: strings.Repeat("A", 200), Purpose: sealv1.Purpose_PURPOSE_REQUEST_STATE, Expected: sealRequest().GetBinding(), MaxRound: 1,
	})
	check(t, err)
	shown.WriteString(refused.String())

	_, err = client.Seal(ctx, &sealv1.SealRequest{})
	shown.WriteString(err.Error())

	content, err := os.ReadFile(configuration.Keys.File)
	check(t, err)

	for _, spoilt := range []string{
		strings.Replace(string(content), "root:", "roots:", 1), strings.Replace(string(content), "root: ", "root: !", 1),
		strings.Replace(string(content), "root: ", "root:", 1), strings.Replace(string(content), "number: 1", "number: 2", 1),
		strings.Replace(string(content), "root: ", "created: ", 1), strings.Replace(string(content), "root: ", "number: ", 1),
		string(content) + "\t", strings.ReplaceAll(string(content), "\n", ""),
	} {
		check(t, os.WriteFile(configuration.Keys.File, []byte(spoilt), 0o600))

		err = running.keys.Refresh(t.Context())
		if err == nil {
			t.Errorf("a spoilt key file was accepted: %d bytes", len(spoilt))
		} else {
			shown.WriteString(err.Error())
		}
	}

	_, metrics := running.get(t, "/metrics")
	_, readiness := running.get(t, "/readyz")
	running.stop()

	for _, text := range []string{shown.String(), metrics, readiness, running.logged.String()} {
		if text == "" {
			t.Error("there is nothing to look at")
		}

		for _, version := range slices.Concat(before, versions) {
			sourcetest.NoKeyIn(t, text, version.Root)
		}
	}
}

func TestASocketIsRemovedWhenTheServiceStops(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "s")
	configuration := configure(t)
	configuration.Listen = "unix:" + path
	running := start(t, configuration)

	information, err := os.Stat(path)
	check(t, err)

	if information.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v", information.Mode())
	}

	running.stop()

	_, err = os.Stat(path)
	if !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
}
