package wire

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Retry says how often to come back to a server that answers 503 with a
// Retry-After. The zero value is never.
type Retry struct {
	// Times is how often to try again.
	Times int
	// Longest is the longest wait that is worth it. A server that asks for more is
	// not waited for.
	Longest time.Duration
	// Announce is called before each wait; it may be nil.
	Announce func(wait time.Duration)
	// Sleep waits, or returns early with the context's error.
	Sleep func(ctx context.Context, wait time.Duration) error
}

// wait waits before the attempt after this one, or says why there is none.
func (r Retry) wait(ctx context.Context, attempt int, wait time.Duration) error {
	if attempt > r.Times {
		return fmt.Errorf("the server is unavailable, tried %d times", attempt)
	}
	if wait > r.Longest {
		return fmt.Errorf("the server is unavailable and asks to come back in %s, longer than %s", wait, r.Longest)
	}
	if r.Announce != nil {
		r.Announce(wait)
	}
	return r.Sleep(ctx, wait)
}

// comeBackIn is the Retry-After of a 503, in either of its two forms (RFC 9110,
// section 10.2.3), or nil.
func comeBackIn(response *http.Response) *time.Duration {
	if response.StatusCode != http.StatusServiceUnavailable {
		return nil
	}
	text := strings.TrimSpace(response.Header.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		wait := time.Duration(seconds) * time.Second
		return &wait
	}
	date, err := http.ParseTime(text)
	if err != nil {
		return nil
	}
	// A server's clock is compared with its own Date where it sent one, so that a
	// wrong clock here does not matter.
	now, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	wait := max(date.Sub(now), 0)
	return &wait
}
