// Package sourcetest is what every source of keys must do, as one suite of tests.
package sourcetest

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-mcp/countersign/services/sealer/keyring"
	"github.com/countersign-mcp/countersign/services/sealer/token"
)

// Backend is a source under test and what can be done to what is behind it. A
// function is nil where a kind of source has no such thing.
type Backend struct {
	// Source is the source. It has at least one version.
	Source keyring.Source
	// Rotate adds a version.
	Rotate func(t *testing.T)
	// RetireOldest makes the oldest version open no tokens any more.
	RetireOldest func(t *testing.T)
	// Break makes the source fail until Mend is called.
	Break, Mend func(t *testing.T)
}

// Run runs the suite, with a new backend for each test.
func Run(t *testing.T, newBackend func(t *testing.T) Backend) {
	t.Helper()

	t.Run("gives versions that make a ring", func(t *testing.T) {
		t.Parallel()
		backend := newBackend(t)
		_, err := keyring.NewRing(versions(t, backend), time.Now())
		if err != nil {
			t.Error(err)
		}
	})
	t.Run("gives the same when asked again", func(t *testing.T) {
		t.Parallel()
		backend := newBackend(t)
		same(t, versions(t, backend), versions(t, backend))
	})
	t.Run("gives the same to several at a time", func(t *testing.T) {
		t.Parallel()
		backend := newBackend(t)
		want := versions(t, backend)

		var asking sync.WaitGroup
		for range 8 {
			asking.Go(func() { same(t, want, versions(t, backend)) })
		}
		asking.Wait()
	})
	t.Run("stops when its caller does", func(t *testing.T) {
		t.Parallel()
		backend := newBackend(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()

		_, err := backend.Source.Versions(ctx)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("keeps what it has when it rotates", func(t *testing.T) {
		t.Parallel()
		rotates(t, newBackend(t))
	})
	t.Run("says which versions are retired", func(t *testing.T) {
		t.Parallel()
		retires(t, newBackend(t))
	})
	t.Run("fails without naming a key and comes back", func(t *testing.T) {
		t.Parallel()
		fails(t, newBackend(t))
	})
}

func rotates(t *testing.T, backend Backend) {
	t.Helper()

	if backend.Rotate == nil {
		t.Skip("this kind of source does not rotate")
	}

	before := versions(t, backend)
	backend.Rotate(t)
	after := versions(t, backend)

	if len(after) != len(before)+1 {
		t.Fatalf("there were %d versions and are %d", len(before), len(after))
	}

	same(t, before, after[:len(before)])

	if newest, previous := after[len(after)-1], after[len(after)-2]; newest.Number <= previous.Number || newest.Created.Before(previous.Created) {
		t.Errorf("the new version is not the newest: %d after %d", newest.Number, previous.Number)
	}
}

func retires(t *testing.T, backend Backend) {
	t.Helper()

	if backend.RetireOldest == nil {
		t.Skip("this kind of source retires nothing")
	}

	backend.Rotate(t)
	oldest := versions(t, backend)[0]
	backend.RetireOldest(t)

	for _, version := range versions(t, backend) {
		if version.Number == oldest.Number && !version.Retired {
			t.Errorf("version %d is not retired", version.Number)
		}

		if version.Number != oldest.Number && version.Retired {
			t.Errorf("version %d is retired", version.Number)
		}
	}
}

func fails(t *testing.T, backend Backend) {
	t.Helper()

	if backend.Break == nil {
		t.Skip("this kind of source does not fail")
	}

	before := versions(t, backend)
	backend.Break(t)

	_, err := backend.Source.Versions(t.Context())
	if err == nil {
		t.Fatal("a broken source gave versions")
	}

	for _, version := range before {
		NoKeyIn(t, err.Error(), version.Root)
	}

	backend.Mend(t)
	same(t, before, versions(t, backend))
}

// NoKeyIn fails the test if a text holds a secret, as it is, in hexadecimal or in
// base64.
func NoKeyIn(tb testing.TB, text string, secret token.Secret) {
	tb.Helper()

	content := secret.Reveal()
	for _, form := range []string{
		string(content), hex.EncodeToString(content), strings.ToUpper(hex.EncodeToString(content)),
		// The last group depends on what follows.
		base64.StdEncoding.EncodeToString(content)[:len(content)], base64.URLEncoding.EncodeToString(content)[:len(content)],
	} {
		if strings.Contains(text, form) {
			tb.Error("a key shows")
		}
	}
}

func versions(t *testing.T, backend Backend) []keyring.Version {
	t.Helper()

	given, err := backend.Source.Versions(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	if len(given) == 0 {
		t.Fatal("the source gave no versions")
	}

	return given
}

func same(t *testing.T, want, got []keyring.Version) {
	t.Helper()

	if len(want) != len(got) {
		t.Errorf("got %d versions, want %d", len(got), len(want))

		return
	}

	for position := range want {
		if want[position].Number != got[position].Number || !want[position].Created.Equal(got[position].Created) ||
			want[position].Retired != got[position].Retired || !want[position].Root.Equal(got[position].Root) {
			t.Errorf("version %d is not what it was", want[position].Number)
		}
	}
}
