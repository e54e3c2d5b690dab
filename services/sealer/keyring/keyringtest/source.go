// Package keyringtest has a source of keys and a clock for the tests of whatever
// needs a keyring.
package keyringtest

import (
	"bytes"
	"context"
	"encoding/binary"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/countersign-mcp/countersign/services/sealer/keyring"
	"github.com/countersign-mcp/countersign/services/sealer/token"
)

// Source is a source in memory that a test can change, break and hold up.
type Source struct {
	lock     sync.Mutex
	versions []keyring.Version
	failure  error
	asked    int
	hold     chan struct{}
}

// NewSource makes a source that gives the versions.
func NewSource(versions ...keyring.Version) *Source { return &Source{versions: versions} }

// Versions implements keyring.Source.
func (s *Source) Versions(ctx context.Context) ([]keyring.Version, error) {
	s.lock.Lock()
	s.asked++
	versions, failure, hold := slices.Clone(s.versions), s.failure, s.hold
	s.lock.Unlock()

	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}

	if failure != nil {
		return nil, failure
	}

	return versions, nil
}

// Set changes what the source gives, and ends its failure.
func (s *Source) Set(versions ...keyring.Version) {
	s.lock.Lock()
	defer s.lock.Unlock()

	s.versions, s.failure = versions, nil
}

// Fail makes the source fail until Set is called.
func (s *Source) Fail(failure error) {
	s.lock.Lock()
	defer s.lock.Unlock()

	s.failure = failure
}

// Hold makes the source wait, with what it has now, until the function that Hold
// returns is called.
func (s *Source) Hold() (release func()) {
	s.lock.Lock()
	defer s.lock.Unlock()

	hold := make(chan struct{})
	s.hold = hold

	return func() {
		s.lock.Lock()
		defer s.lock.Unlock()

		s.hold = nil

		close(hold)
	}
}

// Asked is how many times the source was asked.
func (s *Source) Asked() int {
	s.lock.Lock()
	defer s.lock.Unlock()

	return s.asked
}

// Clock is a clock that stands still until it is moved.
type Clock struct {
	lock sync.Mutex
	now  time.Time
}

// NewClock makes a clock that shows the time.
func NewClock(now time.Time) *Clock { return &Clock{now: now} }

// Now returns what the clock shows.
func (c *Clock) Now() time.Time {
	c.lock.Lock()
	defer c.lock.Unlock()

	return c.now
}

// Advance moves the clock.
func (c *Clock) Advance(by time.Duration) {
	c.lock.Lock()
	defer c.lock.Unlock()

	c.now = c.now.Add(by)
}

// Version makes a version whose root is the number in eight bytes, repeated.
func Version(number uint64, created time.Time) keyring.Version {
	return keyring.Version{
		Number: number, Created: created,
		Root: token.NewSecret(bytes.Repeat(binary.BigEndian.AppendUint64(nil, number), token.MinRootSize/8)),
	}
}

// New makes a keyring of the source that has asked it once.
func New(tb testing.TB, source keyring.Source, clock *Clock) *keyring.Keyring {
	tb.Helper()

	ring, err := keyring.New(source, keyring.Defaults(), clock.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		tb.Fatal(err)
	}

	err = ring.Refresh(context.WithoutCancel(tb.Context()))
	if err != nil {
		tb.Fatal(err)
	}

	return ring
}
