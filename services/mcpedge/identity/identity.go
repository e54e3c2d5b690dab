// Package identity establishes on whose behalf a request is made.
//
// A request state is bound to a principal: what was sealed for one caller is
// refused from any other. The principal is the pair of an issuer, who vouches,
// and a subject within it; the same subject under another issuer is another
// principal.
//
// Two sources exist. Anonymous makes every caller the same principal, so the
// binding then separates nobody. TrustedHeader takes the subject from a header
// that a proxy in front sets after it has authenticated the caller; it believes
// the header only from the proxies it is told of, because anybody can set one.
package identity

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"unicode/utf8"
)

// Principal is on whose behalf a request is made.
type Principal struct {
	// Issuer vouches for the subject.
	Issuer string
	// Subject is the caller within the issuer; empty for an anonymous one.
	Subject string
}

// maxSubjectBytes is how long a subject may be.
const maxSubjectBytes = 2048

// Source establishes the principal of a request.
type Source interface {
	// Principal returns the caller, or why there is none.
	Principal(r *http.Request) (Principal, error)
}

// Anonymous is the Source that asks nobody for a name.
type Anonymous struct{}

// AnonymousPrincipal is every caller of an Anonymous source.
var AnonymousPrincipal = Principal{Issuer: "anonymous"}

// Principal returns AnonymousPrincipal.
func (Anonymous) Principal(*http.Request) (Principal, error) { return AnonymousPrincipal, nil }

// TrustedHeader is the Source that believes a proxy in front.
type TrustedHeader struct {
	// Header is the name of the header that holds the subject.
	Header string
	// Issuer is the issuer of every principal from this source.
	Issuer string
	// Proxies are the addresses the header is believed from.
	Proxies []netip.Prefix
}

// Principal returns the subject that the header names. It fails where the peer is
// not one of the proxies, or where the header does not hold exactly one subject.
func (s TrustedHeader) Principal(r *http.Request) (Principal, error) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return Principal{}, fmt.Errorf("read the peer's address: %w", err)
	}
	if !s.trusts(peer.Addr().Unmap()) {
		return Principal{}, errors.New("the peer is not a trusted proxy")
	}
	values := r.Header.Values(s.Header)
	switch {
	case len(values) == 0 || values[0] == "":
		return Principal{}, fmt.Errorf("the header %q is missing", s.Header)
	case len(values) > 1:
		return Principal{}, fmt.Errorf("the header %q is there %d times", s.Header, len(values))
	case !utf8.ValidString(values[0]):
		return Principal{}, fmt.Errorf("the header %q is not UTF-8", s.Header)
	case len(values[0]) > maxSubjectBytes:
		return Principal{}, fmt.Errorf("the header %q is longer than %d bytes", s.Header, maxSubjectBytes)
	}
	return Principal{Issuer: s.Issuer, Subject: values[0]}, nil
}

func (s TrustedHeader) trusts(peer netip.Addr) bool {
	for _, prefix := range s.Proxies {
		if prefix.Contains(peer) {
			return true
		}
	}
	return false
}
