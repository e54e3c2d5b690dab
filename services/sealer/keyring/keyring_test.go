package keyring_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/countersign-mcp/countersign/services/sealer/keyring"
	"github.com/countersign-mcp/countersign/services/sealer/keyring/keyringtest"
	"github.com/countersign-mcp/countersign/services/sealer/token"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func id(t *testing.T, version keyring.Version) token.KeyID {
	t.Helper()

	key, err := token.NewKey(version.Root)
	if err != nil {
		t.Fatal(err)
	}

	return key.ID()
}

func TestARotationIsPreparedThenSealsThenRetires(t *testing.T) {
	t.Parallel()

	clock := keyringtest.NewClock(start)
	first, second := keyringtest.Version(1, start), keyringtest.Version(2, start.Add(24*time.Hour))
	source := keyringtest.NewSource(first)
	keys := keyringtest.New(t, source, clock)

	seals := func(want keyring.Version) {
		t.Helper()

		key, err := keys.Sealing(clock.Now())
		if err != nil {
			t.Fatal(err)
		}

		if key.ID() != id(t, want) {
			t.Errorf("another version than %d seals", want.Number)
		}
	}
	refresh := func() {
		t.Helper()

		err := keys.Refresh(t.Context())
		if err != nil {
			t.Fatal(err)
		}
	}

	seals(first)

	clock.Advance(24 * time.Hour)
	source.Set(first, second)
	refresh()
	seals(first)

	key, err := keys.Opening(t.Context(), clock.Now(), id(t, second))
	if err != nil || key.ID() != id(t, second) {
		t.Errorf("a prepared version does not open: %v", err)
	}

	clock.Advance(keyring.Defaults().ActivationDelay)
	refresh()
	seals(second)

	_, err = keys.Opening(t.Context(), clock.Now(), id(t, first))
	if err != nil {
		t.Errorf("a retiring version does not open: %v", err)
	}

	source.Set(second)
	refresh()

	_, err = keys.Opening(t.Context(), clock.Now(), id(t, first))
	if !errors.Is(err, keyring.ErrRetiredKey) {
		t.Errorf("a version that the source gives no longer: got %v", err)
	}

	status := keys.Status(clock.Now())
	if len(status.Versions) != 2 || status.Versions[0].State != keyring.Retired || status.Versions[1].State != keyring.Active {
		t.Errorf("got %+v", status)
	}

	later := keyringtest.New(t, source, clock)
	if later.Status(clock.Now()).Fingerprint != status.Fingerprint {
		t.Error("a replica that started later has another fingerprint")
	}

	source.Set(first, second)
	refresh()

	_, err = keys.Opening(t.Context(), clock.Now(), id(t, first))
	if err != nil {
		t.Errorf("a version that came back does not open: %v", err)
	}
}

func TestAFailingSourceIsUnavailableOnlyAfterTheHardAge(t *testing.T) {
	t.Parallel()

	clock := keyringtest.NewClock(start)
	version := keyringtest.Version(1, start)
	source := keyringtest.NewSource(version)
	keys := keyringtest.New(t, source, clock)
	cause := errors.New("the vault is sealed")

	source.Fail(cause)

	err := keys.Refresh(t.Context())
	if !errors.Is(err, cause) {
		t.Fatalf("got %v", err)
	}

	clock.Advance(keyring.Defaults().HardAge)

	err = keys.Ready(clock.Now())
	if err != nil {
		t.Errorf("at the hard age: %v", err)
	}

	clock.Advance(1)

	_, sealErr := keys.Sealing(clock.Now())
	_, openErr := keys.Opening(t.Context(), clock.Now(), id(t, version))
	// Not even an unknown key is called unknown.
	_, unknownErr := keys.Opening(t.Context(), clock.Now(), token.KeyID{})

	for _, err := range []error{sealErr, openErr, unknownErr, keys.Ready(clock.Now())} {
		if !errors.Is(err, keyring.ErrUnavailable) || !errors.Is(err, cause) {
			t.Errorf("got %v", err)
		}
	}

	if status := keys.Status(clock.Now()); status.Refreshes != 2 || status.Failures != 1 {
		t.Errorf("counted %+v", status)
	}

	source.Set(version)

	err = keys.Refresh(t.Context())
	if err != nil || keys.Ready(clock.Now()) != nil {
		t.Errorf("the source came back: %v, %v", err, keys.Ready(clock.Now()))
	}
}

