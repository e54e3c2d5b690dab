package replica_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/countersign-mcp/countersign/services/mcpedge/replica"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEveryAddressIsFollowedForAsLongAsTheNameHasIt(t *testing.T) {
	type answer struct {
		addresses []string
		err       error
	}
	answers := make(chan answer)
	events := make(chan string, 100)
	looked := make(chan int, 100)
	name := replica.Name{
		Interval: time.Millisecond,
		Logger:   slog.New(slog.DiscardHandler),
		Lookup: func(ctx context.Context) ([]string, error) {
			select {
			case a := <-answers:
				return a.addresses, a.err
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() {
		name.Follow(ctx, func(ctx context.Context, address string) {
			events <- "+" + address
			<-ctx.Done()
			events <- "-" + address
		}, func(addresses int, _ error) { looked <- addresses })
	})
	for _, step := range []struct {
		answer answer
		events []string
		count  int
	}{
		{answer{addresses: []string{"a:1", "b:1"}}, []string{"+a:1", "+b:1"}, 2},
		{answer{addresses: []string{"b:1", "a:1"}}, nil, 2},
		{answer{err: errors.New("no such host")}, nil, 2},
		{answer{addresses: []string{"b:1", "c:1", "c:1"}}, []string{"+c:1", "-a:1"}, 2},
		{answer{addresses: nil}, []string{"-b:1", "-c:1"}, 0},
		{answer{addresses: []string{"a:1"}}, []string{"+a:1"}, 1},
	} {
		answers <- step.answer
		var got []string
		for range step.events {
			got = append(got, <-events)
		}
		slices.Sort(got)
		if count := <-looked; !slices.Equal(got, step.events) || count != step.count {
			t.Errorf("after %v: got %v and %d, want %v and %d", step.answer, got, count, step.events, step.count)
		}
	}
	cancel()
	following.Wait()
	if got := <-events; got != "-a:1" || len(events) != 0 {
		t.Errorf("at the end: %s and %d more", got, len(events))
	}
}
