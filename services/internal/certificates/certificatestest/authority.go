// Package certificatestest makes certificate authorities and certificates for
// tests of whatever speaks mutual TLS.
package certificatestest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/countersign-mcp/countersign/services/internal/certificates"
)

// Authority issues certificates for one test.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority makes an authority with a key of its own.
func NewAuthority(t *testing.T) *Authority {
	t.Helper()

	authority := &Authority{key: newKey(t)}
	template := newTemplate(t, "test authority")
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign

	encoded, err := x509.CreateCertificate(rand.Reader, template, template, authority.key.Public(), authority.key)
	if err != nil {
		t.Fatal(err)
	}

	authority.certificate, err = x509.ParseCertificate(encoded)
	if err != nil {
		t.Fatal(err)
	}

	return authority
}

// Write issues a certificate for the common name, good for `localhost` and
// 127.0.0.1 as server and as client, and writes it with its key and the authority
// into the directory.
func (a *Authority) Write(t *testing.T, directory, commonName string) certificates.Files {
	t.Helper()

	key := newKey(t)
	template := newTemplate(t, commonName)
	template.DNSNames = []string{"localhost"}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}

	certificate, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}

	encodedKey, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}

	files := certificates.Files{
		Certificate: filepath.Join(directory, "tls.crt"),
		Key:         filepath.Join(directory, "tls.key"),
		Authorities: filepath.Join(directory, "ca.crt"),
	}
	write(t, files.Certificate, "CERTIFICATE", certificate)
	write(t, files.Key, "PRIVATE KEY", encodedKey)
	write(t, files.Authorities, "CERTIFICATE", a.certificate.Raw)

	return files
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	return key
}

func newTemplate(t *testing.T, commonName string) *x509.Certificate {
	t.Helper()

	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}

	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: commonName},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
	}
}

func write(t *testing.T, path, kind string, content []byte) {
	t.Helper()

	err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600)
	if err != nil {
		t.Fatal(err)
	}
}
