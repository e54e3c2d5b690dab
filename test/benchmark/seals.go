package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	sealv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/seal/v1"
	"github.com/countersign-mcp/countersign/services/sealer/keyring"
	"github.com/countersign-mcp/countersign/services/sealer/keysource"
	sealerserver "github.com/countersign-mcp/countersign/services/sealer/server"
	"github.com/countersign-mcp/countersign/test/benchmark/server"
)

// sealTimeout is the deadline of a call; a sealer refuses a call without one.
const sealTimeout = 5 * time.Second

// sealing is the messages of the calls that are measured: of a chain in its second
// round, with an answer and a little state.
type sealing struct {
	seal   *sealv1.SealRequest
	sealed *sealv1.SealResponse
	open   *sealv1.OpenRequest
	opened *sealv1.OpenResponse
}

// newSealing makes the messages, with a token of the sealer that is called.
func newSealing(purpose sealv1.Purpose, sealer sealv1.SealerServiceClient) (sealing, error) {
	digest := sha256.Sum256([]byte("parameters"))
	now := time.Now()
	binding := &sealv1.Binding{
		Context: &sealv1.Context{Audience: "http://127.0.0.1/mcp", Environment: "benchmark"},
		Method:  "tools/call", Target: "refund", PrincipalIssuer: "https://issuer.example.com", PrincipalSubject: "alice", ParamsDigest: digest[:],
	}
	s := sealing{seal: &sealv1.SealRequest{
		Purpose: purpose, Binding: binding, TimeToLive: durationpb.New(time.Hour),
		RequestState: &sealv1.RequestState{
			ChainId: rand.Text(), ChainStartedMs: now.UnixMilli(), ChainExpiresMs: now.Add(time.Hour).UnixMilli(), Round: 2, Attempts: 2,
			Handler: "refunds", CatalogRevision: "1",
			Questions:    []*sealv1.AskedQuestion{{Key: "amount", Digest: digest[:]}, {Key: "sure", Digest: digest[:]}},
			Answers:      []*sealv1.RecordedAnswer{{Key: "amount", Response: []byte(`{"action":"accept","content":{"amount":12.5}}`)}},
			HandlerState: []*sealv1.StateEntry{{Key: "order", Value: `{"id":"A-1009","total":"99.90","currency":"EUR"}`}},
		},
	}}
	ctx, cancel := context.WithTimeout(context.Background(), sealTimeout)
	defer cancel()
	var err error
	if s.sealed, err = sealer.Seal(ctx, s.seal); err != nil {
		return s, fmt.Errorf("seal: %w", err)
	}
	s.open = &sealv1.OpenRequest{Purpose: purpose, Token: s.sealed.GetToken(), Expected: binding, MaxRound: 16}
	if s.opened, err = sealer.Open(ctx, s.open); err != nil {
		return s, fmt.Errorf("open: %w", err)
	}
	if s.opened.GetOpened() == nil {
		return s, errors.New("the sealer refuses its own token")
	}
	return s, nil
}

// seals measures sealing and opening over gRPC against a bare gRPC echo of messages
// of the same sizes, and in this process.
func (b *benchmark) seals(gogc string) error {
	sealer, err := b.fleet.sealer(gogc)
	if err != nil {
		return err
	}
	bare, err := b.fleet.server(gogc, "echo")
	if err != nil {
		return err
	}
	sealers, closeSealers, err := connect(sealer.address)
	if err != nil {
		return err
	}
	defer closeSealers()
	echoes, closeEchoes, err := connect(bare.address)
	if err != nil {
		return err
	}
	defer closeEchoes()
	for _, suite := range []struct {
		name    string
		purpose sealv1.Purpose
	}{
		{"HMAC-SHA256", sealv1.Purpose_PURPOSE_REQUEST_STATE},
		{"AES-256-GCM", sealv1.Purpose_PURPOSE_ENCRYPTED_REQUEST_STATE},
	} {
		messages, err := newSealing(suite.purpose, sealv1.NewSealerServiceClient(sealers[0]))
		if err != nil {
			return err
		}
		for _, operation := range []struct {
			name          string
			request       proto.Message
			call          string
			reply         func() proto.Message
			expectedReply proto.Message
		}{
			{"seal", messages.seal, sealv1.SealerService_Seal_FullMethodName, func() proto.Message { return new(sealv1.SealResponse) }, messages.sealed},
			{"open", messages.open, sealv1.SealerService_Open_FullMethodName, func() proto.Message { return new(sealv1.OpenResponse) }, messages.opened},
		} {
			size, replySize := proto.Size(operation.request), proto.Size(operation.expectedReply)
			contestants := []contestant{
				remote("bare gRPC echo", bare, echoes, server.EchoMethod, server.EchoSize(size, replySize), func() proto.Message { return new(wrapperspb.BytesValue) }),
				remote(operation.name+" over gRPC", sealer, sealers, operation.call, operation.request, operation.reply),
			}
			scores, err := contest(contestants, b.rounds, b.duration)
			if err != nil {
				return err
			}
			b.compare(fmt.Sprintf("%s, %s, %d bytes there and %d back, GOGC=%s", operation.name, suite.name, size, replySize, gogc), contestants, scores)
		}
		if err := b.sealsHere(suite.name, messages, gogc); err != nil {
			return err
		}
	}
	return nil
}

