package main

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	sealv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/seal/v1"
)

// sealerReplica is a sealer whose tokens are its name, or that answers nothing.
type sealerReplica struct {
	sealv1.UnimplementedSealerServiceServer

	name    string
	health  *health.Server
	hanging bool
	asked   atomic.Int32
}

func (r *sealerReplica) Seal(ctx context.Context, _ *sealv1.SealRequest) (*sealv1.SealResponse, error) {
	r.asked.Add(1)
	if r.hanging {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return &sealv1.SealResponse{Token: r.name}, nil
}

func (r *sealerReplica) serving(status healthv1.HealthCheckResponse_ServingStatus) {
	r.health.SetServingStatus(sealv1.SealerService_ServiceDesc.ServiceName, status)
}

// dialReplicas serves the replicas and connects to all of them.
func dialReplicas(t *testing.T, replicas ...*sealerReplica) *grpc.ClientConn {
	t.Helper()
	var addresses []resolver.Address
	for _, replica := range replicas {
		listening := listen(t)
		server := grpc.NewServer()
		sealv1.RegisterSealerServiceServer(server, replica)
		if replica.health == nil {
			replica.health = health.NewServer()
			replica.serving(healthv1.HealthCheckResponse_SERVING)
		}
		healthv1.RegisterHealthServer(server, replica.health)
		go func() { _ = server.Serve(listening) }() // ends with Stop
		t.Cleanup(server.Stop)
		addresses = append(addresses, resolver.Address{Addr: listening.Addr().String()})
	}
	found := manual.NewBuilderWithScheme("replicas")
	found.InitialState(resolver.State{Addresses: addresses})
	return dialled(t, "replicas:///sealer", grpc.WithResolvers(found))
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listening, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listening.Close() }) // a server may have closed it
	return listening
}

func dialled(t *testing.T, target string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	connection, err := dialSealer(target, insecure.NewCredentials(), options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

func TestAReplicaThatHangsFailsNoCall(t *testing.T) {
	const timeout = 3 * time.Second
	hanging, good := &sealerReplica{name: "hanging", hanging: true}, &sealerReplica{name: "good"}
	client := triedElsewhere{client: sealv1.NewSealerServiceClient(dialReplicas(t, hanging, good)), perTry: timeout / sealerTries}
	// Calls take turns, so that one of few begins with the one that hangs.
	for calls := 0; calls < 2 || hanging.asked.Load() == 0; calls++ {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		response, err := client.Seal(ctx, &sealv1.SealRequest{})
		cancel()
		if err != nil || response.GetToken() != "good" {
			t.Fatalf("got %q, %v", response.GetToken(), err)
		}
	}
}

func TestAReplicaThatDoesNotServeIsLeftOutUntilItDoes(t *testing.T) {
	idle, good := &sealerReplica{name: "idle", health: health.NewServer()}, &sealerReplica{name: "good"}
	idle.serving(healthv1.HealthCheckResponse_NOT_SERVING)
	client := sealv1.NewSealerServiceClient(dialReplicas(t, idle, good))
	seal := func() string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		response, err := client.Seal(ctx, &sealv1.SealRequest{}, grpc.WaitForReady(true))
		if err != nil {
			t.Fatal(err)
		}
		return response.GetToken()
	}
	for range 50 {
		if name := seal(); name != "good" {
			t.Fatalf("%s was asked", name)
		}
	}
	idle.serving(healthv1.HealthCheckResponse_SERVING)
	for seal() != "idle" { //nolint:revive // the call itself is the body
	}
}

func TestAConnectionThatAnswersNoPingIsGivenUp(t *testing.T) {
	if testing.Short() {
		t.Skip("gRPC pings every ten seconds at most, so that this takes a quarter of a minute")
	}
	t.Parallel()
	listening := listen(t)
	dialled(t, listening.Addr().String()).Connect()
	accepted, err := listening.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	// A peer that says the least that HTTP/2 asks for, an empty SETTINGS frame, and
	// then nothing.
	if _, err := accepted.Write([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0}); err != nil {
		t.Fatal(err)
	}
	// Far beyond what it takes; without pings the client would wait for ever.
	if err := accepted.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, accepted); err != nil {
		t.Errorf("the connection still stands: %v", err)
	}
}
