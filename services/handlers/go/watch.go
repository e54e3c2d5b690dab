package handler

import (
	"context"
	"maps"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
)

// watcher is one open Watch stream. What it has not sent yet is a set, so that a
// slow edge costs no more memory than the catalog has resources.
type watcher struct {
	wake chan struct{}

	mutex   sync.Mutex
	catalog bool
	updated map[string]bool
	closed  bool
}

func (w *watcher) change(apply func()) {
	w.mutex.Lock()
	apply()
	w.mutex.Unlock()
	select {
	case w.wake <- struct{}{}:
	default: // it is awake already
	}
}

func (w *watcher) catalogChanged() { w.change(func() { w.catalog = true }) }

func (w *watcher) resourceUpdated(uri string) { w.change(func() { w.updated[uri] = true }) }

func (w *watcher) close() { w.change(func() { w.closed = true }) }

// take returns and forgets what there is to send.
func (w *watcher) take() (catalog bool, updated []string, closed bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	catalog, updated = w.catalog, slices.Sorted(maps.Keys(w.updated))
	w.catalog = false
	clear(w.updated)
	return catalog, updated, w.closed
}

// ResourceUpdated tells clients that watch the resource that reading it would now
// return something else.
func (s *Server) ResourceUpdated(uri string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for watcher := range s.watchers {
		watcher.resourceUpdated(uri)
	}
}

// Describe implements the contract's Describe.
func (s *Server) Describe(context.Context, *handlerv1.DescribeRequest) (*handlerv1.DescribeResponse, error) {
	catalog, err := s.currentCatalog()
	if err != nil {
		s.logger.Error("the catalog cannot be described", "error", err)
		return nil, status.Error(codes.Internal, "the catalog cannot be described")
	}
	return &handlerv1.DescribeResponse{Catalog: catalog}, nil
}

// Watch implements the contract's Watch. It first sends the present revision, so
// that a change between Describe and Watch is not lost.
func (s *Server) Watch(_ *handlerv1.WatchRequest, stream grpc.ServerStreamingServer[handlerv1.WatchResponse]) error {
	watcher := &watcher{wake: make(chan struct{}, 1), updated: make(map[string]bool)}
	watcher.catalogChanged()
	s.mutex.Lock()
	s.watchers[watcher] = true
	s.mutex.Unlock()
	defer func() {
		s.mutex.Lock()
		delete(s.watchers, watcher)
		s.mutex.Unlock()
	}()
	for {
		select {
		case <-watcher.wake:
		case <-stream.Context().Done():
			return status.FromContextError(stream.Context().Err()).Err()
		}
		closed, err := s.sendChanges(watcher, stream)
		if err != nil {
			return err
		}
		if closed {
			return status.Error(codes.Unavailable, "the service is shutting down")
		}
	}
}

func (s *Server) sendChanges(
	watcher *watcher, stream grpc.ServerStreamingServer[handlerv1.WatchResponse],
) (closed bool, err error) {
	catalogChanged, updated, closed := watcher.take()
	if catalogChanged {
		catalog, err := s.currentCatalog()
		if err != nil {
			s.logger.Error("the catalog cannot be described", "error", err)
			return false, status.Error(codes.Internal, "the catalog cannot be described")
		}
		err = stream.Send(&handlerv1.WatchResponse{Change: &handlerv1.WatchResponse_CatalogChanged{
			CatalogChanged: &handlerv1.CatalogChanged{Revision: catalog.GetRevision()},
		}})
		if err != nil {
			return false, err
		}
	}
	for _, uri := range updated {
		err := stream.Send(&handlerv1.WatchResponse{Change: &handlerv1.WatchResponse_ResourceUpdated{
			ResourceUpdated: &handlerv1.ResourceUpdated{Uri: uri},
		}})
		if err != nil {
			return false, err
		}
	}
	return closed, nil
}

// closeWatchers ends the open Watch streams, which would hold up a graceful stop
// for ever.
func (s *Server) closeWatchers() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for watcher := range s.watchers {
		watcher.close()
	}
}
