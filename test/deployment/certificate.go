package deployment

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
)

// Certificate names the files of a certificate that is its own authority, good for
// both sides of mutual TLS on loopback.
type Certificate struct {
	certificate, key string
}

// NewCertificate makes a certificate.
func NewCertificate(tb testing.TB) *Certificate {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "countersign test"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		DNSNames:              []string{"localhost"},
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		tb.Fatal(err)
	}
	encodedKey, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		tb.Fatal(err)
	}
	folder := tb.TempDir()
	files := &Certificate{certificate: filepath.Join(folder, "tls.crt"), key: filepath.Join(folder, "tls.key")}
	write(tb, files.certificate, "CERTIFICATE", certificate)
	write(tb, files.key, "PRIVATE KEY", encodedKey)
	return files
}

// write writes a PEM file.
func write(tb testing.TB, path, kind string, content []byte) {
	tb.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// configuration is what a program's configuration says of the certificate.
func (c *Certificate) configuration() map[string]any {
	return map[string]any{"certificate": c.certificate, "key": c.key, "authorities": c.certificate}
}
