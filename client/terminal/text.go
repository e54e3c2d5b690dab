// Package terminal shows what a server says and asks the person at the terminal.
//
// The problem. Everything a server sends may be hostile: a title can hold an
// escape sequence that retypes a command, a message can overwrite the question
// with another one, a host name can look like one it is not. And a person must
// see who asks, be able to look at an answer before it goes out, and be able to
// say no or nothing at any moment.
//
// The mechanism. [Text] and [Line] make a server's text harmless; nothing of a
// server's reaches a terminal but through them. [Interviewer] asks with plain
// lines: one prompt a field, numbered choices, a review before a form of several
// fields is sent, and the words `:decline` and `:cancel` at every prompt. A URL
// is shown in full with its host pointed out, and is never opened.
//
// The limit. Text is shown without its direction marks and other invisible
// characters, which some scripts use for good reasons. Look-alike letters within
// one script are not detected; a warning says when a host is not plain ASCII.
package terminal

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text makes a server's text harmless and keeps its lines: control characters,
// invalid UTF-8 and invisible format characters are spelled out.
func Text(text string) string {
	return neutralise(text, true)
}

// Line makes a server's text harmless and a single line.
func Line(text string) string {
	return neutralise(text, false)
}

// neutralise spells out everything that could do something else than be read.
func neutralise(text string, lines bool) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	var safe strings.Builder
	for text != "" {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&safe, `\x%02x`, text[0])
		case lines && (r == '\n' || r == '\t'):
			safe.WriteRune(r)
		case r == '\n' || r == '\t':
			safe.WriteByte(' ')
		case r < 0x20 || r >= 0x7f && r <= 0x9f:
			fmt.Fprintf(&safe, `\x%02x`, r)
		case isInvisible(r):
			safe.WriteString(spell(r))
		default:
			safe.WriteRune(r)
		}
		text = text[size:]
	}
	return safe.String()
}

// isInvisible finds characters that change how others are read: direction marks,
// separators, tags. The joiners stay, because scripts and emoji are built with
// them.
func isInvisible(r rune) bool {
	const zeroWidthNonJoiner, zeroWidthJoiner = '\u200c', '\u200d'
	if r == zeroWidthNonJoiner || r == zeroWidthJoiner {
		return false
	}
	return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

// spell writes a character as a JSON or Go reader would know it.
func spell(r rune) string {
	if r > 0xffff {
		return fmt.Sprintf(`\U%08x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// JSON escapes, inside JSON text, what a terminal might act on, without changing
// what the text means. JSON keeps control characters below U+0020 out of strings,
// but not the others.
func JSON(text string) string {
	var safe strings.Builder
	for _, r := range text {
		switch {
		case r >= 0x7f && r <= 0x9f || isInvisible(r) && r <= 0xffff:
			safe.WriteString(spell(r))
		case isInvisible(r):
			fmt.Fprintf(&safe, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		default:
			safe.WriteRune(r)
		}
	}
	return safe.String()
}
