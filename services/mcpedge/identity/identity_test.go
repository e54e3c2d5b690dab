package identity

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

func TestAnonymousCallersAreOnePrincipal(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/mcp", http.NoBody)
	r.Header.Set("X-User", "alice")
	if got, err := (Anonymous{}).Principal(r); err != nil || got != AnonymousPrincipal {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestTrustedHeaderIsBelievedFromItsProxiesAlone(t *testing.T) {
	source := TrustedHeader{Header: "X-User", Issuer: "proxy", Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}
	for name, test := range map[string]struct {
		peer    string
		headers []string
		want    string
	}{
		"one subject":           {"127.0.0.1:4000", []string{"alice"}, "alice"},
		"IPv6":                  {"[::1]:4000", []string{"bob"}, "bob"},
		"IPv4 mapped into IPv6": {"[::ffff:127.0.0.1]:4000", []string{"alice"}, "alice"},
		"other peer":            {"192.0.2.1:4000", []string{"alice"}, ""},
		"no header":             {"127.0.0.1:4000", nil, ""},
		"empty header":          {"127.0.0.1:4000", []string{""}, ""},
		"two headers":           {"127.0.0.1:4000", []string{"alice", "root"}, ""},
		"not UTF-8":             {"127.0.0.1:4000", []string{"\xff"}, ""},
		"long subject":          {"127.0.0.1:4000", []string{strings.Repeat("a", maxSubjectBytes+1)}, ""},
		"unreadable peer":       {"@", []string{"alice"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/mcp", http.NoBody)
			r.RemoteAddr = test.peer
			for _, value := range test.headers {
				r.Header.Add("X-User", value)
			}
			got, err := source.Principal(r)
			if (err == nil) != (test.want != "") || (err == nil && got != Principal{Issuer: "proxy", Subject: test.want}) {
				t.Errorf("got %+v, %v; want subject %q", got, err, test.want)
			}
		})
	}
}
