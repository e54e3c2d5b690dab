package main

import (
	"crypto/rand"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/countersign-mcp/countersign/services/internal/certificates"
	"github.com/countersign-mcp/countersign/services/internal/certificates/certificatestest"
)

func TestMutualTLSLetsInKnownEdgesAlone(t *testing.T) {
	t.Parallel()

	authority := certificatestest.NewAuthority(t)
	configuration := configure(t)
	configuration.TLS = authority.Write(t, t.TempDir(), "sealer")
	running := start(t, configuration)

	check(t, roundTrip(t, running.dial(t, clientCredentials(t, authority))))

	for name, transport := range map[string]credentials.TransportCredentials{
		"plaintext":         insecure.NewCredentials(),
		"another authority": clientCredentials(t, certificatestest.NewAuthority(t)),
	} {
		err := roundTrip(t, running.dial(t, transport))
		if status.Code(err) != codes.Unavailable {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func clientCredentials(t *testing.T, authority *certificatestest.Authority) credentials.TransportCredentials {
	t.Helper()

	source, err := certificates.Open(authority.Write(t, t.TempDir(), "edge"), slog.New(slog.DiscardHandler))
	check(t, err)

	t.Cleanup(func() { check(t, source.Close()) })

	return source.ClientCredentials("localhost")
}

func TestCertificatesAreReloadedWhenASecretIsSwapped(t *testing.T) {
	t.Parallel()

	former, next := certificatestest.NewAuthority(t), certificatestest.NewAuthority(t)
	mounted := t.TempDir()
	project := func(version string, authority *certificatestest.Authority) {
		directory := filepath.Join(mounted, version)
		check(t, os.Mkdir(directory, 0o700))
		authority.Write(t, directory, "sealer")
		check(t, os.Symlink(version, filepath.Join(mounted, "..data_tmp")))
		check(t, os.Rename(filepath.Join(mounted, "..data_tmp"), filepath.Join(mounted, "..data")))
	}

	project("..1", former)

	configuration := configure(t)
	configuration.TLS = certificates.Files{
		Certificate: filepath.Join(mounted, "tls.crt"), Key: filepath.Join(mounted, "tls.key"), Authorities: filepath.Join(mounted, "ca.crt"),
	}

	for _, name := range []string{"tls.crt", "tls.key", "ca.crt"} {
		check(t, os.Symlink(filepath.Join("..data", name), filepath.Join(mounted, name)))
	}

	running := start(t, configuration)
	standing := running.dial(t, clientCredentials(t, former))
	check(t, roundTrip(t, standing))

	project("..2", next)

	// The service has no event for this; its metric is what an operator sees.
	for {
		_, metrics := running.get(t, "/metrics")
		if strings.Contains(metrics, `countersign_certificate_reloads_total{use="listener"} 1`) {
			break
		}
	}

	check(t, roundTrip(t, running.dial(t, clientCredentials(t, next))))
	check(t, roundTrip(t, standing))

	err := roundTrip(t, running.dial(t, clientCredentials(t, former)))
	if status.Code(err) != codes.Unavailable {
		t.Errorf("the former authority still lets in: %v", err)
	}
}

func TestPlaintextWhereOthersCanListenIsRefused(t *testing.T) {
	t.Parallel()

	configuration := configure(t)
	configuration.Listen = "0.0.0.0:0"

	_, err := newService(t.Context(), configuration, time.Now, rand.Reader, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "plaintext is allowed only on a loopback address") {
		t.Fatalf("got %v", err)
	}

	configuration.TLS = certificatestest.NewAuthority(t).Write(t, t.TempDir(), "sealer")
	start(t, configuration)
}
