package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/countersign-mcp/countersign/services/internal/certificates"
	"github.com/countersign-mcp/countersign/services/internal/config"
	"github.com/countersign-mcp/countersign/services/internal/listener"
	"github.com/countersign-mcp/countersign/services/internal/tracing"
	"github.com/countersign-mcp/countersign/services/mcpedge/transport/http"
	"github.com/countersign-mcp/countersign/services/sealer/keysource"
)

// Config is the configuration file of the edge. Unknown fields are refused.
type Config struct {
	// Listen is where MCP clients connect: `host:port`, or `unix:/path` for a proxy
	// on the same machine. The edge speaks plain HTTP; TLS is for the proxy in front.
	Listen string `yaml:"listen"`
	// OperationsListen is where /metrics, /healthz and /readyz are served. Clients
	// must not reach it.
	OperationsListen string `yaml:"operationsListen"`
	// Endpoint is the path of the MCP endpoint.
	Endpoint string `yaml:"endpoint"`
	// AllowedHosts are the host names that a Host header may have, against DNS
	// rebinding. The default is this machine's own names, and fits a loopback
	// listener alone; elsewhere name the public host, or `*` where the proxy in front
	// has checked it.
	AllowedHosts []string `yaml:"allowedHosts"`
	// AllowedOrigins are the web origins, such as `https://app.example.com`, that may
	// call from a browser, beside pages on an allowed host.
	AllowedOrigins []string `yaml:"allowedOrigins"`
	// Server is how the server describes itself to clients.
	Server ServerInfo `yaml:"server"`
	// Context names the deployment. A request state opens only in the one it was
	// sealed in, so all replicas must have the same and other deployments another.
	Context Context `yaml:"context"`
	// Principal is how callers are told apart.
	Principal Principal `yaml:"principal"`
	// EncryptRequestState hides the request state from the client (AES-256-GCM). By
	// default it can be read there and not changed (HMAC-SHA256). State sealed the
	// other way is refused after a change.
	EncryptRequestState bool `yaml:"encryptRequestState"`
	// Limits bound what a request may cost.
	Limits Limits `yaml:"limits"`
	// Sealer is the sealer's gRPC target, for example `dns:///sealer:9443`, or
	// `embedded` for one in this process.
	Sealer string `yaml:"sealer"`
	// SealerTLS is the client's side of mutual TLS with the sealer. Without it the
	// edge speaks plaintext, and only to a target on this machine.
	SealerTLS certificates.Files `yaml:"sealerTLS"`
	// EmbeddedSealer configures the sealer in this process.
	EmbeddedSealer EmbeddedSealer `yaml:"embeddedSealer"`
	// Tracing is where the spans of requests go; by default there are none.
	Tracing tracing.Configuration `yaml:"tracing"`
	// Handlers are the handler services. Where two offer the same name, the first
	// keeps it.
	Handlers []Handler `yaml:"handlers"`
}

// ServerInfo is how the server describes itself to clients.
type ServerInfo struct {
	// Name is the server's name.
	Name string `yaml:"name"`
	// Version is its version; by default the edge's own.
	Version string `yaml:"version"`
	// Title is a name for display.
	Title string `yaml:"title"`
}

// Context names the deployment.
type Context struct {
	// Audience is whom a request state is for: best the public URL of the endpoint.
	Audience string `yaml:"audience"`
	// Tenant is the tenant within it, if there is more than one.
	Tenant string `yaml:"tenant"`
	// Environment is, for example, `production`.
	Environment string `yaml:"environment"`
}

// The values of Principal.Source.
const (
	sourceAnonymous     = "anonymous"
	sourceTrustedHeader = "trustedHeader"
)

// Principal is how callers are told apart.
type Principal struct {
	// Source is `anonymous`, where every caller is the same principal, or
	// `trustedHeader`, where a proxy in front names the caller.
	Source string `yaml:"source"`
	// Header is the header in which the proxy names the caller. The proxy must remove
	// it from what clients send.
	Header string `yaml:"header"`
	// Issuer is the issuer of every principal named in the header.
	Issuer string `yaml:"issuer"`
	// Proxies are the networks, such as `10.0.0.0/8`, that the header is believed
	// from.
	Proxies []string `yaml:"proxies"`
}

