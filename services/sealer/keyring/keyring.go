// Package keyring holds the versions of the root keys and decides which one seals
// and which ones open.
//
// The problem: keys rotate while requests are under way, on many replicas that do
// not talk to each other. A replica that seals with a version that another one does
// not know yet makes tokens that the other refuses. The mechanism: every version
// has a creation time that is the same for all, and only opens until it has been
// there for the activation delay; then it seals. A replica asks its source again
// and again, and one whose knowledge is older than the hard age answers that it is
// unavailable. As the delay is longer than the hard age, every replica that
// answers knows a version before any replica seals with it. What a version does is
// a pure function of the time and the ring; nothing is coordinated and nothing
// stored. The states are named prepared, active, retiring and retired.
//
// The limit: the only version there is seals at once, since there is no other; so
// does the oldest of several that are all new. Clocks must agree to within the
// difference between the delay and the hard age. A source must keep a version
// until the last token made with it has expired; whoever removes it earlier ends
// the chains of those tokens.
//
// What is lost: a replica that cannot reach its source keeps honouring a version
// that was revoked there, until the hard age. A replica past it serves nobody,
// though its keys may be good.
//
// The package knows nothing of any source: that interface is its own, and each
// kind of source lives in a folder of keysource.
package keyring

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/countersign-mcp/countersign/services/sealer/token"
)

// Source gives the versions of a root. Its errors name what failed and hold no
// key.
type Source interface {
	// Versions returns every version the source knows, in any order.
	Versions(ctx context.Context) ([]Version, error)
}

var (
	// ErrUnavailable means that there are no keys, or that they are too old to be
	// relied on. It says nothing about any token.
	ErrUnavailable = errors.New("keyring: unavailable")
	// ErrUnknownKey means that no version has the key id.
	ErrUnknownKey = errors.New("keyring: unknown key")
	// ErrRetiredKey means that the version must not open tokens any more.
	ErrRetiredKey = errors.New("keyring: retired key")
)

// Settings are the times that a Keyring goes by.
type Settings struct {
	// Refresh is how often the source is asked, give or take a tenth.
	Refresh time.Duration
	// HardAge is how old the ring may be before it is unavailable.
	HardAge time.Duration
	// ActivationDelay is how long a version only opens before it seals. It must be
	// longer than HardAge.
	ActivationDelay time.Duration
}

// Defaults are the settings for a service that was told nothing else.
func Defaults() Settings {
	return Settings{Refresh: 30 * time.Second, HardAge: 60 * time.Minute, ActivationDelay: 65 * time.Minute}
}

// Check returns an error that says which setting breaks which rule.
func (s Settings) Check() error {
	switch {
	case s.Refresh <= 0:
		return errors.New("refresh must be more than zero")
	case s.HardAge <= s.Refresh:
		return fmt.Errorf("hard age %s must be longer than refresh %s: one failure would make the sealer unavailable", s.HardAge, s.Refresh)
	case s.ActivationDelay <= s.HardAge:
		return fmt.Errorf("activation delay %s must be longer than hard age %s: a replica could meet tokens of a version that it does not know",
			s.ActivationDelay, s.HardAge)
	default:
		return nil
	}
}

const (
	// refreshTimeout bounds one question to the source.
	refreshTimeout = 10 * time.Second
	// unknownKeyPatience is how long whoever opens a token with an unknown key id
	// waits for the source: well below what callers of a sealer wait.
	unknownKeyPatience = 300 * time.Millisecond
	// firstRetry is how long after a first failure the source is asked again. The
	// wait doubles until it is that of Refresh.
	firstRetry = time.Second
	// unknownKeyInterval is how often at most an unknown key id may make the source
	// be asked, so that invented tokens do not become load on it.
	unknownKeyInterval = 10 * time.Second
)

// Keyring is the versions that a service has. It is safe for use by several
// goroutines.
type Keyring struct {
	source   Source
	settings Settings
	clock    func() time.Time
	logger   *slog.Logger

	current   atomic.Pointer[Ring]
	refreshes atomic.Uint64
	failures  atomic.Uint64
	// busy is whether the source has a question that it has not answered, be it one
	// that nobody waits for any more.
	busy atomic.Bool

	lock sync.Mutex
	// asking is closed when the question under way is answered; nil if there is
	// none.
	asking chan struct{}
	// failure is why the source could not be asked the last time; nil if it could.
	failure error
	// unknownAsked is when an unknown key id last made the source be asked.
	unknownAsked time.Time
}

