package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	"github.com/countersign-mcp/countersign/services/mcpedge/subscription"
)

const (
	describeTimeout = 10 * time.Second
	// Between two tries to reach a handler the follower waits from minBackoff,
	// doubling, up to maxBackoff, each time with jitter.
	minBackoff = 100 * time.Millisecond
	maxBackoff = 5 * time.Second
	// steadyWatch is how long a Watch must have lasted for the next try to follow it
	// after minBackoff again.
	steadyWatch = 10 * time.Second
	// pollInterval is how often a handler without Watch is asked again.
	pollInterval = 30 * time.Second
	// describeInterval is the least time between two Describes that one Watch causes.
	// What changes in between is seen by the next one.
	describeInterval = 500 * time.Millisecond
)

// Observer is told of what changes.
type Observer interface {
	// HandlerUp says whether a handler answers.
	HandlerUp(handler string, up bool)
	// Catalog says how many entries there are of each kind, and how many were left
	// out.
	Catalog(entries map[string]int, problems int)
	// ListsChanged says which lists are no longer what they were. URIs are empty.
	ListsChanged(changed subscription.Filter)
	// ResourceUpdated says that a resource's contents changed.
	ResourceUpdated(uri string)
}

// Catalog follows handler services and holds the latest snapshot of what they
// offer.
type Catalog struct {
	handlers []*Handler
	logger   *slog.Logger
	observer Observer
	snapshot atomic.Pointer[Snapshot]
	// settled is closed when every handler has been tried once.
	settled chan struct{}

	// taking, by position in handlers, is held while something that the handler
	// described is taken in. Locks are taken in the order of these fields, and nothing
	// is compiled under those that follow.
	taking []sync.Mutex

	// building is held while a snapshot is made and its observers are told.
	building sync.Mutex
	offers   []*offer // by position in handlers
	reported map[Problem]bool

	mu sync.Mutex
	// By position in handlers: the latest catalog, nil before the first; why each
	// replica does not answer, nil while it does; and whether it was tried.
	described []*handlerv1.Catalog
	replicas  []map[string]error
	tried     []bool
	untried   int
}

// New returns a catalog of handlers, in the order of the configuration. It is
// empty until Follow has reached one.
func New(handlers []*Handler, logger *slog.Logger, observer Observer) *Catalog {
	c := &Catalog{
		handlers:  handlers,
		logger:    logger,
		observer:  observer,
		taking:    make([]sync.Mutex, len(handlers)),
		offers:    make([]*offer, len(handlers)),
		described: make([]*handlerv1.Catalog, len(handlers)),
		replicas:  make([]map[string]error, len(handlers)),
		tried:     make([]bool, len(handlers)),
		untried:   len(handlers),
		settled:   make(chan struct{}),
	}
	for i, handler := range handlers {
		c.offers[i] = prepare(Description{Handler: handler}, nil)
		c.replicas[i] = map[string]error{}
		observer.HandlerUp(handler.Name, false)
	}
	return c
}

// Snapshot returns the latest snapshot, or nil while no handler has described
// itself.
func (c *Catalog) Snapshot() *Snapshot { return c.snapshot.Load() }

// Settled is closed when every handler has been tried once, with success or not.
func (c *Catalog) Settled() <-chan struct{} { return c.settled }

// try records that a handler has been tried. The caller holds mu.
func (c *Catalog) try(i int) {
	if c.tried[i] {
		return
	}
	c.tried[i] = true
	c.untried--
	if c.untried == 0 {
		close(c.settled)
	}
}

// Reachable returns nil if a replica of the handler of a name answers, or why none
// does.
func (c *Catalog) Reachable(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, handler := range c.handlers {
		if handler.Name == name {
			return c.reachable(i)
		}
	}
	return fmt.Errorf("there is no handler %q", name)
}

// reachable is Reachable by position. The caller holds mu.
func (c *Catalog) reachable(i int) error {
	err := errors.New("it has not answered yet")
	for _, problem := range c.replicas[i] {
		if problem == nil {
			return nil
		}
		err = problem
	}
	return err
}