// Limits bound what a request may cost.
type Limits struct {
	// MaxBodyBytes is how large a request may be.
	MaxBodyBytes config.Bytes `yaml:"maxBodyBytes"`
	// MaxDepth is how deeply a request's JSON may be nested.
	MaxDepth int `yaml:"maxDepth"`
	// MaxRequestStateBytes is how long a request state may be, in characters, both
	// from clients and for handlers.
	MaxRequestStateBytes config.Bytes `yaml:"maxRequestStateBytes"`
	// MaxHandlerMessageBytes is how large a message of a handler may be.
	MaxHandlerMessageBytes config.Bytes `yaml:"maxHandlerMessageBytes"`
	// RequestTimeout is how long one request may take, without the time in which the
	// user thinks.
	RequestTimeout config.Duration `yaml:"requestTimeout"`
	// MaxRounds is how many rounds of questions a chain may have.
	MaxRounds uint32 `yaml:"maxRounds"`
	// ChainLifetime is how long a chain may last from its first request on.
	ChainLifetime config.Duration `yaml:"chainLifetime"`
	// RequestStateLifetime is how long the user may think about one round.
	RequestStateLifetime config.Duration `yaml:"requestStateLifetime"`
	// MaxSubscriptions is how many clients may listen for changes at once, and
	// MaxSubscriptionsPerPrincipal how many streams one of them may have. Anonymous
	// callers are bounded by the first alone.
	MaxSubscriptions             int `yaml:"maxSubscriptions"`
	MaxSubscriptionsPerPrincipal int `yaml:"maxSubscriptionsPerPrincipal"`
	// KeepAlive is how often a silent stream is kept alive.
	KeepAlive config.Duration `yaml:"keepAlive"`
	// PageSize is how many entries a page of a list has at most. A longer list is
	// read in pages, and each page but the last needs the sealer.
	PageSize int `yaml:"pageSize"`
	// SealerTimeout is how long a call of the sealer may take. Where a replica has not
	// answered in a third of it, another is tried.
	SealerTimeout config.Duration `yaml:"sealerTimeout"`
}

// EmbeddedSealer configures the sealer in this process.
type EmbeddedSealer struct {
	// Keys is where root keys come from, as in the sealer's own configuration.
	Keys keysource.Configuration `yaml:"keys"`
}

// Handler is a handler service.
type Handler struct {
	// Name is its name in logs, metrics and request state.
	Name string `yaml:"name"`
	// Prefix stands before the names of its tools and prompts, where two handlers
	// offer the same. Clients see it; the handler does not.
	Prefix string `yaml:"prefix"`
	// Target is its gRPC target, for example `dns:///refunds:9000`.
	Target string `yaml:"target"`
	// TLS is the client's side of mutual TLS with it. Without it the edge speaks
	// plaintext, and only to a target on this machine.
	TLS certificates.Files `yaml:"tls"`
	// Plaintext allows plaintext to another machine: where something between the two,
	// such as a service mesh, encrypts. Arguments and answers cross the network.
	Plaintext bool `yaml:"plaintext"`
}

// sealerEmbedded is the Sealer that is in this process.
const sealerEmbedded = "embedded"

// defaults is the configuration before the file is read.
func defaults() Config {
	return Config{
		Listen:           "127.0.0.1:8080",
		OperationsListen: "127.0.0.1:8081",
		Endpoint:         "/mcp",
		Server:           ServerInfo{Name: "countersign", Version: version},
		Principal:        Principal{Source: sourceAnonymous},
		EmbeddedSealer:   EmbeddedSealer{Keys: keysource.Defaults()},
		Tracing:          tracing.Defaults(),
		Limits: Limits{
			MaxBodyBytes:                 4 << 20,
			MaxDepth:                     64,
			MaxRequestStateBytes:         16 << 10,
			MaxHandlerMessageBytes:       16 << 20,
			RequestTimeout:               config.Duration(time.Minute),
			MaxRounds:                    16,
			ChainLifetime:                config.Duration(time.Hour),
			RequestStateLifetime:         config.Duration(10 * time.Minute),
			SealerTimeout:                config.Duration(2 * time.Second),
			MaxSubscriptions:             20000,
			MaxSubscriptionsPerPrincipal: 100,
			KeepAlive:                    config.Duration(15 * time.Second),
			PageSize:                     1000,
		},
	}
}