// New makes a Keyring that has no keys until its first Refresh.
func New(source Source, settings Settings, clock func() time.Time, logger *slog.Logger) (*Keyring, error) {
	err := settings.Check()
	if err != nil {
		return nil, fmt.Errorf("make keyring: %w", err)
	}

	return &Keyring{source: source, settings: settings, clock: clock, logger: logger}, nil
}

// Run refreshes until the context ends. Jitter returns numbers from 0 up to 1 and
// spreads the questions of many replicas.
func (k *Keyring) Run(ctx context.Context, jitter func() float64) {
	failed := 0
	if k.Ready(k.clock()) != nil {
		failed = 1
	}

	for {
		wait := k.settings.Refresh
		if failed > 0 {
			wait = min(wait, firstRetry<<min(failed-1, 16))
		}

		// From nine to eleven tenths.
		timer := time.NewTimer(time.Duration(float64(wait) * (0.9 + 0.2*jitter())))

		select {
		case <-ctx.Done():
			timer.Stop()

			return
		case <-timer.C:
		}

		err := k.Refresh(ctx)
		if err == nil {
			failed = 0
		} else {
			failed++
		}
	}
}

// Refresh asks the source and takes what it gives. If it fails, the ring in use
// stays. Callers at the same time share one question.
func (k *Keyring) Refresh(ctx context.Context) error {
	k.lock.Lock()

	asking := k.asking
	if asking == nil {
		asking = make(chan struct{})
		k.asking = asking

		// The question is shared, so it does not end with the first who asked.
		go k.ask(context.WithoutCancel(ctx), asking)
	}

	k.lock.Unlock()

	select {
	case <-asking:
	case <-ctx.Done():
		return fmt.Errorf("refresh keys: %w", ctx.Err())
	}

	k.lock.Lock()
	defer k.lock.Unlock()

	return k.failure
}

// ask asks the source once.
func (k *Keyring) ask(ctx context.Context, asking chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()

	ring, err := k.fetch(ctx)

	k.lock.Lock()
	defer k.lock.Unlock()
	defer close(asking)

	k.asking = nil
	k.refreshes.Add(1)

	if err != nil {
		k.failures.Add(1)
		k.failure = fmt.Errorf("refresh keys: %w", err)
		k.logger.Warn("keys could not be refreshed", "consequence", k.consequence(), "error", err)

		return
	}

	k.failure = nil

	if before := k.current.Load(); before == nil || before.Fingerprint() != ring.Fingerprint() {
		k.logger.Info("keys changed", "fingerprint", ring.Fingerprint(), "versions", len(ring.entries))
	}

	k.current.Store(ring)
}

// consequence says what a failed refresh means now.
func (k *Keyring) consequence() string {
	switch ring := k.current.Load(); {
	case ring == nil:
		return "there are none"
	case ring.Age(k.clock()) > k.settings.HardAge:
		return "those there are too old to be used"
	default:
		return "those in use stay"
	}
}

// fetch makes a ring of what the source gives, and of what it gave before.
func (k *Keyring) fetch(ctx context.Context) (*Ring, error) {
	asked := k.clock()

	versions, err := k.versions(ctx)
	if err != nil {
		return nil, err
	}

	ring, err := NewRing(versions, asked)
	if err != nil {
		return nil, err
	}

	if before := k.current.Load(); before != nil {
		ring.remember(before)
	}

	return ring, nil
}

// versions asks the source and waits no longer than the context lasts: a source may
// hang in what no context ends, such as a file system that does not answer. It is
// then asked again only when it has come back, so that no calls of it pile up; what
// it says at last is dropped, for it is old.
func (k *Keyring) versions(ctx context.Context) ([]Version, error) {
	if !k.busy.CompareAndSwap(false, true) {
		return nil, errors.New("the source has not answered an earlier question")
	}

	type answer struct {
		versions []Version
		err      error
	}

	answered := make(chan answer, 1)

	go func() {
		versions, err := k.source.Versions(ctx)

		k.busy.Store(false)

		answered <- answer{versions, err}
	}()

	select {
	case given := <-answered:
		return given.versions, given.err
	case <-ctx.Done():
		return nil, fmt.Errorf("the source does not answer: %w", ctx.Err())
	}
}

