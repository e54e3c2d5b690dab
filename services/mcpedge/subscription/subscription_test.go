package subscription

import (
	"errors"
	"reflect"
	"testing"

	"github.com/countersign-mcp/countersign/services/mcpedge/identity"
)

var ann = identity.Principal{Issuer: "proxy", Subject: "ann"}

func subscribe(t *testing.T, h *Hub, principal identity.Principal, filter Filter) *Subscription {
	t.Helper()
	s, err := h.Subscribe(principal, filter)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// isReady says whether there is something to take.
func isReady(s *Subscription) bool {
	select {
	case <-s.Ready():
		return true
	default:
		return false
	}
}

func TestAClientHearsOfWhatItAskedForOnce(t *testing.T) {
	h := NewHub(10, 10)
	tools := subscribe(t, h, ann, Filter{Tools: true, URIs: []string{"x://1", "x://2"}})
	prompts := subscribe(t, h, ann, Filter{Prompts: true})
	for range 3 {
		h.ListsChanged(Filter{Tools: true, Resources: true})
		h.ResourceUpdated("x://1")
		h.ResourceUpdated("x://3")
	}
	if !isReady(tools) || isReady(tools) || isReady(prompts) {
		t.Error("the wrong ones were woken")
	}
	if got, want := tools.Take(), (Filter{Tools: true, URIs: []string{"x://1"}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := tools.Take(); !reflect.DeepEqual(got, Filter{}) {
		t.Errorf("taken twice: %+v", got)
	}
	h.ResourceUpdated("x://2")
	if !isReady(tools) || !reflect.DeepEqual(tools.Take(), Filter{URIs: []string{"x://2"}}) {
		t.Error("a later change was lost")
	}
}

func TestSubscriptionsAreBounded(t *testing.T) {
	h := NewHub(4, 2)
	first := subscribe(t, h, ann, Filter{URIs: []string{"x://1"}})
	subscribe(t, h, ann, Filter{})
	if _, err := h.Subscribe(ann, Filter{}); !errors.Is(err, ErrTooMany) {
		t.Errorf("a third of one principal: %v", err)
	}
	first.Close()
	first.Close()
	if len(h.byURI) != 0 {
		t.Error("a closed subscription leaves its URIs behind")
	}
	for range 3 {
		subscribe(t, h, identity.AnonymousPrincipal, Filter{})
	}
	if _, err := h.Subscribe(identity.AnonymousPrincipal, Filter{}); !errors.Is(err, ErrTooMany) || h.Len() != 4 {
		t.Errorf("a fifth in all: %v, and there are %d", err, h.Len())
	}
}

func TestClosingTheHubEndsPresentAndFutureSubscriptions(t *testing.T) {
	h := NewHub(10, 10)
	present := subscribe(t, h, ann, Filter{})
	h.Close()
	h.Close()
	<-present.Done()
	<-subscribe(t, h, ann, Filter{}).Done()
	present.Close()
}