// Follow keeps the snapshot up to date until ctx ends.
func (c *Catalog) Follow(ctx context.Context) {
	var group sync.WaitGroup
	for i, handler := range c.handlers {
		if handler.Replicas == nil {
			group.Go(func() { c.follow(ctx, i, handler.Name, handler.Client) })
			continue
		}
		group.Go(func() {
			handler.Replicas(ctx, func(ctx context.Context, replica string, client handlerv1.HandlerServiceClient) {
				c.follow(ctx, i, replica, client)
			}, func(replicas int, err error) { c.looked(i, replicas, err) })
		})
	}
	group.Wait()
}

// follow keeps what one replica describes up to date until ctx ends. A replica whose
// Watch ends without an error is no less there than one without Watch.
func (c *Catalog) follow(ctx context.Context, i int, replica string, client handlerv1.HandlerServiceClient) {
	defer c.gone(i, replica)
	backoff := minBackoff
	endless := true // no Watch has ended by itself yet
	for ctx.Err() == nil {
		err := c.describe(ctx, i, replica, client)
		if err == nil {
			began := time.Now()
			err = c.watch(ctx, i, replica, client)
			if time.Since(began) >= steadyWatch {
				backoff = minBackoff
			}
		}
		if ctx.Err() != nil {
			return
		}
		pause := time.Duration(rand.Int64N(int64(backoff))) + backoff/2 //nolint:gosec // jitter is no secret
		switch {
		case status.Code(err) == codes.Unimplemented:
			pause = pollInterval
		case errors.Is(err, io.EOF):
			if endless {
				c.logger.Info("handler ended its Watch; it is described and watched again", "handler", c.handlers[i].Name, "replica", replica)
				endless = false
			}
			backoff = min(2*backoff, maxBackoff)
		default:
			c.lost(i, replica, err)
			backoff = min(2*backoff, maxBackoff)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// describe asks a handler for its catalog.
func (c *Catalog) describe(ctx context.Context, i int, replica string, client handlerv1.HandlerServiceClient) error {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	response, err := client.Describe(ctx, &handlerv1.DescribeRequest{})
	if err != nil {
		if status.Code(err) == codes.Unimplemented {
			return errors.New("the service does not implement Describe")
		}
		return fmt.Errorf("describe: %w", err)
	}
	c.found(i, replica, response.GetCatalog())
	return nil
}

// watch describes a handler again when it says that its catalog changed, until the
// stream ends, and returns why it did.
func (c *Catalog) watch(ctx context.Context, i int, replica string, client handlerv1.HandlerServiceClient) error {
	ctx, cancel := context.WithCancelCause(ctx)
	stream, err := client.Watch(ctx, &handlerv1.WatchRequest{})
	if err != nil {
		cancel(nil)
		return err
	}
	changed := make(chan struct{}, 1)
	var describing sync.WaitGroup
	describing.Go(func() { cancel(c.redescribe(ctx, i, replica, client, changed)) })
	defer describing.Wait()
	defer cancel(nil)
	for {
		change, err := stream.Recv()
		if cause := context.Cause(ctx); err != nil && cause != nil {
			return cause // what ended the stream from here
		}
		if err != nil {
			return err
		}
		if updated := change.GetResourceUpdated(); updated != nil {
			c.updated(i, updated.GetUri())
		}
		if change.GetCatalogChanged() != nil && change.GetCatalogChanged().GetRevision() != c.revision(i) {
			select {
			case changed <- struct{}{}:
			default: // the Describe that is due will see this change too
			}
		}
	}
}

// redescribe describes a handler after changes, the first at once, until ctx ends or
// the handler does not answer.
func (c *Catalog) redescribe(ctx context.Context, i int, replica string, client handlerv1.HandlerServiceClient, changed <-chan struct{}) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
		if err := c.describe(ctx, i, replica, client); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(describeInterval):
		}
	}
}