func TestThereAreNoKeysBeforeTheFirstRefresh(t *testing.T) {
	t.Parallel()

	keys, err := keyring.New(keyringtest.NewSource(), keyring.Defaults(), time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	err = keys.Ready(start)
	if !errors.Is(err, keyring.ErrUnavailable) {
		t.Errorf("got %v", err)
	}

	if status := keys.Status(start); status.Fingerprint != "" || len(status.Versions) != 0 {
		t.Errorf("got %+v", status)
	}

	err = keys.Refresh(t.Context())
	if err == nil {
		t.Error("a source with no versions was accepted")
	}
}

func TestAnUnknownKeyAsksTheSourceOnceForAWhile(t *testing.T) {
	t.Parallel()

	clock := keyringtest.NewClock(start)
	first, second, third := keyringtest.Version(1, start), keyringtest.Version(2, start), keyringtest.Version(3, start)
	source := keyringtest.NewSource(first)
	keys := keyringtest.New(t, source, clock)

	source.Set(first, second)

	_, err := keys.Opening(t.Context(), clock.Now(), id(t, second))
	if err != nil {
		t.Errorf("the source was not asked: %v", err)
	}

	source.Set(first, second, third)

	for range 3 {
		_, err = keys.Opening(t.Context(), clock.Now(), id(t, third))
		if !errors.Is(err, keyring.ErrUnknownKey) {
			t.Errorf("got %v", err)
		}
	}

	if source.Asked() != 2 {
		t.Errorf("the source was asked %d times", source.Asked())
	}

	clock.Advance(time.Minute)

	_, err = keys.Opening(t.Context(), clock.Now(), id(t, third))
	if err != nil {
		t.Errorf("the source was not asked again: %v", err)
	}

	// A source that fails leaves the answer as it is.
	clock.Advance(time.Minute)
	source.Fail(errors.New("away"))

	_, err = keys.Opening(t.Context(), clock.Now(), token.KeyID{})
	if !errors.Is(err, keyring.ErrUnknownKey) {
		t.Errorf("got %v", err)
	}
}

func TestCallersAtTheSameTimeShareOneQuestion(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		clock := keyringtest.NewClock(start)
		first, second := keyringtest.Version(1, start), keyringtest.Version(2, start)
		source := keyringtest.NewSource(first)
		keys := keyringtest.New(t, source, clock)

		source.Set(first, second)
		release := source.Hold()

		var callers sync.WaitGroup
		for range 10 {
			callers.Go(func() {
				_, err := keys.Opening(t.Context(), clock.Now(), id(t, second))
				if err != nil {
					t.Error(err)
				}
			})
		}

		impatient, cancel := context.WithCancel(t.Context())
		callers.Go(func() {
			_, err := keys.Opening(impatient, clock.Now(), id(t, second))
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the caller who left got %v", err)
			}
		})

		synctest.Wait()
		cancel()
		synctest.Wait()
		release()
		callers.Wait()

		if source.Asked() != 2 {
			t.Errorf("the source was asked %d times", source.Asked())
		}
	})
}

// stuck is a source that hangs, whatever its context says, while it is held.
type stuck struct {
	*keyringtest.Source

	hold    atomic.Pointer[chan struct{}]
	running atomic.Int32
}

// Versions implements keyring.Source.
func (s *stuck) Versions(ctx context.Context) ([]keyring.Version, error) {
	s.running.Add(1)
	defer s.running.Add(-1)

	if hold := s.hold.Load(); hold != nil {
		<-*hold
	}

	return s.Source.Versions(context.WithoutCancel(ctx))
}

func TestASourceThatHangsIsGivenUpAndTakenBack(t *testing.T) {
	t.Parallel()

	// The bubble's clock moves when everything waits.
	synctest.Test(t, func(t *testing.T) {
		first, second := keyringtest.Version(1, start), keyringtest.Version(2, start)
		source := &stuck{Source: keyringtest.NewSource(first)}
		clock := keyringtest.NewClock(start)
		keys := keyringtest.New(t, source, clock)

		hold := make(chan struct{})
		source.hold.Store(&hold)
		source.Set(first, second)

		for range 3 {
			err := keys.Refresh(t.Context())
			if err == nil || !strings.Contains(err.Error(), "answer") {
				t.Errorf("got %v", err)
			}

			if source.running.Load() != 1 {
				t.Errorf("%d calls of the source run", source.running.Load())
			}
		}

		if status := keys.Status(clock.Now()); status.Refreshes != 4 || status.Failures != 3 {
			t.Errorf("counted %+v", status)
		}

		_, err := keys.Opening(t.Context(), clock.Now(), id(t, second))
		if !errors.Is(err, keyring.ErrUnknownKey) {
			t.Errorf("while the source hangs: got %v", err)
		}

		source.hold.Store(nil)
		close(hold)
		synctest.Wait()

		err = keys.Refresh(t.Context())
		if err != nil {
			t.Errorf("the source came back: %v", err)
		}

		_, err = keys.Opening(t.Context(), clock.Now(), id(t, second))
		if err != nil {
			t.Errorf("the source came back: %v", err)
		}
	})
}

