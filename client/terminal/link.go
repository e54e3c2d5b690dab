package terminal

import (
	"context"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign-mcp/countersign/client/ask"
)

// link asks whether the person will go to a URL.
func (i *Interviewer) link(ctx context.Context, link *ask.Link) (jsontext.Value, error) {
	i.heading("asks you to open a web page:", link.Message)
	i.printf("\n  %s\n", i.showURL(link.URL))
	for _, warning := range urlWarnings(link.URL) {
		i.printf("  %s %s\n", i.bold("Warning:"), warning)
	}
	i.printf("  This program opens nothing. If you trust the page, open it in your browser yourself.\n")
	for {
		typed, err := i.prompt(ctx, "Accept, decline or cancel? [a/d/c] ")
		if err != nil {
			return nil, err
		}
		switch strings.ToLower(strings.TrimSpace(typed)) {
		case "a", "accept":
			return ask.Response(ask.Accept, nil), nil
		case "d", "decline":
			return nil, &acted{ask.Decline}
		case "c", "cancel":
			return nil, &acted{ask.Cancel}
		}
		i.printf("  Type a to accept, d to decline (say no) or c to cancel (say nothing).\n")
	}
}

// showURL is the whole URL with its host pointed out: in bold where the terminal
// can, and on a line of its own in any case.
func (i *Interviewer) showURL(text string) string {
	shown := Line(text)
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" {
		return shown
	}
	host := Line(parsed.Hostname())
	if before, after, found := strings.Cut(shown, "//"); found {
		authority, path := after, ""
		if end := strings.IndexAny(after, "/?#"); end >= 0 {
			authority, path = after[:end], after[end:]
		}
		userinfo, hostport := "", authority
		if at := strings.LastIndex(authority, "@"); at >= 0 {
			userinfo, hostport = authority[:at+1], authority[at+1:]
		}
		shown = before + "//" + userinfo + i.bold(hostport) + path
	}
	return shown + "\n  Host: " + i.bold(host)
}

// urlWarnings says what is suspicious about a URL.
func urlWarnings(text string) []string {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" {
		return []string{"this is not a complete web address."}
	}
	var warnings []string
	host := strings.ToLower(parsed.Hostname())
	isLoopback := host == "localhost" || host == "127.0.0.1" || host == "::1"
	switch {
	case parsed.Scheme == "https" || parsed.Scheme == "http" && isLoopback:
	case parsed.Scheme == "http":
		warnings = append(warnings, "the page is not encrypted (http): others can read and change it.")
	default:
		warnings = append(warnings, "this is not a web page: its scheme is "+Line(parsed.Scheme)+".")
	}
	for label := range strings.SplitSeq(host, ".") {
		if strings.HasPrefix(label, "xn--") {
			warnings = append(warnings, "the host is written in Punycode (xn--): a browser may show it as a name that looks like another one.")
			break
		}
	}
	if strings.IndexFunc(host, func(r rune) bool { return r > 0x7f }) >= 0 {
		warnings = append(warnings, "the host has letters outside ASCII, which may look like others.")
	}
	if parsed.User != nil {
		warnings = append(warnings, "what stands before the @ is not the host; the host is "+Line(host)+".")
	}
	return warnings
}