// remote is a contestant that calls a gRPC service.
func remote(name string, service *process, connections []*grpc.ClientConn, method string, request proto.Message, reply func() proto.Message) contestant {
	return contestant{name: name, processes: []*process{service}, goroutines: goroutinesPerConnection * len(connections), call: func(goroutine int) error {
		ctx, cancel := context.WithTimeout(context.Background(), sealTimeout)
		defer cancel()
		return connections[goroutine%len(connections)].Invoke(ctx, method, request, reply())
	}}
}

// A sealer has several edges, and each has many requests.
const (
	grpcConnections         = 4
	goroutinesPerConnection = 16
)

// connect opens connections to a gRPC service.
func connect(address string) (connections []*grpc.ClientConn, closeAll func(), err error) {
	closeAll = func() {
		for _, connection := range connections {
			_ = connection.Close()
		}
	}
	for range grpcConnections {
		connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			closeAll()
			return nil, nil, fmt.Errorf("connect to %q: %w", address, err)
		}
		connections = append(connections, connection)
	}
	return connections, closeAll, nil
}

// sealsHere measures a sealer in this process, which an edge can have embedded.
func (b *benchmark) sealsHere(suite string, messages sealing, gogc string) error {
	logger := slog.New(slog.DiscardHandler)
	configuration := keysource.Defaults()
	configuration.Source = "ephemeral"
	source, err := configuration.Open(time.Now(), rand.Reader, logger)
	if err != nil {
		return fmt.Errorf("make keys: %w", err)
	}
	keys, err := keyring.New(source, configuration.Settings(), time.Now, logger)
	if err != nil {
		return fmt.Errorf("make keys: %w", err)
	}
	ctx := context.Background()
	if err := keys.Refresh(ctx); err != nil {
		return fmt.Errorf("read keys: %w", err)
	}
	sealer, err := sealerserver.New(keys, time.Now, rand.Reader, prometheus.NewRegistry(), logger)
	if err != nil {
		return fmt.Errorf("make a sealer: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	sealed, err := sealer.Seal(ctx, messages.seal)
	if err != nil {
		return fmt.Errorf("seal: %w", err)
	}
	open, cloned := proto.Clone(messages.open).(*sealv1.OpenRequest)
	if !cloned {
		return errors.New("the clone of a message is another message")
	}
	open.Token = sealed.GetToken()
	contestants := []contestant{
		{name: "seal in process", goroutines: 1, call: func(int) error {
			_, err := sealer.Seal(ctx, messages.seal)
			return err
		}},
		{name: "open in process", goroutines: 1, call: func(int) error {
			reply, err := sealer.Open(ctx, open)
			if err == nil && reply.GetOpened() == nil {
				err = errors.New("the sealer refuses its own token")
			}
			return err
		}},
	}
	scores, err := contest(contestants, b.rounds, b.duration)
	if err != nil {
		return err
	}
	b.compare(fmt.Sprintf("in process with one goroutine, %s, GOGC of this process, servers at %s", suite, gogc), contestants, scores)
	return nil
}
