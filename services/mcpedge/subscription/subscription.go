// Package subscription carries changes of the catalog and of resources to the
// clients that listen for them.
//
// A change concerns few clients or all of them, and a client may read slowly or
// not at all. So nothing is queued: a Subscription holds what has changed since its
// client last looked, as a set. A change that is already in it costs nothing, and
// a flapping handler makes one notification of many. A client is told at once of
// the first change, and then at most once per interval.
//
// The limit: subscriptions are bounded, in all and for one principal. What is lost
// when a client does not read is how often something changed, never that it did.
package subscription

import (
	"errors"
	"slices"
	"sync"

	"github.com/countersign-mcp/countersign/services/mcpedge/identity"
)

// Filter says what a client wants to hear of.
type Filter struct {
	// Tools, Prompts and Resources: changes of the list.
	Tools, Prompts, Resources bool
	// URIs: changes of these resources.
	URIs []string
}

// ErrTooMany means that there are as many subscriptions as are allowed.
var ErrTooMany = errors.New("too many subscriptions")

// Hub passes changes on to subscriptions. It is safe for concurrent use.
type Hub struct {
	max, maxPerPrincipal int

	mu            sync.Mutex
	closed        bool
	subscriptions map[*Subscription]struct{}
	byPrincipal   map[identity.Principal]int
	byURI         map[string]map[*Subscription]struct{}
}

// NewHub returns a hub that allows max subscriptions in all and maxPerPrincipal for
// one principal. Anonymous callers cannot be told apart: only max bounds them.
func NewHub(maxInAll, maxPerPrincipal int) *Hub {
	return &Hub{
		max: maxInAll, maxPerPrincipal: maxPerPrincipal,
		subscriptions: map[*Subscription]struct{}{},
		byPrincipal:   map[identity.Principal]int{},
		byURI:         map[string]map[*Subscription]struct{}{},
	}
}

// Subscription is one client's.
type Subscription struct {
	hub       *Hub
	principal identity.Principal
	filter    Filter
	ready     chan struct{}
	done      chan struct{}
	// pending is what has changed since Take; the hub's mutex guards it.
	pending Filter
}

// Subscribe adds a subscription. It fails with ErrTooMany. The caller closes it.
func (h *Hub) Subscribe(principal identity.Principal, filter Filter) (*Subscription, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.subscriptions) >= h.max || principal != identity.AnonymousPrincipal && h.byPrincipal[principal] >= h.maxPerPrincipal {
		return nil, ErrTooMany
	}
	s := &Subscription{hub: h, principal: principal, filter: filter, ready: make(chan struct{}, 1), done: make(chan struct{})}
	if h.closed {
		close(s.done)
		return s, nil
	}
	h.subscriptions[s] = struct{}{}
	h.byPrincipal[principal]++
	for _, uri := range filter.URIs {
		if h.byURI[uri] == nil {
			h.byURI[uri] = map[*Subscription]struct{}{}
		}
		h.byURI[uri][s] = struct{}{}
	}
	return s, nil
}

// Len is how many subscriptions there are.
func (h *Hub) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.subscriptions)
}

// ListsChanged tells of lists that changed. URIs are ignored.
func (h *Hub) ListsChanged(changed Filter) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.subscriptions {
		wanted := Filter{
			Tools:     s.filter.Tools && changed.Tools,
			Prompts:   s.filter.Prompts && changed.Prompts,
			Resources: s.filter.Resources && changed.Resources,
		}
		if !wanted.Tools && !wanted.Prompts && !wanted.Resources {
			continue
		}
		s.pending.Tools = s.pending.Tools || wanted.Tools
		s.pending.Prompts = s.pending.Prompts || wanted.Prompts
		s.pending.Resources = s.pending.Resources || wanted.Resources
		s.wake()
	}
}

// ResourceUpdated tells of a resource that changed.
func (h *Hub) ResourceUpdated(uri string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.byURI[uri] {
		if !slices.Contains(s.pending.URIs, uri) {
			s.pending.URIs = append(s.pending.URIs, uri)
		}
		s.wake()
	}
}

// Close ends every subscription, present and future: Done is closed.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	h.closed = true
	for s := range h.subscriptions {
		close(s.done)
	}
}

func (s *Subscription) wake() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// Ready receives when there is something to take.
func (s *Subscription) Ready() <-chan struct{} { return s.ready }

// Done is closed when the server ends the subscription.
func (s *Subscription) Done() <-chan struct{} { return s.done }

// Take returns what has changed since the last call.
func (s *Subscription) Take() Filter {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	pending := s.pending
	s.pending = Filter{}
	return pending
}

// Close removes the subscription.
func (s *Subscription) Close() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if _, present := s.hub.subscriptions[s]; !present {
		return
	}
	delete(s.hub.subscriptions, s)
	s.hub.byPrincipal[s.principal]--
	if s.hub.byPrincipal[s.principal] == 0 {
		delete(s.hub.byPrincipal, s.principal)
	}
	for _, uri := range s.filter.URIs {
		delete(s.hub.byURI[uri], s)
		if len(s.hub.byURI[uri]) == 0 {
			delete(s.hub.byURI, uri)
		}
	}
}