// load reads and checks the configuration file.
func load(path string) (Config, error) {
	c := defaults()
	if err := config.Load(path, &c); err != nil {
		return c, err
	}
	if err := c.check(); err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// check reports everything that is wrong, not only the first.
func (c *Config) check() error {
	var problems []error
	demand := func(met bool, format string, arguments ...any) {
		if !met {
			problems = append(problems, fmt.Errorf(format, arguments...))
		}
	}
	problems = append(problems, c.checkListen()...)
	_, err := listener.Parse(c.OperationsListen)
	demand(err == nil, "operationsListen: %w", err)
	demand(strings.HasPrefix(c.Endpoint, "/"), "endpoint: must begin with /")
	demand(c.Context.Audience != "", "context.audience: must name whom request state is for, best the public URL of the endpoint")
	for name, value := range map[string]string{"audience": c.Context.Audience, "tenant": c.Context.Tenant, "environment": c.Context.Environment} {
		demand(len(value) <= 255, "context.%s: at most 255 bytes", name)
	}
	demand(c.Server.Name != "", "server.name: must not be empty")
	problems = append(problems, c.Principal.check()...)
	problems = append(problems, c.Limits.check()...)
	demand(c.Sealer != "", "sealer: must be the sealer's gRPC target, or %q", sealerEmbedded)
	demand(c.Sealer == "" || c.Sealer == sealerEmbedded || c.SealerTLS.Configured() || localTarget(c.Sealer),
		"sealer: %q is not on this machine, and plaintext would expose what is sealed; give sealerTLS", c.Sealer)
	target := c.Sealer
	if target == sealerEmbedded {
		target = "" // there is no connection
		err := c.EmbeddedSealer.Keys.Check()
		demand(err == nil, "embeddedSealer.keys: %w", err)
	}
	problems = append(problems, checkConnection("sealer", target, c.SealerTLS)...)
	err = c.Tracing.Check()
	demand(err == nil, "tracing.%w", err)
	demand(len(c.Handlers) > 0, "handlers: name at least one")
	names := map[string]bool{}
	for i, handler := range c.Handlers {
		demand(handler.Name != "" && handler.Target != "", "handlers[%d]: needs name and target", i)
		demand(!names[handler.Name], "handlers[%d]: the name %q is taken", i, handler.Name)
		demand(handler.Target == "" || handler.Plaintext || handler.TLS.Configured() || localTarget(handler.Target),
			"handlers[%d]: %q is not on this machine, and plaintext would expose arguments and answers; give tls, or plaintext: true where something between encrypts", i, handler.Target)
		problems = append(problems, checkConnection(fmt.Sprintf("handlers[%d]", i), handler.Target, handler.TLS)...)
		names[handler.Name] = true
	}
	return errors.Join(problems...)
}

// checkConnection checks a gRPC target and the files of its TLS.
func checkConnection(field, target string, files certificates.Files) []error {
	var problems []error
	if scheme, _, found := strings.Cut(target, "://"); found && (scheme == "http" || scheme == "https") {
		problems = append(problems, fmt.Errorf("%s: %q is a URL; a gRPC target is host:port, dns:///host:port or unix:/path", field, target))
	} else if target != "" && !connectable(target) {
		problems = append(problems, fmt.Errorf("%s: %q is no address that gRPC can connect to; a target is host:port, dns:///host:port or unix:/path", field, target))
	}
	if files.Configured() {
		if err := files.Check(); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", field, err))
		}
	}
	return problems
}

// connectable says whether a gRPC target leads to a socket, or to a host with a port.
// gRPC itself takes any text, calls it the name of a host and never connects.
func connectable(target string) bool {
	connection, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return false
	}
	canonical := connection.CanonicalTarget()
	_ = connection.Close() // it has not been used
	scheme, rest, _ := strings.Cut(canonical, "://")
	authority, endpoint, _ := strings.Cut(rest, "/")
	if strings.HasPrefix(scheme, "unix") {
		return authority == "" && endpoint != ""
	}
	host, port, err := net.SplitHostPort(endpoint)
	if err != nil || strings.ContainsAny(host, ", /") {
		return false
	}
	number, err := strconv.ParseUint(port, 10, 16)
	return err == nil && number > 0
}

