package certificates_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc/credentials"

	"github.com/countersign-mcp/countersign/services/internal/certificates"
	"github.com/countersign-mcp/countersign/services/internal/certificates/certificatestest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, files certificates.Files) *certificates.Source {
	t.Helper()

	source, err := certificates.Open(files, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		err := source.Close()
		if err != nil {
			t.Error(err)
		}
	})

	return source
}

// handshake connects a client to a server and returns the common name of the
// certificate each side saw.
func handshake(t *testing.T, server, client credentials.TransportCredentials, authority string) (seenByClient, seenByServer string, _ error) {
	t.Helper()

	listening, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listening.Close()

	type result struct {
		name string
		err  error
	}

	served := make(chan result, 1)

	go func() {
		accepted, err := listening.Accept()
		if err != nil {
			served <- result{err: err}

			return
		}
		defer accepted.Close()

		secured, information, err := server.ServerHandshake(accepted)
		if err != nil {
			served <- result{err: err}

			return
		}

		_, err = secured.Write([]byte{1})
		served <- result{name: peer(information), err: err}
	}()

	dialled, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listening.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer dialled.Close()

	secured, information, clientErr := client.ClientHandshake(context.WithoutCancel(t.Context()), authority, dialled)
	if clientErr == nil {
		// In TLS 1.3 the client learns only on its first read that it was refused.
		_, clientErr = secured.Read(make([]byte, 1))
	} else {
		dialled.Close()
	}

	outcome := <-served
	if clientErr != nil {
		return "", outcome.name, clientErr
	}

	return peer(information), outcome.name, outcome.err
}

func peer(information credentials.AuthInfo) string {
	secured, ok := information.(credentials.TLSInfo)
	if !ok || secured.State.Version != tls.VersionTLS13 || len(secured.State.PeerCertificates) == 0 {
		return ""
	}

	return secured.State.PeerCertificates[0].Subject.CommonName
}

func TestBothSidesKnowEachOther(t *testing.T) {
	t.Parallel()

	authority := certificatestest.NewAuthority(t)
	server := open(t, authority.Write(t, t.TempDir(), "sealer"))
	client := open(t, authority.Write(t, t.TempDir(), "edge"))

	for _, dialled := range []string{"localhost:443", "127.0.0.1:443"} {
		seenByClient, seenByServer, err := handshake(t, server.ServerCredentials(), client.ClientCredentials(""), dialled)
		if err != nil || seenByClient != "sealer" || seenByServer != "edge" {
			t.Errorf("dialling %s: client saw %q, server saw %q: %v", dialled, seenByClient, seenByServer, err)
		}
	}
}

func TestStrangersAreRefused(t *testing.T) {
	t.Parallel()

	authority, foreign := certificatestest.NewAuthority(t), certificatestest.NewAuthority(t)
	server := open(t, authority.Write(t, t.TempDir(), "sealer"))
	client := open(t, authority.Write(t, t.TempDir(), "edge"))
	stranger := open(t, foreign.Write(t, t.TempDir(), "stranger"))

	// The stranger trusts the server, so that only the server can refuse.
	trusting := authority.Write(t, t.TempDir(), "unused")
	mixed := foreign.Write(t, t.TempDir(), "stranger")
	mixed.Authorities = trusting.Authorities
	intruder := open(t, mixed)

	for name, test := range map[string]struct {
		server, client credentials.TransportCredentials
		authority      string
	}{
		"a foreign client":         {server.ServerCredentials(), intruder.ClientCredentials(""), "localhost"},
		"a foreign server":         {stranger.ServerCredentials(), client.ClientCredentials(""), "localhost"},
		"another name":             {server.ServerCredentials(), client.ClientCredentials("other.internal"), "localhost"},
		"a client with no name":    {server.ServerCredentials(), credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}), "localhost"},
		"a client that is too old": {server.ServerCredentials(), credentials.NewTLS(&tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}), "localhost"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, _, err := handshake(t, test.server, test.client, test.authority)
			if err == nil {
				t.Error("the handshake succeeded")
			}
		})
	}
}

func TestRefusedPeersAreCountedAndLoggedOnceInAWhile(t *testing.T) {
	t.Parallel()

	var logged bytes.Buffer

	server, err := certificates.Open(certificatestest.NewAuthority(t).Write(t, t.TempDir(), "sealer"), slog.New(slog.NewTextHandler(&logged, nil)))
	if err != nil {
		t.Fatal(err)
	}

	defer func() { check(t, server.Close()) }()

	stranger := open(t, certificatestest.NewAuthority(t).Write(t, t.TempDir(), "stranger"))
	nameless := credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})

	for range 3 {
		for _, client := range []credentials.TransportCredentials{stranger.ClientCredentials(""), nameless} {
			_, _, err := handshake(t, server.ServerCredentials().Clone(), client, "localhost")
			if err == nil {
				t.Error("the handshake succeeded")
			}
		}
	}

	if server.RefusedPeers() != 6 || strings.Count(logged.String(), "peer refused in the TLS handshake") != 1 {
		t.Errorf("counted %d, logged %q", server.RefusedPeers(), logged.String())
	}
}

