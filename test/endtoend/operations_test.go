package endtoend_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign-mcp/countersign/deploy/local/suite"
	"github.com/countersign-mcp/countersign/test/client"
	"github.com/countersign-mcp/countersign/test/deployment"
)

// example is the deployment that docs/operations.md shows, in a folder of its own.
type example struct {
	document string
	folder   string
}

// block is the code block of a language that begins with a text.
func (e example) block(t *testing.T, language, begins string) string {
	t.Helper()
	_, after, found := strings.Cut(e.document, "```"+language+"\n"+begins)
	block, _, closed := strings.Cut(after, "```")
	if !found || !closed {
		t.Fatalf("docs/operations.md has no %s that begins with %q", language, begins)
	}
	return e.placed(begins + block)
}

// placed is a text with the files where they are in the test. The shell runs in
// their folder.
func (e example) placed(text string) string {
	return regexp.MustCompile(`\b(ca|sealer|edge|accounts)\.(crt|key)\b|\bkeys\.yaml\b`).
		ReplaceAllStringFunc(text, func(name string) string { return filepath.Join(e.folder, name) })
}

// write writes a configuration file of the document, with other texts in it.
func (e example) write(t *testing.T, name string, replacements ...string) string {
	t.Helper()
	text := e.block(t, "yaml", "# "+name+"\n")
	for position := 0; position < len(replacements); position += 2 {
		if !strings.Contains(text, replacements[position]) {
			t.Fatalf("%s does not say %q", name, replacements[position])
		}
	}
	path := filepath.Join(e.folder, name)
	if err := os.WriteFile(path, []byte(strings.NewReplacer(replacements...).Replace(text)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// serve starts a program with a configuration file.
func (e example) serve(t *testing.T, name, configuration string) *deployment.Service {
	t.Helper()
	return deployment.StartProgram(t, suite.Program{
		Name: name, Path: deployment.Program(t, name), Arguments: []string{"serve", "--config", configuration},
	})
}

// letsIn says whether a server with mutual TLS lets a certificate in.
func (e example) letsIn(ctx context.Context, address, name string) error {
	certificate, err := tls.LoadX509KeyPair(filepath.Join(e.folder, name+".crt"), filepath.Join(e.folder, name+".key"))
	if err != nil {
		return err
	}
	authority, err := os.ReadFile(filepath.Join(e.folder, "ca.crt"))
	if err != nil {
		return err
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(authority) {
		return errors.New("the authority's file holds no certificate")
	}
	dialer := tls.Dialer{Config: &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}, RootCAs: authorities, Certificates: []tls.Certificate{certificate},
	}}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }() // nothing was sent
	// In TLS 1.3 the client learns only here whether it is let in. A gRPC server
	// speaks first.
	_, err = connection.Read(make([]byte, 1))
	return err
}

func TestTheDeploymentOfTheOperationsDocumentWorks(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("this machine has no openssl, with which the document makes certificates")
	}
	document, err := os.ReadFile(filepath.Join(deployment.Root(), "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	deployed := example{document: string(document), folder: t.TempDir()}

	certificates := exec.CommandContext(t.Context(), "bash", "-euc", deployed.block(t, "sh", "openssl req"))
	certificates.Dir = deployed.folder
	if output, err := certificates.CombinedOutput(); err != nil {
		t.Fatalf("make certificates: %v\n%s", err, output)
	}
	keys := exec.CommandContext(t.Context(), deployment.Program(t, "sealer"), "keys", "new", "--file", filepath.Join(deployed.folder, "keys.yaml"))
	if output, err := keys.CombinedOutput(); err != nil {
		t.Fatalf("make keys: %v\n%s", err, output)
	}

	options := strings.Replace(deployed.block(t, "go", "handler.Options{"), `":9443"`, `"127.0.0.1:0"`, 1)
	handler := deployment.StartProgram(t, suite.Program{Name: "accounts", Path: readmeHandler(t, strings.TrimSpace(options))})
	sealer := deployed.serve(t, "sealer", deployed.write(t, "sealer.yaml", ":9443", "127.0.0.1:0", ":9090", "127.0.0.1:0"))
	edge := deployed.serve(t, "mcpedge", deployed.write(t, "mcpedge.yaml", ":8080", "127.0.0.1:0", ":9090", "127.0.0.1:0",
		"allowedHosts: [mcp.example.com]", "allowedHosts: [127.0.0.1]",
		"dns:///sealer:9443", "dns:///"+sealer.Address, "dns:///accounts:9443", "dns:///"+handler.Address))

	c := newClient(t, edge.MCP())
	answers := map[string]any{"confirm": client.Accept(map[string]any{"confirm": true})}
	err = suite.Await(t.Context(), func(ctx context.Context) error {
		asked, err := c.CallTool(ctx, "close_account", map[string]any{"number": "42"}, nil, "")
		if err != nil {
			return err
		}
		if asked.Result == nil { // the edge has not reached them yet
			return fmt.Errorf("asked for nothing: %s", asked.Body)
		}
		done, err := c.CallTool(ctx, "close_account", map[string]any{"number": "42"}, answers, asked.Result.RequestState)
		if err != nil {
			return err
		}
		if done.Error != nil || done.Result.Type != "complete" {
			return fmt.Errorf("did not complete: %s", done.Body)
		}
		return nil
	}, edge.Process, sealer.Process, handler.Process)
	if err != nil {
		t.Fatal(err)
	}

	for name, server := range map[string]*deployment.Service{"sealer": sealer, "accounts": handler} {
		if err := deployed.letsIn(t.Context(), server.Address, "edge"); err != nil {
			t.Errorf("%s does not let the edge in: %v", name, err)
		}
		if err := deployed.letsIn(t.Context(), server.Address, "accounts"); err == nil {
			t.Errorf("%s lets a handler service in, whose certificate is for a server", name)
		}
	}
}
