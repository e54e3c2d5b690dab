package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const good = `
context: {audience: https://mcp.example/mcp}
sealer: unix:/run/countersign/sealer.sock
handlers:
  - {name: refunds, target: "dns:///refunds:9000", plaintext: true}
`

func loadText(t *testing.T, text string) (Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mcpedge.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return load(path)
}

func TestDefaultsAreSafe(t *testing.T) {
	c, err := loadText(t, good)
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "127.0.0.1:8080" || c.Limits.MaxRequestStateBytes != 16<<10 || c.EncryptRequestState || c.Principal.Source != sourceAnonymous || strings.Join(c.AllowedHosts, " ") != "localhost 127.0.0.1 ::1" {
		t.Errorf("got %+v", c)
	}
}

func TestAConfigurationThatCannotServeIsRefusedWithTheField(t *testing.T) {
	withoutHandlers, _, _ := strings.Cut(good, "handlers")
	for name, test := range map[string]struct{ text, want string }{
		"unknown field":             {good + "encryptRequestStat: true\n", "encryptRequestStat"},
		"wrong type":                {good + "limits: {maxDepth: many}\n", "maxDepth"},
		"no audience":               {strings.Replace(good, "https://mcp.example/mcp", `""`, 1), "context.audience"},
		"no sealer":                 {strings.Replace(good, "sealer: unix:/run/countersign/sealer.sock", "", 1), "sealer:"},
		"plaintext to another host": {strings.Replace(good, "unix:/run/countersign/sealer.sock", "dns:///sealer:9443", 1), "sealerTLS"},
		"embedded without keys":     {strings.Replace(good, "unix:/run/countersign/sealer.sock", "embedded", 1), "embeddedSealer.keys"},
		"no handlers":               {withoutHandlers, "handlers:"},
		"a handler twice":           {good + "  - {name: refunds, target: \"x:1\"}\n", "is taken"},
		"plaintext to a handler":    {strings.Replace(good, ", plaintext: true", "", 1), "plaintext"},
		"handler by URL":            {good + "  - {name: other, target: \"http://localhost:9102\"}\n", "is a URL"},
		"a sealer by list":          {strings.Replace(good, "unix:/run/countersign/sealer.sock", "ipv4:127.0.0.1:1,127.0.0.2:2", 1), "sealer: \"ipv4:"},
		"a handler without a port":  {good + "  - {name: other, target: localhost}\n", "handlers[1]: \"localhost\" is no address"},
		"an embedded handler":       {good + "  - {name: other, target: embedded}\n", "handlers[1]: \"embedded\" is no address"},
		"half of TLS":               {good + "sealerTLS: {certificate: a.crt}\n", "key is not given"},
		"host with a scheme":        {good + "allowedHosts: [\"https://mcp.example\"]\n", "allowedHosts"},
		"host with a port":          {good + "allowedHosts: [\"mcp.example:443\"]\n", "allowedHosts"},
		"origin without a scheme":   {good + "allowedOrigins: [app.example.com]\n", "allowedOrigins"},
		"a handler without target":  {good + "  - {name: other}\n", "handlers[1]"},
		"public without hosts":      {good + "listen: 0.0.0.0:8080\n", "allowedHosts"},
		"no port":                   {good + "listen: localhost\n", "listen:"},
		"unknown principal":         {good + "principal: {source: oauth}\n", "principal.source"},
		"header without proxies":    {good + "principal: {source: trustedHeader, header: X-User, issuer: proxy}\n", "proxies"},
		"proxy is no network":       {good + "principal: {source: trustedHeader, header: X-User, issuer: proxy, proxies: [anywhere]}\n", "proxies[0]"},
		"limit out of bounds":       {good + "limits: {maxRequestStateBytes: 4GiB}\n", "limits.maxRequestStateBytes"},
		"no page":                   {good + "limits: {pageSize: 0}\n", "limits.pageSize"},
		"no rounds":                 {good + "limits: {maxRounds: 0}\n", "limits.maxRounds"},
		"a collector by URL":        {good + "tracing: {endpoint: \"http://collector:4317\"}\n", "tracing.endpoint"},
		"no time":                   {good + "limits: {requestTimeout: 0s}\n", "limits.requestTimeout"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loadText(t, test.text)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want something about %q", err, test.want)
			}
		})
	}
}

func TestEveryProblemIsNamedAtOnce(t *testing.T) {
	_, err := loadText(t, "sealer: \"\"\nendpoint: mcp\n")
	for _, want := range []string{"context.audience", "sealer:", "handlers:", "endpoint:"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not named in %v", want, err)
		}
	}
}

func TestPlaintextIsForTargetsOnThisMachine(t *testing.T) {
	for target, want := range map[string]bool{
		"127.0.0.1:9101": true, "localhost:9101": true, "[::1]:9101": true, "unix:/run/s.sock": true, "unix:///run/s.sock": true, "dns:///127.0.0.1:9101": true,
		"127.0.0.1:1,127.0.0.2:1": false, "sealer:9101": false, "dns:///sealer:9101": false, "dns://127.0.0.1/sealer:9101": false, "": false,
	} {
		if got := localTarget(target); got != want {
			t.Errorf("%q: got %t", target, got)
		}
	}
}

func TestATargetMustLeadSomewhere(t *testing.T) {
	for target, want := range map[string]bool{
		"sealer:9443": true, "127.0.0.1:9443": true, "[::1]:9443": true, ":9443": true, "localhost:9443": true,
		"dns:///sealer:9443": true, "dns:sealer:9443": true, "dns://127.0.0.1/sealer:9443": true, "passthrough:///sealer:9443": true,
		"unix:/run/s.sock": true, "unix:///run/s.sock": true, "unix:s.sock": true, "unix-abstract:sealer": true,

		"sealer": false, "sealer:": false, "sealer:0": false, "sealer:70000": false, "sealer:grpc": false, "::1": false, "dns:///sealer": false,
		"ipv4:127.0.0.1:1": false, "ipv4:127.0.0.1:1,127.0.0.2:2": false, "127.0.0.1:1,127.0.0.2:2": false, "a,b:1": false,
		"xds:///sealer": false, "tcp://sealer:9443": false, "unix:": false, "unix://run/s.sock": false, "%zz:1": false,
	} {
		if got := connectable(target); got != want {
			t.Errorf("%q: got %t", target, got)
		}
	}
}
