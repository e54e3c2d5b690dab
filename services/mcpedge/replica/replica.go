// Package replica follows the replicas behind a name.
//
// Calls of a handler service may go to any replica, and gRPC spreads them. What a
// replica says about itself, that its catalog or a resource changed, is said by that
// replica alone, on a stream to it. So somebody has to speak with each: Follow looks
// the name up again and again, and runs a function for every address for as long as
// the name has it.
//
// The limit: a new replica is found at the next look-up, within the interval. What
// is lost when the name cannot be looked up is nothing: the addresses known before
// stay.
package replica

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Name is a name with addresses behind it.
type Name struct {
	// Lookup returns the addresses that the name has now, each as host:port.
	Lookup func(ctx context.Context) ([]string, error)
	// Interval is the time between two look-ups.
	Interval time.Duration
	// Logger logs look-ups that fail.
	Logger *slog.Logger
}

// Follow runs each for every address of the name until the name has it no more or
// ctx ends, and returns when all have returned. looked is called after every
// look-up with how many addresses there are, and the look-up's error.
func (n Name) Follow(ctx context.Context, each func(ctx context.Context, address string), looked func(addresses int, err error)) {
	running := map[string]context.CancelFunc{}
	var group sync.WaitGroup
	defer group.Wait()
	ticker := time.NewTicker(n.Interval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		addresses, err := n.Lookup(ctx)
		if err != nil && ctx.Err() == nil {
			n.Logger.WarnContext(ctx, "name not looked up; its addresses stay as they were", "error", err)
		}
		if err == nil {
			n.adopt(ctx, addresses, running, &group, each)
		}
		looked(len(running), err)
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	for _, cancel := range running {
		cancel()
	}
}

// adopt starts what is new and stops what is gone.
func (n Name) adopt(ctx context.Context, addresses []string, running map[string]context.CancelFunc, group *sync.WaitGroup, each func(context.Context, string)) {
	present := map[string]bool{}
	for _, address := range addresses {
		present[address] = true
		if running[address] != nil {
			continue
		}
		followed, cancel := context.WithCancel(ctx)
		running[address] = cancel
		group.Go(func() { each(followed, address) })
	}
	for address, cancel := range running {
		if !present[address] {
			cancel()
			delete(running, address)
		}
	}
}
