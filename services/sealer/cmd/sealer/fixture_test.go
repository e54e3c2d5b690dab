package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/durationpb"

	sealv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/seal/v1"
	"github.com/countersign-mcp/countersign/services/sealer/keysource"
	"github.com/countersign-mcp/countersign/services/sealer/keysource/file"
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
