package catalog_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	"github.com/countersign-mcp/countersign/services/mcpedge/catalog"
	"github.com/countersign-mcp/countersign/services/mcpedge/handlerfake"
	"github.com/countersign-mcp/countersign/services/mcpedge/subscription"
)

// restless is a handler whose catalog is another one each time, in a bubble of
// virtual time.
type restless struct {
	handlerv1.HandlerServiceClient

	// next returns the next message of a Watch that has begun at a time.
	next func(ctx context.Context, began time.Time) (*handlerv1.WatchResponse, error)

	mu        sync.Mutex
	described int
	// pauses are the times between the end of a Watch and the Describe after it.
	pauses []time.Duration
	ended  time.Time
}

func (r *restless) Describe(context.Context, *handlerv1.DescribeRequest, ...grpc.CallOption) (*handlerv1.DescribeResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.described++
	if !r.ended.IsZero() {
		r.pauses = append(r.pauses, time.Since(r.ended))
		r.ended = time.Time{}
	}
	return &handlerv1.DescribeResponse{Catalog: catalogOf(strconv.Itoa(r.described), "a")}, nil
}

func (r *restless) Watch(ctx context.Context, _ *handlerv1.WatchRequest, _ ...grpc.CallOption) (grpc.ServerStreamingClient[handlerv1.WatchResponse], error) {
	return &watching{ctx: ctx, handler: r, began: time.Now()}, nil
}

// watching is the client's end of a Watch.
type watching struct {
	grpc.ClientStream

	ctx     context.Context
	handler *restless
	began   time.Time
}

func (w *watching) Recv() (*handlerv1.WatchResponse, error) {
	response, err := w.handler.next(w.ctx, w.began)
	if err != nil {
		w.handler.mu.Lock()
		defer w.handler.mu.Unlock()
		w.handler.ended = time.Now()
	}
	return response, err
}

// wait waits for some of the bubble's time, or until ctx ends.
func wait(ctx context.Context, duration time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(duration):
		return nil
	}
}

// calm is an observer that remembers only whether a handler was ever down after it
// was up, and holds up the making of a snapshot where it is told to.
type calm struct {
	*observer

	hold chan struct{}

	mu           sync.Mutex
	up, wentDown bool
}

func (o *calm) HandlerUp(_ string, up bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wentDown = o.wentDown || o.up && !up
	o.up = up
}

func (*calm) ListsChanged(subscription.Filter) {}

func (o *calm) Catalog(map[string]int, int) {
	if o.hold != nil {
		<-o.hold
	}
}

// followFor follows a handler for some of the bubble's time, and returns whether it
// went down before the end, and what was logged.
func followFor(t *testing.T, duration time.Duration, handler *restless) (wentDown bool, logged string) {
	t.Helper()
	var log bytes.Buffer
	o := &calm{observer: newObserver()}
	c := catalog.New([]*catalog.Handler{{Name: "h", Client: handler}}, slog.New(slog.NewTextHandler(&log, nil)), o)
	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() { c.Follow(ctx) })
	<-time.After(duration)
	o.mu.Lock()
	wentDown = o.wentDown
	o.mu.Unlock()
	cancel()
	following.Wait()
	return wentDown, log.String()
}

func TestAHandlerThatChangesAllTheTimeIsDescribedNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		changes := 0
		handler := &restless{next: func(ctx context.Context, _ time.Time) (*handlerv1.WatchResponse, error) {
			changes++
			return &handlerv1.WatchResponse{Change: &handlerv1.WatchResponse_CatalogChanged{
				CatalogChanged: &handlerv1.CatalogChanged{Revision: "change " + strconv.Itoa(changes)},
			}}, wait(ctx, time.Millisecond)
		}}
		followFor(t, 10*time.Second, handler)
		if handler.described < 20 || handler.described > 22 { // one at first, one after the first change, then two a second
			t.Errorf("it was described %d times in ten seconds of %d changes", handler.described, changes)
		}
	})
}

func TestAWatchThatEndsLeavesTheHandlerUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := &restless{next: func(context.Context, time.Time) (*handlerv1.WatchResponse, error) { return nil, io.EOF }}
		wentDown, log := followFor(t, time.Minute, handler)
		if wentDown {
			t.Error("the handler was taken for one that does not answer")
		}
		if handler.described < 8 || handler.described > 40 {
			t.Errorf("it was described %d times in a minute", handler.described)
		}
		if strings.Count(log, "ended its Watch") != 1 || strings.Count(log, "\n") != 2 {
			t.Errorf("one line says that it answers and one that its Watch ends; got\n%s", log)
		}
	})
}

func TestAWatchThatLastedIsFollowedByAnotherSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := &restless{next: func(ctx context.Context, began time.Time) (*handlerv1.WatchResponse, error) {
			if err := wait(ctx, time.Until(began.Add(15*time.Second))); err != nil {
				return nil, err
			}
			return nil, io.EOF
		}}
		followFor(t, 5*time.Minute, handler)
		if len(handler.pauses) < 15 {
			t.Fatalf("there were %d pauses", len(handler.pauses))
		}
		for _, pause := range handler.pauses {
			if pause > time.Second {
				t.Errorf("a pause of %s", pause)
			}
		}
	})
}

func TestWhetherAHandlerAnswersIsKnownWhileASnapshotIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := &restless{next: func(ctx context.Context, _ time.Time) (*handlerv1.WatchResponse, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		o := &calm{observer: newObserver(), hold: make(chan struct{})}
		c := catalog.New([]*catalog.Handler{{Name: "h", Client: handler}}, slog.New(slog.DiscardHandler), o)
		follow(t, c)
		synctest.Wait()
		if c.Snapshot() == nil || c.Reachable("h") == nil {
			t.Error("the snapshot is not being made")
		}
		close(o.hold)
		synctest.Wait()
		if err := c.Reachable("h"); err != nil {
			t.Error(err)
		}
	})
}

func TestWhatDidNotChangeIsNotCompiledAgain(t *testing.T) {
	changing := handlerfake.New(catalogOf("1", "kept"))
	o := newObserver()
	c := catalog.New([]*catalog.Handler{
		{Name: "still", Client: handlerfake.Serve(t, handlerfake.New(catalogOf("1", "still")))},
		{Name: "changing", Client: handlerfake.Serve(t, changing)},
	}, slog.New(slog.DiscardHandler), o)
	follow(t, c)
	<-o.tools
	<-o.tools
	before := c.Snapshot()
	changing.Change(catalogOf("2", "kept", "new"))
	<-o.tools
	after := c.Snapshot()
	if after.Tool("new") == nil || after.Tool("kept").Revision != "2" {
		t.Fatal("the change is not taken in")
	}
	if after.Tool("still") != before.Tool("still") {
		t.Error("the entry of the handler that changed nothing was made again")
	}
	if after.Tool("kept").Input != before.Tool("kept").Input {
		t.Error("the schema that stayed the same was compiled again")
	}
}
