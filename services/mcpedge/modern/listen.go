package modern

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/countersign-mcp/countersign/services/mcpedge/catalog"
	"github.com/countersign-mcp/countersign/services/mcpedge/failure"
	"github.com/countersign-mcp/countersign/services/mcpedge/jsonrpc"
	"github.com/countersign-mcp/countersign/services/mcpedge/render"
	"github.com/countersign-mcp/countersign/services/mcpedge/subscription"
)

const (
	// notifyInterval is the least time between two notifications of the same change:
	// a handler that flaps does not make its clients flap.
	notifyInterval = 100 * time.Millisecond
	// maxSubscribedURIs is how many resources one subscription may name.
	maxSubscribedURIs = 1000
)

// listen serves `subscriptions/listen`: it acknowledges what it will tell of, and
// tells of it until the client goes away or the server stops.
func (s *Server) listen(ctx context.Context, c *call, sink Sink) ([]byte, error) {
	filter, err := s.readFilter(c)
	if err != nil {
		return nil, err
	}
	subscribed, err := s.Subscriptions.Subscribe(c.Principal, filter)
	if errors.Is(err, subscription.ErrTooMany) {
		return nil, failure.New(failure.TooManySubscriptions, err)
	}
	defer subscribed.Close()
	defer s.Metrics.Subscribed()()
	notify := func(method string, params []byte) error {
		if err := sink.Notify(method, params); err != nil {
			return failure.New(failure.Cancelled, err)
		}
		return nil
	}
	id := c.Message.ID
	if err := notify("notifications/subscriptions/acknowledged", render.Acknowledged(id, filter)); err != nil {
		return nil, err
	}
	keepAlive := time.NewTicker(s.KeepAlive)
	defer keepAlive.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, failure.New(failure.Cancelled, ctx.Err())
		case <-subscribed.Done():
			return s.Renderer.Listened(id), nil
		case <-keepAlive.C:
			if err := sink.KeepAlive(); err != nil {
				return nil, failure.New(failure.Cancelled, err)
			}
		case <-subscribed.Ready():
			if err := tell(notify, id, subscribed.Take()); err != nil {
				return nil, err
			}
			select {
			case <-ctx.Done():
			case <-subscribed.Done():
			case <-time.After(notifyInterval):
			}
		}
	}
}

// tell sends a notification for everything that has changed.
func tell(notify func(string, []byte) error, id jsonrpc.ID, changed subscription.Filter) error {
	for _, list := range []struct {
		changed bool
		method  string
	}{
		{changed.Tools, "notifications/tools/list_changed"},
		{changed.Prompts, "notifications/prompts/list_changed"},
		{changed.Resources, "notifications/resources/list_changed"},
	} {
		if list.changed {
			if err := notify(list.method, render.Changed(id, "")); err != nil {
				return err
			}
		}
	}
	for _, uri := range changed.URIs {
		if err := notify("notifications/resources/updated", render.Changed(id, uri)); err != nil {
			return err
		}
	}
	return nil
}

// readFilter reads what a client wants to hear of, and leaves out resources that
// nobody serves.
func (s *Server) readFilter(c *call) (subscription.Filter, error) {
	var filter subscription.Filter
	if len(c.notifications) == 0 || c.notifications[0] != '{' {
		return filter, failure.Newf(failure.InvalidParams, "params.notifications is not an object")
	}
	snapshot, err := s.snapshot()
	if err != nil {
		return filter, err
	}
	err = jsonrpc.EachMember(c.notifications, func(name string, value []byte) error {
		switch name {
		case "toolsListChanged":
			return readFlag(name, value, &filter.Tools)
		case "promptsListChanged":
			return readFlag(name, value, &filter.Prompts)
		case "resourcesListChanged":
			return readFlag(name, value, &filter.Resources)
		case "resourceSubscriptions":
			return readURIs(name, value, snapshot, &filter.URIs)
		}
		return nil
	})
	return filter, err
}

func readFlag(name string, value []byte, flag *bool) error {
	*flag = string(value) == "true"
	if !*flag && string(value) != "false" {
		return failure.Newf(failure.InvalidParams, "params.notifications.%s is not a boolean", name)
	}
	return nil
}

func readURIs(name string, value []byte, snapshot *catalog.Snapshot, uris *[]string) error {
	if value[0] != '[' {
		return failure.Newf(failure.InvalidParams, "params.notifications.%s is not an array", name)
	}
	named := 0
	return jsonrpc.EachElement(value, func(element []byte) error {
		// Counted before it is looked for: a look costs, whether it finds or not.
		named++
		if named > maxSubscribedURIs {
			return failure.Newf(failure.InvalidParams, "params.notifications.%s names more than %d resources", name, maxSubscribedURIs)
		}
		uri, err := jsonrpc.Unquote(element)
		if err != nil || len(uri) > catalog.MaxNameBytes {
			return failure.Newf(failure.InvalidParams, "params.notifications.%s has an element that is not a string of at most %d bytes", name, catalog.MaxNameBytes)
		}
		if snapshot.Resource(uri) != nil && !slices.Contains(*uris, uri) {
			*uris = append(*uris, uri)
		}
		return nil
	})
}