func TestAnUnknownKeyDoesNotWaitLongForTheSource(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		clock := keyringtest.NewClock(start)
		source := keyringtest.NewSource(keyringtest.Version(1, start))
		keys := keyringtest.New(t, source, clock)
		release := source.Hold()

		// As long as an edge waits for its sealer, by the bubble's clock.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()

		for range 2 {
			_, err := keys.Opening(ctx, clock.Now(), token.KeyID{})
			if !errors.Is(err, keyring.ErrUnknownKey) {
				t.Errorf("got %v", err)
			}
		}

		release()
		synctest.Wait()
	})
}

func TestRunAsksAgainAndAgainAndSoonerAfterAFailure(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		source := keyringtest.NewSource(keyringtest.Version(1, start))

		keys, err := keyring.New(source, keyring.Defaults(), time.Now, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}

		err = keys.Refresh(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		ctx, stop := context.WithCancel(t.Context())

		var running sync.WaitGroup
		running.Go(func() { keys.Run(ctx, func() float64 { return 0.5 }) })

		asked := func(after time.Duration, want int) {
			t.Helper()
			<-time.After(after) // The bubble's clock: it moves when everything waits.
			synctest.Wait()

			if source.Asked() != want {
				t.Errorf("asked %d times, want %d", source.Asked(), want)
			}
		}

		asked(29*time.Second, 1)
		asked(2*time.Second, 2)
		source.Fail(errors.New("away"))
		asked(29500*time.Millisecond, 3)
		asked(1*time.Second, 4)
		asked(2*time.Second, 5)
		asked(4*time.Second, 6)
		source.Set(keyringtest.Version(1, start))
		asked(8*time.Second, 7)
		asked(29*time.Second, 7)
		asked(2*time.Second, 8)
		stop()
		running.Wait()
	})
}

func TestSettingsThatBreakTheProtocolAreRefused(t *testing.T) {
	t.Parallel()

	for name, spoil := range map[string]func(*keyring.Settings){
		"refresh":          func(s *keyring.Settings) { s.Refresh = 0 },
		"hard age":         func(s *keyring.Settings) { s.HardAge = s.Refresh },
		"activation delay": func(s *keyring.Settings) { s.ActivationDelay = s.HardAge },
	} {
		settings := keyring.Defaults()
		spoil(&settings)

		_, err := keyring.New(keyringtest.NewSource(), settings, time.Now, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestTheLogSaysWhatAFailedRefreshMeans(t *testing.T) {
	t.Parallel()

	var logged bytes.Buffer

	clock := keyringtest.NewClock(start)
	source := keyringtest.NewSource(keyringtest.Version(1, start))
	cause := errors.New("the file is gone")

	keys, err := keyring.New(source, keyring.Defaults(), clock.Now, slog.New(slog.NewTextHandler(&logged, nil)))
	if err != nil {
		t.Fatal(err)
	}

	failing := func(want string) {
		t.Helper()
		source.Fail(cause)
		logged.Reset()

		err := keys.Refresh(t.Context())
		if !errors.Is(err, cause) || !strings.Contains(logged.String(), want) {
			t.Errorf("got %v and logged %q, want %q", err, logged.String(), want)
		}
	}

	failing("there are none")
	source.Set(keyringtest.Version(1, start))

	err = keys.Refresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	failing("those in use stay")
	clock.Advance(keyring.Defaults().HardAge + 1)
	failing("too old to be used")
}

func TestLogsNameNoKey(t *testing.T) {
	t.Parallel()

	var logged bytes.Buffer

	version := keyringtest.Version(0x4b4b4b4b4b4b4b4b, start)

	keys, err := keyring.New(keyringtest.NewSource(version), keyring.Defaults(), time.Now,
		slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err != nil {
		t.Fatal(err)
	}

	err = keys.Refresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	if !strings.Contains(logged.String(), "keys changed") || strings.Contains(logged.String(), "KKKK") {
		t.Errorf("got %s", logged.String())
	}
}
