package terminal_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/countersign-mcp/countersign/client/terminal"
)

func TestAServersTextCannotControlTheTerminal(t *testing.T) {
	for text, want := range map[string]string{
		"plain ä Привет 👩‍🚀":       "plain ä Привет 👩‍🚀",
		"\x1b]0;title\x07":         `\x1b]0;title\x07`,
		"\x1b[2J\x1b[1;1Hhello":    `\x1b[2J\x1b[1;1Hhello`,
		"\u009b31mred":             `\x9b31mred`,
		"good\rbad":                `good\x0dbad`,
		"dos\r\nline":              "dos\nline",
		"back\b\bspace\x7f":        `back\x08\x08space\x7f`,
		"a\tb\nc":                  "a\tb\nc",
		"user\u202etxt.exe":        `user\u202etxt.exe`,
		"zero\u200bwidth\ufeff":    `zero\u200bwidth\ufeff`,
		"tag\U000e0041":            `tag\U000e0041`,
		"invalid\xff\xc3":          `invalid\xff\xc3`,
		"line\u2028separator":      `line\u2028separator`,
		"replacement \ufffd stays": "replacement \ufffd stays",
	} {
		if got := terminal.Text(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
	if got := terminal.Line("a\nb\tc\r\nd"); got != "a b c d" {
		t.Errorf("a line is shown as %q", got)
	}
}

func TestNothingDangerousIsEverShown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		for name, shown := range map[string]string{"text": terminal.Text(text), "line": terminal.Line(text)} {
			if !utf8.ValidString(shown) {
				t.Fatalf("%s %q is not UTF-8", name, shown)
			}
			for _, r := range shown {
				isLayout := name == "text" && (r == '\n' || r == '\t')
				isJoiner := r == '\u200c' || r == '\u200d'
				if !isLayout && !isJoiner && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
					t.Fatalf("%s shows %q", name, r)
				}
			}
		}
	})
}

func TestEscapedJSONMeansTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text") + "\u009b\u202e\U000e0041\x7f"
		plain, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		safe := terminal.JSON(string(plain))
		var back string
		if err := json.Unmarshal([]byte(safe), &back); err != nil || back != text {
			t.Fatalf("%s came back as %q (%v)", safe, back, err)
		}
		if strings.ContainsFunc(safe, func(r rune) bool { return r < 0x20 || r >= 0x7f && r <= 0x9f }) {
			t.Fatalf("%q still has control characters", safe)
		}
	})
}
