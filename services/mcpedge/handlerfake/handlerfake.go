// Package handlerfake is a handler service for the edge's tests: a catalog and a
// function that runs an attempt, behind real gRPC over memory.
package handlerfake

import (
	"context"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
)

// Stream is the handler's end of an attempt.
type Stream = grpc.BidiStreamingServer[handlerv1.InvokeRequest, handlerv1.InvokeResponse]

// Service is a handler service. Its fields are set before it is served; the
// catalog changes with Change.
type Service struct {
	handlerv1.UnimplementedHandlerServiceServer

	// Run runs an attempt: it is given Begin and the stream.
	Run func(begin *handlerv1.Begin, stream Stream) error
	// Suggest answers Complete; nil for a service that does not implement it.
	Suggest func(*handlerv1.CompleteRequest) *handlerv1.CompleteResponse

	mu       sync.Mutex
	catalog  *handlerv1.Catalog
	watchers []chan *handlerv1.WatchResponse
	// watched is closed when there is a watcher.
	watched chan struct{}
}

// New returns a service with a catalog.
func New(catalog *handlerv1.Catalog) *Service {
	return &Service{catalog: catalog, watched: make(chan struct{})}
}

// Serve serves the service until the test ends and returns a client of it.
func Serve(tb testing.TB, service *Service) handlerv1.HandlerServiceClient {
	tb.Helper()
	listener := bufconn.Listen(1 << 20)
	server := grpc.NewServer()
	handlerv1.RegisterHandlerServiceServer(server, service)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Serve(listener); err != nil {
			tb.Errorf("serve the handler: %v", err)
		}
	})
	connection, err := grpc.NewClient("passthrough:///handler",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		tb.Fatalf("connect to the handler: %v", err)
	}
	tb.Cleanup(func() {
		if err := connection.Close(); err != nil {
			tb.Errorf("close the connection: %v", err)
		}
		server.Stop()
		serving.Wait()
	})
	return handlerv1.NewHandlerServiceClient(connection)
}

// Change replaces the catalog and tells those who watch.
func (s *Service) Change(catalog *handlerv1.Catalog) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catalog = catalog
	s.tell(catalogChanged(catalog))
}

// Update tells those who watch that a resource changed.
func (s *Service) Update(uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell(&handlerv1.WatchResponse{Change: &handlerv1.WatchResponse_ResourceUpdated{ResourceUpdated: &handlerv1.ResourceUpdated{Uri: uri}}})
}

// WaitForWatcher waits until somebody watches.
func (s *Service) WaitForWatcher() { <-s.watched }

// tell tells those who watch. The caller holds mu.
func (s *Service) tell(change *handlerv1.WatchResponse) {
	for _, watcher := range s.watchers {
		watcher <- change
	}
}

func catalogChanged(catalog *handlerv1.Catalog) *handlerv1.WatchResponse {
	return &handlerv1.WatchResponse{Change: &handlerv1.WatchResponse_CatalogChanged{
		CatalogChanged: &handlerv1.CatalogChanged{Revision: catalog.GetRevision()},
	}}
}

// Describe returns the catalog; without one the service cannot be reached.
func (s *Service) Describe(context.Context, *handlerv1.DescribeRequest) (*handlerv1.DescribeResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.catalog == nil {
		return nil, status.Error(codes.Unavailable, "there is no catalog")
	}
	return &handlerv1.DescribeResponse{Catalog: s.catalog}, nil
}

// Watch tells of the present catalog and of every change.
func (s *Service) Watch(_ *handlerv1.WatchRequest, stream grpc.ServerStreamingServer[handlerv1.WatchResponse]) error {
	changes := make(chan *handlerv1.WatchResponse, 64)
	s.mu.Lock()
	if len(s.watchers) == 0 {
		close(s.watched)
	}
	s.watchers = append(s.watchers, changes)
	changes <- catalogChanged(s.catalog)
	s.mu.Unlock()
	for {
		select {
		case <-stream.Context().Done():
			return nil
		case change := <-changes:
			if err := stream.Send(change); err != nil {
				return err
			}
		}
	}
}

// Complete calls Suggest.
func (s *Service) Complete(ctx context.Context, request *handlerv1.CompleteRequest) (*handlerv1.CompleteResponse, error) {
	if s.Suggest == nil {
		return s.UnimplementedHandlerServiceServer.Complete(ctx, request)
	}
	return s.Suggest(request), nil
}

// Invoke reads Begin and calls Run.
func (s *Service) Invoke(stream Stream) error {
	request, err := stream.Recv()
	if err != nil {
		return err
	}
	return s.Run(request.GetBegin(), stream)
}

// Ask sends an ask and returns the answers, or the stream's error, or, where the
// ask was refused, the refusal.
func Ask(stream Stream, ask *handlerv1.Ask) ([]*handlerv1.Answer, *handlerv1.AskRefused, error) {
	if err := stream.Send(&handlerv1.InvokeResponse{Message: &handlerv1.InvokeResponse_Ask{Ask: ask}}); err != nil {
		return nil, nil, err
	}
	request, err := stream.Recv()
	if err != nil {
		return nil, nil, err
	}
	return request.GetAnswers().GetAnswers(), request.GetAskRefused(), nil
}

// FinishText finishes a tool call with a text.
func FinishText(stream Stream, text string) error {
	return Finish(stream, &handlerv1.Finish{Outcome: &handlerv1.Finish_CallTool{CallTool: &handlerv1.CallToolResult{
		Content: []*handlerv1.ContentBlock{Text(text)},
	}}})
}

// Finish finishes an attempt.
func Finish(stream Stream, finish *handlerv1.Finish) error {
	return stream.Send(&handlerv1.InvokeResponse{Message: &handlerv1.InvokeResponse_Finish{Finish: finish}})
}

// Text returns a text as a content block.
func Text(text string) *handlerv1.ContentBlock {
	return &handlerv1.ContentBlock{Content: &handlerv1.ContentBlock_Text{Text: &handlerv1.TextContent{Text: text}}}
}

// Form returns a question that shows a form.
func Form(key, message, schema string) *handlerv1.Question {
	return &handlerv1.Question{Key: key, Kind: &handlerv1.Question_ElicitForm{ElicitForm: &handlerv1.ElicitForm{
		Message: message, RequestedSchema: []byte(schema),
	}}}
}
