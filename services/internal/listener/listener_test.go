package listener_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-mcp/countersign/services/internal/listener"
)

func parse(t *testing.T, text string) listener.Address {
	t.Helper()

	address, err := listener.Parse(text)
	if err != nil {
		t.Fatal(err)
	}

	return address
}

func TestPlaintextOnlyWhereNoOtherMachineCanListen(t *testing.T) {
	t.Parallel()

	for text, allowed := range map[string]bool{
		"127.0.0.1:9000":          true,
		"127.8.8.8:9000":          true,
		"[::1]:9000":              true,
		"[::ffff:127.0.0.1]:9000": true,
		"localhost:9000":          true,
		"unix:/run/sealer.sock":   true,
		":9000":                   false,
		"0.0.0.0:9000":            false,
		"[::]:9000":               false,
		"10.0.0.1:9000":           false,
		"sealer.internal:9000":    false,
		"localhost.example:9000":  false,
		"127.0.0.1.example:9000":  false,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()

			address := parse(t, text)

			err := listener.CheckPlaintext(address, false)
			if errors.Is(err, listener.ErrPlaintext) == allowed {
				t.Errorf("without TLS: %v", err)
			}

			if err != nil && !strings.Contains(err.Error(), text) {
				t.Errorf("the error does not name the address: %v", err)
			}

			err = listener.CheckPlaintext(address, true)
			if err != nil {
				t.Errorf("with TLS: %v", err)
			}
		})
	}
}

func TestParseRefusesWhatIsNoAddress(t *testing.T) {
	t.Parallel()

	for _, text := range []string{"", "9000", "localhost", "localhost:", "unix:", "unix:sealer.sock", "[::1:9000"} {
		_, err := listener.Parse(text)
		if err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestOpenMakesAPrivateSocketAndRemovesItAgain(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "s")

	opened, err := listener.Open(t.Context(), parse(t, "unix:"+path))
	if err != nil {
		t.Fatal(err)
	}

	information, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}

	if information.Mode().Perm() != 0o600 {
		t.Errorf("the socket has mode %v", information.Mode())
	}

	err = opened.Close()
	if err != nil {
		t.Fatal(err)
	}

	_, err = os.Stat(path)
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

func TestOpenReplacesAStaleSocketOnly(t *testing.T) {
	t.Parallel()

	directory := t.TempDir()
	live, stale, file := filepath.Join(directory, "l"), filepath.Join(directory, "s"), filepath.Join(directory, "f")

	listening, err := net.ListenUnix("unix", &net.UnixAddr{Name: live, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer listening.Close()

	crashed, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}

	crashed.SetUnlinkOnClose(false)

	err = crashed.Close()
	if err != nil {
		t.Fatal(err)
	}

	err = os.WriteFile(file, []byte("precious"), 0o600)
	if err != nil {
		t.Fatal(err)
	}

	_, err = listener.Open(t.Context(), parse(t, "unix:"+live))
	if err == nil {
		t.Error("a socket in use was taken over")
	}

	_, err = listener.Open(t.Context(), parse(t, "unix:"+file))
	if err == nil {
		t.Error("a file that is no socket was replaced")
	}

	opened, err := listener.Open(t.Context(), parse(t, "unix:"+stale))
	if err != nil {
		t.Fatalf("a stale socket was not replaced: %v", err)
	}

	err = opened.Close()
	if err != nil {
		t.Error(err)
	}
}

func TestOpenListensOnAFreePort(t *testing.T) {
	t.Parallel()

	opened, err := listener.Open(t.Context(), parse(t, "127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()

	_, err = listener.Open(t.Context(), parse(t, opened.Addr().String()))
	if err == nil {
		t.Error("a port in use was opened again")
	}
}
