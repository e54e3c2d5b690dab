package catalog_test

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	"github.com/countersign-mcp/countersign/services/mcpedge/catalog"
	"github.com/countersign-mcp/countersign/services/mcpedge/handlerfake"
	"github.com/countersign-mcp/countersign/services/mcpedge/subscription"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// observer passes on what it is told.
type observer struct {
	tools   chan int
	up      chan bool
	changed chan subscription.Filter
	updated chan string
}

func (o *observer) ListsChanged(changed subscription.Filter) { o.changed <- changed }

func (o *observer) ResourceUpdated(uri string) { o.updated <- uri }

func newObserver() *observer {
	return &observer{
		tools: make(chan int, 100), up: make(chan bool, 100),
		changed: make(chan subscription.Filter, 100), updated: make(chan string, 100),
	}
}

func (o *observer) HandlerUp(_ string, up bool) { o.up <- up }

func (o *observer) Catalog(entries map[string]int, _ int) { o.tools <- entries["tool"] }

func catalogOf(revision string, tools ...string) *handlerv1.Catalog {
	described := &handlerv1.Catalog{Revision: revision}
	for _, name := range tools {
		described.Tools = append(described.Tools, &handlerv1.Tool{Name: name, InputSchema: []byte(`{"type":"object"}`)})
	}
	return described
}

func follow(t *testing.T, c *catalog.Catalog) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() { c.Follow(ctx) })
	t.Cleanup(func() {
		cancel()
		following.Wait()
	})
}

func TestAChangeOfAHandlerReachesTheSnapshot(t *testing.T) {
	service := handlerfake.New(catalogOf("1", "a"))
	o := newObserver()
	c := catalog.New([]*catalog.Handler{{Name: "h", Client: handlerfake.Serve(t, service)}}, slog.New(slog.DiscardHandler), o)
	if c.Snapshot() != nil || c.Reachable("h") == nil {
		t.Fatal("it knows of a handler that it has not reached")
	}
	follow(t, c)
	for up := false; !up; { // it answers once its entries are there
		up = <-o.up
	}
	if got := <-o.tools; got != 1 || c.Snapshot().Tool("a") == nil || c.Reachable("h") != nil {
		t.Fatalf("got %d tools, %v", got, c.Reachable("h"))
	}
	service.Change(catalogOf("2", "b", "c"))
	if got := <-o.tools; got != 2 || c.Snapshot().Tool("a") != nil || c.Snapshot().Tool("b") == nil {
		t.Fatalf("got %d tools", got)
	}
	if got, want := <-o.changed, (subscription.Filter{Tools: true}); !reflect.DeepEqual(got, want) {
		t.Errorf("changed: got %+v, want %+v", got, want)
	}
}

func TestAnUpdateIsPassedOnIfTheResourceIsTheHandlersOwn(t *testing.T) {
	own := &handlerv1.Catalog{Revision: "1", Resources: []*handlerv1.Resource{{Uri: "x://own", Name: "own"}}}
	service := handlerfake.New(own)
	other := handlerfake.New(&handlerv1.Catalog{Revision: "1", Resources: []*handlerv1.Resource{{Uri: "x://other", Name: "other"}}})
	o := newObserver()
	c := catalog.New([]*catalog.Handler{{Name: "h", Client: handlerfake.Serve(t, service)}, {Name: "i", Client: handlerfake.Serve(t, other)}}, slog.New(slog.DiscardHandler), o)
	follow(t, c)
	<-o.tools
	<-o.tools
	service.WaitForWatcher()
	for _, uri := range []string{"x://other", "x://none", "x://own"} {
		service.Update(uri)
	}
	if got := <-o.updated; got != "x://own" {
		t.Errorf("got %s", got)
	}
}

// failing is a handler that answers Describe and then is gone.
type failing struct {
	handlerv1.HandlerServiceClient

	mu   sync.Mutex
	gone bool
}

func (f *failing) Describe(ctx context.Context, request *handlerv1.DescribeRequest, options ...grpc.CallOption) (*handlerv1.DescribeResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone {
		return nil, errors.New("gone")
	}
	f.gone = true
	return f.HandlerServiceClient.Describe(ctx, request, options...)
}

func (f *failing) Watch(context.Context, *handlerv1.WatchRequest, ...grpc.CallOption) (grpc.ServerStreamingClient[handlerv1.WatchResponse], error) {
	return nil, errors.New("gone")
}

func TestALostHandlerKeepsItsEntriesAndIsNamed(t *testing.T) {
	client := &failing{HandlerServiceClient: handlerfake.Serve(t, handlerfake.New(catalogOf("1", "a")))}
	o := newObserver()
	c := catalog.New([]*catalog.Handler{{Name: "h", Client: client}}, slog.New(slog.DiscardHandler), o)
	follow(t, c)
	for _, want := range []bool{false, true, false} {
		if got := <-o.up; got != want {
			t.Fatalf("the handler is up: got %t, want %t", got, want)
		}
	}
	if err := c.Reachable("h"); err == nil || c.Snapshot().Tool("a") == nil {
		t.Errorf("got %v, tool %v", err, c.Snapshot().Tool("a"))
	}
	if c.Reachable("other") == nil {
		t.Error("a handler that is not configured is reachable")
	}
}

func TestEveryReplicaIsHeard(t *testing.T) {
	replicas := map[string]*handlerfake.Service{"a": handlerfake.New(catalogOf("1", "old")), "b": handlerfake.New(catalogOf("1", "old"))}
	clients := map[string]handlerv1.HandlerServiceClient{"a": handlerfake.Serve(t, replicas["a"]), "b": handlerfake.Serve(t, replicas["b"])}
	goneB := make(chan struct{})
	o := newObserver()
	c := catalog.New([]*catalog.Handler{{Name: "h", Replicas: func(ctx context.Context, each func(context.Context, string, handlerv1.HandlerServiceClient), looked func(int, error)) {
		looked(2, nil)
		var group sync.WaitGroup
		ctxB, cancelB := context.WithCancel(ctx)
		defer cancelB()
		group.Go(func() { each(ctx, "a", clients["a"]) })
		group.Go(func() { each(ctxB, "b", clients["b"]) })
		select {
		case <-goneB:
			cancelB()
		case <-ctx.Done():
		}
		group.Wait()
	}}}, slog.New(slog.DiscardHandler), o)
	follow(t, c)
	<-o.tools
	for _, service := range replicas {
		service.WaitForWatcher()
	}
	replicas["b"].Change(catalogOf("2", "new"))
	<-o.tools
	if c.Snapshot().Tool("new") == nil {
		t.Error("the change of one replica is not taken in")
	}
	close(goneB)
	replicas["a"].Change(catalogOf("3", "newer"))
	<-o.tools
	if c.Snapshot().Tool("newer") == nil || c.Reachable("h") != nil {
		t.Errorf("the replica that is left is not heard: %v", c.Reachable("h"))
	}
}

func TestAHandlerWithoutReplicasIsTried(t *testing.T) {
	o := newObserver()
	c := catalog.New([]*catalog.Handler{{Name: "h", Replicas: func(ctx context.Context, _ func(context.Context, string, handlerv1.HandlerServiceClient), looked func(int, error)) {
		looked(0, errors.New("no such host"))
		<-ctx.Done()
	}}}, slog.New(slog.DiscardHandler), o)
	follow(t, c)
	<-c.Settled()
	if c.Reachable("h") == nil || c.Snapshot() != nil {
		t.Error("it is reachable")
	}
}
