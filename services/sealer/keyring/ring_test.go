package keyring_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/countersign-mcp/countersign/services/sealer/keyring"
	"github.com/countersign-mcp/countersign/services/sealer/keyring/keyringtest"
	"github.com/countersign-mcp/countersign/services/sealer/token"
)

var start = time.Date(2026, time.October, 1, 0, 0, 0, 0, time.UTC)

func newRing(t *testing.T, versions ...keyring.Version) *keyring.Ring {
	t.Helper()

	ring, err := keyring.NewRing(versions, start)
	if err != nil {
		t.Fatal(err)
	}

	return ring
}

func TestAVersionGoesThroughItsStates(t *testing.T) {
	t.Parallel()

	delay := keyring.Defaults().ActivationDelay
	retired := keyringtest.Version(1, start.Add(-48*time.Hour))
	retired.Retired = true

	for name, test := range map[string]struct {
		versions []keyring.Version
		now      time.Duration
		want     string
	}{
		"the only version seals at once": {
			[]keyring.Version{keyringtest.Version(1, start)}, 0, "active",
		},
		"the only version seals at once, with a clock that is behind": {
			[]keyring.Version{keyringtest.Version(1, start)}, -time.Hour, "active",
		},
		"the next one only opens": {
			[]keyring.Version{keyringtest.Version(1, start.Add(-48*time.Hour)), keyringtest.Version(2, start)}, delay - 1, "active prepared",
		},
		"until the delay has passed": {
			[]keyring.Version{keyringtest.Version(1, start.Add(-48*time.Hour)), keyringtest.Version(2, start)}, delay, "retiring active",
		},
		"of two new ones the older was there first": {
			[]keyring.Version{keyringtest.Version(1, start.Add(-time.Minute)), keyringtest.Version(2, start)}, 0, "active prepared",
		},
		"of two made at the same time the number decides": {
			[]keyring.Version{keyringtest.Version(2, start), keyringtest.Version(1, start)}, delay, "retiring active",
		},
		"a retired one counts for nothing": {
			[]keyring.Version{retired, keyringtest.Version(2, start)}, 0, "retired active",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			ring := newRing(t, test.versions...)

			var states []string
			for _, entry := range ring.Entries() {
				states = append(states, string(ring.State(entry, start.Add(test.now), delay)))
			}

			if got := strings.Join(states, " "); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestNewRingRefusesWhatCannotBeToldApart(t *testing.T) {
	t.Parallel()

	retired := keyringtest.Version(1, start)
	retired.Retired = true
	same := keyringtest.Version(1, start)
	same.Number = 2
	short := keyring.Version{Number: 1, Created: start, Root: token.NewSecret([]byte("short-short-short"))}

	for name, versions := range map[string][]keyring.Version{
		"nothing":                  nil,
		"only a retired version":   {retired},
		"one number twice":         {keyringtest.Version(1, start), keyringtest.Version(1, start)},
		"one root twice":           {keyringtest.Version(1, start), same},
		"a number that is zero":    {keyringtest.Version(0, start)},
		"a root that is too short": {short},
	} {
		_, err := keyring.NewRing(versions, start)
		if err == nil {
			t.Errorf("%s was accepted", name)
		} else if strings.Contains(err.Error(), "short-short") {
			t.Errorf("the error holds the root: %v", err)
		}
	}
}

func TestTheFingerprintTellsRingsApart(t *testing.T) {
	t.Parallel()

	one, two := keyringtest.Version(1, start), keyringtest.Version(2, start.Add(time.Hour))
	later, retired, other := one, one, one
	later.Created = start.Add(time.Second)
	retired.Retired = true
	other.Root = keyringtest.Version(9, start).Root

	if newRing(t, one, two).Fingerprint() != newRing(t, two, one).Fingerprint() {
		t.Error("the order of the source changes the fingerprint")
	}

	seen := make(map[string]bool)
	for _, ring := range []*keyring.Ring{newRing(t, one), newRing(t, one, two), newRing(t, later, two), newRing(t, retired, two), newRing(t, other, two)} {
		if seen[ring.Fingerprint()] {
			t.Error("two rings have the same fingerprint")
		}

		seen[ring.Fingerprint()] = true
	}
}

// TestNoReadyReplicaMeetsAVersionItDoesNotKnow is the promise of the activation
// delay: whatever the times of rotations and refreshes.
func TestNoReadyReplicaMeetsAVersionItDoesNotKnow(t *testing.T) {
	t.Parallel()

	settings := keyring.Defaults()

	rapid.Check(t, func(t *rapid.T) {
		minutes := func(label string, low, high int) time.Duration {
			return time.Duration(rapid.IntRange(low, high).Draw(t, label)) * time.Minute
		}

		// The first version is old enough for every replica to know it.
		history := []keyring.Version{keyringtest.Version(1, start)}
		for number := range rapid.IntRange(0, 6).Draw(t, "rotations") {
			previous := history[len(history)-1].Created
			history = append(history, keyringtest.Version(uint64(number)+2, previous.Add(minutes("until the next rotation", 0, 200))))
		}

		now := start.Add(settings.HardAge + minutes("now", 0, 1000))
		replica := func(label string) *keyring.Ring {
			fetched := now.Add(-minutes(label, 0, int(settings.HardAge.Minutes())))

			var known []keyring.Version
			for _, version := range history {
				if !version.Created.After(fetched) {
					known = append(known, version)
				}
			}

			ring, err := keyring.NewRing(known, fetched)
			if err != nil {
				t.Fatal(err)
			}

			return ring
		}

		sealer, opener := replica("age of the sealing replica's ring"), replica("age of the opening replica's ring")
		active := sealer.Active(now, settings.ActivationDelay)

		for _, entry := range opener.Entries() {
			if entry.ID == active.ID {
				return
			}
		}

		t.Fatalf("version %d seals and is not known", active.Number)
	})
}
