package http

import (
	"mime"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// allowedHost says whether a Host header is of this server.
func (h *Handler) allowedHost(host string) bool {
	return slices.Contains(h.AllowedHosts, AnyHost) || h.named(host)
}

// named says whether AllowedHosts names a host, given with a port or without.
func (h *Handler) named(host string) bool {
	name := hostName(host)
	return slices.ContainsFunc(h.AllowedHosts, func(allowed string) bool { return strings.EqualFold(allowed, name) })
}

func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.Trim(host, "[]")
}

// allowedOrigin says whether a page of this origin may call. No Origin header is no
// page. An origin on an allowed host may: over HTTPS, or, on the user's own machine,
// over HTTP too, where pages have no certificates.
func (h *Handler) allowedOrigin(origins []string) bool {
	switch len(origins) {
	case 0:
		return true
	case 1:
	default:
		return false
	}
	if slices.ContainsFunc(h.AllowedOrigins, func(allowed string) bool { return strings.EqualFold(allowed, origins[0]) }) {
		return true
	}
	origin, err := url.Parse(origins[0])
	if err != nil || origin.Host == "" || origin.User != nil || origin.Path != "" || !h.named(origin.Host) {
		return false
	}
	return origin.Scheme == "https" || origin.Scheme == "http" && isLoopback(hostName(origin.Host))
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}

// accepts says whether Accept headers allow a media type: the most specific range
// that fits it decides (RFC 9110, section 12.5.1). No header allows all.
func accepts(headers []string, mediaType string) bool {
	if len(headers) == 0 {
		return true
	}
	kind, _, _ := strings.Cut(mediaType, "/")
	ranges := []string{"*/*", kind + "/*", mediaType}
	specific, allowed := -1, false
	for _, header := range headers {
		for part := range strings.SplitSeq(header, ",") {
			if strings.TrimSpace(part) == mediaType { // nearly every time
				return true
			}
			accepted, parameters, err := mime.ParseMediaType(part)
			if err != nil {
				continue
			}
			if fits := slices.Index(ranges, accepted); fits >= specific && fits >= 0 {
				specific, allowed = fits, !isZero(parameters["q"])
			}
		}
	}
	return allowed
}

// isZero says whether a quality is given and is zero.
func isZero(quality string) bool {
	value, err := strconv.ParseFloat(quality, 64)
	return err == nil && value == 0
}