// updated passes on that a resource changed, if it is the handler's own.
func (c *Catalog) updated(i int, uri string) {
	if resource := c.Snapshot().Resource(uri); resource != nil && resource.Handler == c.handlers[i] {
		c.observer.ResourceUpdated(uri)
	}
}

func (c *Catalog) revision(i int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.described[i].GetRevision()
}

// found takes in what a replica described. Where replicas describe different
// things, during a deployment, the latest counts.
func (c *Catalog) found(i int, replica string, described *handlerv1.Catalog) {
	c.taking[i].Lock()
	defer c.taking[i].Unlock()
	if c.differs(i, described) {
		c.renew(i, described)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.described[i] = described
	if problem, known := c.replicas[i][replica]; !known || problem != nil {
		c.logger.Info("handler answers", "handler", c.handlers[i].Name, "replica", replica, "revision", described.GetRevision())
	}
	c.replicas[i][replica] = nil
	c.observer.HandlerUp(c.handlers[i].Name, true)
	c.try(i)
}

// differs says whether a catalog is another than the handler's latest.
func (c *Catalog) differs(i int, described *handlerv1.Catalog) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.described[i] == nil || c.described[i].GetRevision() != described.GetRevision()
}

// lost records that a replica does not answer. Its entries stay.
func (c *Catalog) lost(i int, replica string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if problem, known := c.replicas[i][replica]; !known || problem == nil {
		c.logger.Warn("handler does not answer", "handler", c.handlers[i].Name, "replica", replica, "error", err)
	}
	c.replicas[i][replica] = err
	c.observer.HandlerUp(c.handlers[i].Name, c.reachable(i) == nil)
	c.try(i)
}

// gone forgets a replica that is no more.
func (c *Catalog) gone(i int, replica string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.replicas[i], replica)
	c.observer.HandlerUp(c.handlers[i].Name, c.reachable(i) == nil)
}

// looked records a look-up of a handler's replicas: one without any is a try too.
func (c *Catalog) looked(i, replicas int, err error) {
	if replicas > 0 && err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.try(i)
}

// renew makes a new snapshot with what a handler describes now. The caller holds the
// handler's lock in taking, so that only that handler waits for its schemas.
func (c *Catalog) renew(i int, described *handlerv1.Catalog) {
	prepared := prepare(Description{Handler: c.handlers[i], Catalog: described}, c.offer(i))
	c.building.Lock()
	defer c.building.Unlock()
	c.offers[i] = prepared
	snapshot := merge(c.offers)
	problems := map[Problem]bool{}
	for _, problem := range snapshot.Problems {
		problems[problem] = true
		if !c.reported[problem] {
			c.logger.Error("catalog entry left out", "handler", problem.Handler, "kind", problem.Kind, "name", problem.Name, "problem", problem.Text)
		}
	}
	c.reported = problems
	before := c.snapshot.Swap(snapshot)
	if before != nil {
		c.observer.ListsChanged(subscription.Filter{
			Tools:   !before.Lists.Tools.equal(snapshot.Lists.Tools),
			Prompts: !before.Lists.Prompts.equal(snapshot.Lists.Prompts),
			Resources: !before.Lists.Resources.equal(snapshot.Lists.Resources) ||
				!before.Lists.ResourceTemplates.equal(snapshot.Lists.ResourceTemplates),
		})
	}
	c.observer.Catalog(map[string]int{
		"tool":              len(snapshot.Lists.Tools.Elements),
		"prompt":            len(snapshot.Lists.Prompts.Elements),
		"resource":          len(snapshot.Lists.Resources.Elements),
		"resource_template": len(snapshot.Lists.ResourceTemplates.Elements),
	}, len(problems))
}

// offer returns what a handler offers in the latest snapshot.
func (c *Catalog) offer(i int) *offer {
	c.building.Lock()
	defer c.building.Unlock()
	return c.offers[i]
}