// Sealing returns the key that seals now, or ErrUnavailable.
func (k *Keyring) Sealing(now time.Time) (*token.Key, error) {
	ring, err := k.usable(now)
	if err != nil {
		return nil, err
	}

	return ring.Active(now, k.settings.ActivationDelay).Key, nil
}

// Opening returns the key with the id, or ErrUnavailable, ErrUnknownKey or
// ErrRetiredKey, or the context's error. An id that is not known makes the source be
// asked once, and not again for a while.
//
// That the source cannot be reached, or takes its time, does not make an unknown id unavailable: a
// ring within its hard age knows every version that any replica seals with.
func (k *Keyring) Opening(ctx context.Context, now time.Time, id token.KeyID) (*token.Key, error) {
	ring, err := k.usable(now)
	if err != nil {
		return nil, err
	}

	entry, found := ring.find(id)
	if !found && k.mayAsk(now) {
		// If it fails, it has been logged and counted, and the ring in use stays.
		patience, cancel := context.WithTimeout(ctx, unknownKeyPatience)
		_ = k.Refresh(patience)

		cancel()

		if ctx.Err() != nil {
			return nil, fmt.Errorf("find key: %w", ctx.Err())
		}

		entry, found = k.current.Load().find(id)
	}

	switch {
	case !found:
		return nil, ErrUnknownKey
	case entry.Key == nil:
		return nil, ErrRetiredKey
	default:
		return entry.Key, nil
	}
}

// mayAsk says whether an unknown key id may make the source be asked now. While
// such a question is under way, it may: the answer is shared.
func (k *Keyring) mayAsk(now time.Time) bool {
	k.lock.Lock()
	defer k.lock.Unlock()

	if k.asking != nil {
		return true
	}

	if now.Sub(k.unknownAsked) < unknownKeyInterval {
		return false
	}

	k.unknownAsked = now

	return true
}

// Ready returns nil, or an error that wraps ErrUnavailable and why the source
// could not be asked.
func (k *Keyring) Ready(now time.Time) error {
	_, err := k.usable(now)

	return err
}

// usable returns the ring if it may be relied on.
func (k *Keyring) usable(now time.Time) (*Ring, error) {
	ring := k.current.Load()
	if ring != nil && ring.Age(now) <= k.settings.HardAge {
		return ring, nil
	}

	k.lock.Lock()
	cause := k.failure
	k.lock.Unlock()

	problem := "no keys yet"
	if ring != nil {
		problem = "the keys are older than " + k.settings.HardAge.String()
	}

	if cause == nil {
		return nil, fmt.Errorf("%w: %s", ErrUnavailable, problem)
	}

	return nil, fmt.Errorf("%w: %s: %w", ErrUnavailable, problem, cause)
}

// Status is what an operator wants to know of a Keyring.
type Status struct {
	// Fingerprint is that of the ring; empty if there are no keys yet.
	Fingerprint string
	// Age is how long ago the source was asked with success; 0 if never.
	Age time.Duration
	// Versions are the versions from the oldest to the newest.
	Versions []VersionStatus
	// Refreshes is how many times the source was asked, and Failures how many of
	// these failed.
	Refreshes, Failures uint64
}

// VersionStatus is what an operator wants to know of one version.
type VersionStatus struct {
	Number uint64
	ID     token.KeyID
	State  State
	Age    time.Duration
}

// Status returns the state of the Keyring at a time.
func (k *Keyring) Status(now time.Time) Status {
	status := Status{Refreshes: k.refreshes.Load(), Failures: k.failures.Load()}

	ring := k.current.Load()
	if ring == nil {
		return status
	}

	status.Fingerprint, status.Age = ring.Fingerprint(), ring.Age(now)

	for _, entry := range ring.entries {
		status.Versions = append(status.Versions, VersionStatus{
			Number: entry.Number, ID: entry.ID,
			State: ring.State(entry, now, k.settings.ActivationDelay), Age: now.Sub(entry.Created),
		})
	}

	return status
}