func (c *Config) checkListen() []error {
	for _, host := range c.AllowedHosts {
		if strings.ContainsAny(host, "/:") && net.ParseIP(host) == nil {
			return []error{fmt.Errorf("allowedHosts: %q must be a host name alone, without scheme and port", host)}
		}
	}
	for _, origin := range c.AllowedOrigins {
		if parsed, err := url.Parse(origin); err != nil || parsed.Host == "" || parsed.Scheme == "" || parsed.Path != "" {
			return []error{fmt.Errorf("allowedOrigins: %q must be an origin such as https://app.example.com", origin)}
		}
	}
	address, err := listener.Parse(c.Listen)
	if err != nil {
		return []error{fmt.Errorf("listen: %w", err)}
	}
	if len(c.AllowedHosts) > 0 {
		return nil
	}
	if !address.Local() {
		return []error{fmt.Errorf("allowedHosts: %q can be reached from other machines; name the public host, or %q where the proxy in front has checked it", c.Listen, http.AnyHost)}
	}
	c.AllowedHosts = []string{"localhost", "127.0.0.1", "::1"}
	return nil
}

func (p *Principal) check() []error {
	switch p.Source {
	case sourceAnonymous:
		return nil
	case sourceTrustedHeader:
	default:
		return []error{fmt.Errorf("principal.source: must be %q or %q", sourceAnonymous, sourceTrustedHeader)}
	}
	var problems []error
	if p.Header == "" || p.Issuer == "" || len(p.Proxies) == 0 {
		problems = append(problems, errors.New("principal: trustedHeader needs header, issuer and proxies"))
	}
	if _, err := p.prefixes(); err != nil {
		problems = append(problems, err)
	}
	return problems
}

func (p *Principal) prefixes() ([]netip.Prefix, error) {
	prefixes := make([]netip.Prefix, len(p.Proxies))
	for i, text := range p.Proxies {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("principal.proxies[%d]: %q is not a network such as 10.0.0.0/8", i, text)
		}
		prefixes[i] = prefix
	}
	return prefixes, nil
}

func (l *Limits) check() []error {
	var problems []error
	within := func(name string, value, low, high int64) {
		if value < low || value > high {
			problems = append(problems, fmt.Errorf("limits.%s: must be between %d and %d", name, low, high))
		}
	}
	within("maxBodyBytes", l.MaxBodyBytes.Int64(), 1<<10, 1<<30)
	within("maxDepth", int64(l.MaxDepth), 8, 256)
	within("maxRequestStateBytes", l.MaxRequestStateBytes.Int64(), 512, 1<<20)
	within("maxHandlerMessageBytes", l.MaxHandlerMessageBytes.Int64(), 1<<10, 1<<30)
	within("pageSize", int64(l.PageSize), 1, 10000)
	within("maxRounds", int64(l.MaxRounds), 1, 1000)
	within("maxSubscriptions", int64(l.MaxSubscriptions), 0, 1<<20)
	within("maxSubscriptionsPerPrincipal", int64(l.MaxSubscriptionsPerPrincipal), 0, 1<<20)
	for name, duration := range map[string]config.Duration{
		"requestTimeout": l.RequestTimeout, "chainLifetime": l.ChainLifetime,
		"requestStateLifetime": l.RequestStateLifetime, "sealerTimeout": l.SealerTimeout, "keepAlive": l.KeepAlive,
	} {
		if duration.Duration() < time.Millisecond {
			problems = append(problems, fmt.Errorf("limits.%s: must be at least 1ms", name))
		}
	}
	return problems
}

// localTarget says whether a gRPC target is on this machine.
func localTarget(target string) bool {
	if strings.HasPrefix(target, "unix:") {
		return true
	}
	for _, scheme := range []string{"dns:///", "passthrough:///"} {
		target = strings.TrimPrefix(target, scheme)
	}
	address, err := listener.Parse(target)
	return err == nil && address.Local()
}