func TestReloadWhenKubernetesSwapsTheSecret(t *testing.T) {
	t.Parallel()

	authority := certificatestest.NewAuthority(t)
	mounted := t.TempDir()

	// A mounted secret: the files are links into `..data`, itself a link to a
	// directory with the time in its name.
	project := func(version, commonName string) {
		directory := filepath.Join(mounted, version)
		check(t, os.Mkdir(directory, 0o700))
		authority.Write(t, directory, commonName)
		check(t, os.Symlink(version, filepath.Join(mounted, "..data_tmp")))
		check(t, os.Rename(filepath.Join(mounted, "..data_tmp"), filepath.Join(mounted, "..data")))
	}

	project("..2026_01", "first")

	for _, name := range []string{"tls.crt", "tls.key", "ca.crt"} {
		check(t, os.Symlink(filepath.Join("..data", name), filepath.Join(mounted, name)))
	}

	server := open(t, certificates.Files{
		Certificate: filepath.Join(mounted, "tls.crt"),
		Key:         filepath.Join(mounted, "tls.key"),
		Authorities: filepath.Join(mounted, "ca.crt"),
	})
	client := open(t, authority.Write(t, t.TempDir(), "edge"))
	serverCredentials := server.ServerCredentials()

	project("..2026_02", "second")
	<-server.Changed()

	seen, _, err := handshake(t, serverCredentials, client.ClientCredentials(""), "localhost")
	if err != nil || seen != "second" {
		t.Errorf("the client saw %q: %v", seen, err)
	}

	if server.Reloads() != 1 || server.Refused() != 0 {
		t.Errorf("counted %d reloads, %d refused", server.Reloads(), server.Refused())
	}
}

func TestBadFilesKeepTheCertificateInUse(t *testing.T) {
	t.Parallel()

	authority := certificatestest.NewAuthority(t)
	directory := t.TempDir()
	files := authority.Write(t, directory, "first")
	server := open(t, files)
	client := open(t, authority.Write(t, t.TempDir(), "edge"))

	check(t, os.WriteFile(files.Key, []byte("not a key"), 0o600))
	<-server.Changed()

	seen, _, err := handshake(t, server.ServerCredentials(), client.ClientCredentials(""), "localhost")
	if err != nil || seen != "first" {
		t.Errorf("the client saw %q: %v", seen, err)
	}

	if server.Refused() == 0 || server.Reloads() != 0 {
		t.Errorf("counted %d reloads, %d refused", server.Reloads(), server.Refused())
	}

	authority.Write(t, directory, "second")

	for server.Reloads() == 0 {
		<-server.Changed()
	}

	seen, _, err = handshake(t, server.ServerCredentials(), client.ClientCredentials(""), "localhost")
	if err != nil || seen != "second" {
		t.Errorf("after good files came, the client saw %q: %v", seen, err)
	}
}

func TestAPipeForAMomentDoesNotEndReloading(t *testing.T) {
	t.Parallel()

	authority := certificatestest.NewAuthority(t)
	directory := t.TempDir()
	files := authority.Write(t, directory, "first")
	server := open(t, files)

	check(t, os.Remove(files.Authorities))
	check(t, syscall.Mkfifo(files.Authorities, 0o600))

	for server.Refused() == 0 {
		<-server.Changed()
	}

	check(t, os.Remove(files.Authorities))
	authority.Write(t, directory, "second")

	for server.Reloads() == 0 {
		<-server.Changed()
	}
}

func TestAClientTakesNewAuthorities(t *testing.T) {
	t.Parallel()

	former, next := certificatestest.NewAuthority(t), certificatestest.NewAuthority(t)
	directory := t.TempDir()
	client := open(t, former.Write(t, directory, "edge"))
	server := open(t, next.Write(t, t.TempDir(), "sealer"))
	clientCredentials := client.ClientCredentials("")

	_, _, err := handshake(t, server.ServerCredentials(), clientCredentials, "localhost")
	if err == nil {
		t.Fatal("a server of an unknown authority was accepted")
	}

	next.Write(t, directory, "edge")

	for client.Reloads() == 0 {
		<-client.Changed()
	}

	seen, _, err := handshake(t, server.ServerCredentials(), clientCredentials, "localhost")
	if err != nil || seen != "sealer" {
		t.Errorf("the client saw %q: %v", seen, err)
	}
}

func TestOpenNeedsAllFiles(t *testing.T) {
	t.Parallel()

	whole := certificatestest.NewAuthority(t).Write(t, t.TempDir(), "sealer")

	for name, spoil := range map[string]func(*certificates.Files){
		"no certificate":         func(f *certificates.Files) { f.Certificate = "" },
		"no key":                 func(f *certificates.Files) { f.Key = "" },
		"no authorities":         func(f *certificates.Files) { f.Authorities = "" },
		"a missing file":         func(f *certificates.Files) { f.Key += ".absent" },
		"authorities are a key":  func(f *certificates.Files) { f.Authorities = f.Key },
		"the key is no key":      func(f *certificates.Files) { f.Key = f.Authorities },
		"of another certificate": func(f *certificates.Files) { f.Certificate = f.Authorities },
	} {
		files := whole
		spoil(&files)

		_, err := certificates.Open(files, slog.New(slog.DiscardHandler))
		if err == nil {
			t.Errorf("%s: the files were accepted", name)
		}
	}
}

func check(t *testing.T, err error) {
	t.Helper()

	if err != nil {
		t.Fatal(err)
	}
}
