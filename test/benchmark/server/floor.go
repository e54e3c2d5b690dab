package server

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// EchoMethod is the method of the bare gRPC service, which takes and returns bytes.
const EchoMethod = "/countersign.benchmark.Echo/Echo"

// EchoSize makes a request to the bare gRPC service: size bytes, which ask for a
// reply of replySize bytes.
func EchoSize(size, replySize int) *wrapperspb.BytesValue {
	value := make([]byte, max(size, 4))
	binary.BigEndian.PutUint32(value, uint32(replySize)) //nolint:gosec // sizes of messages
	return wrapperspb.Bytes(value)
}

// echo is the bare gRPC service: what gRPC costs when nothing is done.
func echo(ctx context.Context, listener net.Listener, _ Options) error {
	server := grpc.NewServer()
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "countersign.benchmark.Echo",
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "Echo", Handler: echoBytes}},
	}, struct{}{})
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	return server.Serve(listener)
}

//nolint:revive // the signature is gRPC's
func echoBytes(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	request := new(wrapperspb.BytesValue)
	if err := decode(request); err != nil {
		return nil, err
	}
	value := request.GetValue()
	if len(value) < 4 {
		return nil, errors.New("the request is too short to say how long the reply is")
	}
	return wrapperspb.Bytes(make([]byte, binary.BigEndian.Uint32(value))), nil
}

// floor is a plain HTTP handler that forwards to the bare gRPC service and answers
// with a fixed text: what a call costs when nobody looks at it.
func floor(ctx context.Context, listener net.Listener, options Options) error {
	connection, err := grpc.NewClient(options.Backend, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("connect to the bare gRPC service: %w", err)
	}
	defer func() { _ = connection.Close() }()
	result := []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hello"}],"resultType":"complete"}}`)
	return serveHTTP(ctx, listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		reply := new(wrapperspb.BytesValue)
		if err == nil {
			request := EchoSize(len(body), len(result))
			copy(request.GetValue()[4:], body)
			err = connection.Invoke(r.Context(), EchoMethod, request, reply)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		copy(reply.GetValue(), result)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(reply.GetValue())
	}))
}
