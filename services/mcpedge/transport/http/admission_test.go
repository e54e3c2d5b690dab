package http

import "testing"

func TestTheMostSpecificRangeDecides(t *testing.T) {
	for header, want := range map[string]bool{
		"application/json, text/event-stream":  true,
		"text/event-stream;q=0.5, */*;q=0.1":   true,
		"*/*":                                  true,
		"text/*":                               true,
		"application/json":                     false,
		"text/event-stream;q=0":                false,
		"text/event-stream;q=0.0, */*":         false,
		"*/*, text/event-stream; q=0.000":      false,
		"text/*;q=0, */*":                      false,
		"text/*;q=0, text/event-stream;q=0.1":  true,
		"":                                     false,
		"nonsense; ; ;, text/event-stream;q=1": true,
	} {
		if got := accepts([]string{header}, "text/event-stream"); got != want {
			t.Errorf("%q: got %t", header, got)
		}
	}
	if !accepts(nil, "text/event-stream") {
		t.Error("no header does not allow all")
	}
}

func TestOriginsOnAllowedHosts(t *testing.T) {
	h := NewHandler(Options{AllowedHosts: []string{"localhost", "127.0.0.1", "::1", "mcp.example"}, AllowedOrigins: []string{"http://app.example:8000"}})
	for origin, want := range map[string]bool{
		"http://localhost:6274":         true,
		"https://127.0.0.1":             true,
		"http://[::1]:80":               true,
		"https://mcp.example":           true,
		"http://app.example:8000":       true,
		"http://mcp.example":            false,
		"chrome-extension://localhost":  false,
		"http://x:1@localhost":          false,
		"http://localhost/path":         false,
		"https://app.example:8000":      false,
		"http://127.0.0.1.evil.example": false,
		"null":                          false,
		"":                              false,
	} {
		if got := h.allowedOrigin([]string{origin}); got != want {
			t.Errorf("%q: got %t", origin, got)
		}
	}
	if h.allowedOrigin([]string{"http://localhost", "http://localhost"}) || !h.allowedOrigin(nil) {
		t.Error("two origins, or none")
	}
	if NewHandler(Options{AllowedHosts: []string{AnyHost}}).allowedOrigin([]string{"https://evil.example"}) {
		t.Error("any host is any origin")
	}
}
