package keyring

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/countersign-mcp/countersign/services/sealer/token"
)

// Version is one version of a root, as a Source gives it.
type Version struct {
	// Number tells versions apart and is how an operator speaks of them. It is at
	// least 1.
	Number uint64
	// Created is when the version was made, by the source's own record: every
	// replica must be given the same time.
	Created time.Time
	// Root is the root.
	Root token.Secret
	// Retired says that the source knows the version and that it must not open
	// tokens any more.
	Retired bool
}

// State is what a version does at a given time.
type State string

const (
	// Prepared versions open tokens and seal none yet.
	Prepared State = "prepared"
	// Active is the version that seals. There is exactly one.
	Active State = "active"
	// Retiring versions open tokens and seal none any more.
	Retiring State = "retiring"
	// Retired versions neither seal nor open.
	Retired State = "retired"
)

// States are all states in the order a version goes through them.
func States() []State { return []State{Prepared, Active, Retiring, Retired} }

// Entry is a version in a ring. Key is nil if the version is retired.
type Entry struct {
	Number  uint64
	Created time.Time
	ID      token.KeyID
	Key     *token.Key
}

// Ring is what a source gave at one time. It never changes.
type Ring struct {
	// entries are ordered from the oldest to the newest.
	entries     []Entry
	fetched     time.Time
	fingerprint string
}

// NewRing makes a ring of the versions that a source gave. Fetched is when the
// source was asked, not when it answered.
func NewRing(versions []Version, fetched time.Time) (*Ring, error) {
	ring := &Ring{fetched: fetched}
	opens := false

	for _, version := range versions {
		key, err := token.NewKey(version.Root)
		if err != nil {
			return nil, fmt.Errorf("version %d: %w", version.Number, err)
		}

		entry := Entry{Number: version.Number, Created: version.Created, ID: key.ID(), Key: key}
		if version.Retired {
			entry.Key = nil
		}

		opens = opens || !version.Retired
		ring.entries = append(ring.entries, entry)
	}

	if !opens {
		return nil, errors.New("the source gave no version that may open tokens")
	}

	ring.order()

	err := ring.check()
	if err != nil {
		return nil, err
	}

	ring.fingerprint = fingerprint(ring.entries)

	return ring, nil
}

func (r *Ring) order() {
	slices.SortFunc(r.entries, func(a, b Entry) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Number, b.Number))
	})
}

// check refuses versions that cannot be told apart.
func (r *Ring) check() error {
	numbers, ids := make(map[uint64]bool), make(map[token.KeyID]uint64)

	for _, entry := range r.entries {
		if entry.Number == 0 {
			return errors.New("a version has the number 0")
		}

		if numbers[entry.Number] {
			return fmt.Errorf("version %d is there twice", entry.Number)
		}

		if other, found := ids[entry.ID]; found {
			return fmt.Errorf("versions %d and %d have the same root", other, entry.Number)
		}

		numbers[entry.Number], ids[entry.ID] = true, entry.Number
	}

	return nil
}

func fingerprint(entries []Entry) string {
	digest := sha256.New()

	for _, entry := range entries {
		described := binary.BigEndian.AppendUint64(nil, entry.Number)
		described = binary.BigEndian.AppendUint64(described, uint64(entry.Created.UnixMilli()))
		described = append(described, entry.ID[:]...)
		described = strconv.AppendBool(described, entry.Key == nil)
		digest.Write(described)
	}

	return hex.EncodeToString(digest.Sum(nil)[:8])
}

// remember adds the entries of an earlier ring that this one lacks, as retired, so
// that a token made with one is not taken for a foreign one. They do not count for
// the fingerprint: a replica that started later has never seen them.
func (r *Ring) remember(before *Ring) {
	numbers := make(map[uint64]bool)
	for _, entry := range r.entries {
		numbers[entry.Number] = true
	}

	for _, entry := range before.entries {
		_, known := r.find(entry.ID)
		// Another root under the same number means that the source was replaced.
		if known || numbers[entry.Number] {
			continue
		}

		entry.Key = nil
		r.entries = append(r.entries, entry)
	}

	r.order()
}

// Fingerprint is equal for two replicas that hold the same versions. It says
// nothing about the roots.
func (r *Ring) Fingerprint() string { return r.fingerprint }

// Age is how long ago the source was asked.
func (r *Ring) Age(now time.Time) time.Duration { return now.Sub(r.fetched) }

// Active returns the version that seals: the newest that has been known for the
// activation delay. If none has, it is the oldest, because that one was the only
// version when it came, and has been sealing since.
func (r *Ring) Active(now time.Time, activationDelay time.Duration) Entry {
	var active Entry

	for _, entry := range r.entries {
		if entry.Key == nil {
			continue
		}

		if active.Key == nil || now.Sub(entry.Created) >= activationDelay {
			active = entry
		}
	}

	return active
}

// State returns what an entry of this ring does.
func (r *Ring) State(entry Entry, now time.Time, activationDelay time.Duration) State {
	if entry.Key == nil {
		return Retired
	}

	active := r.Active(now, activationDelay)

	switch before := cmp.Or(entry.Created.Compare(active.Created), cmp.Compare(entry.Number, active.Number)); {
	case before < 0:
		return Retiring
	case before > 0:
		return Prepared
	default:
		return Active
	}
}

// Entries returns the versions from the oldest to the newest.
func (r *Ring) Entries() []Entry { return slices.Clone(r.entries) }

// find returns the entry with the key id.
func (r *Ring) find(id token.KeyID) (Entry, bool) {
	// Key ids are public, and a ring holds a handful.
	for _, entry := range r.entries {
		if entry.ID == id {
			return entry, true
		}
	}

	return Entry{}, false
}
