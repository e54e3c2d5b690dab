package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	sealv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/seal/v1"
	"github.com/countersign-mcp/countersign/services/internal/operations"
	"github.com/countersign-mcp/countersign/services/sealer/keysource/file"
	"github.com/countersign-mcp/countersign/services/sealer/keysource/sourcetest"
)

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
