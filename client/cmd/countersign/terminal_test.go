package main

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"
)

// watchedBuffer is a buffer that says when a text has been written to it.
type watchedBuffer struct {
	until   string
	reached func()

	mu   sync.Mutex
	text bytes.Buffer
}

// Write keeps the text.
func (b *watchedBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, err := b.text.Write(text)
	if b.reached != nil && strings.Contains(b.text.String(), b.until) {
		b.reached()
	}
	return n, err
}

// String is all that was written.
func (b *watchedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// person sits at a pseudo-terminal and types each line when its prompt shows.
type person struct {
	screen chan string
}

// typing starts a person who answers prompts in order: what to wait for, then what
// to type.
func typing(t *testing.T, prompts ...[2]string) (terminal *os.File, result func() string) {
	t.Helper()
	master, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(master, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	who := person{screen: make(chan string, 1)}
	go who.sit(master, prompts)
	return terminal, func() string {
		_ = terminal.Close() // the person sees the end of the terminal and leaves
		screen := <-who.screen
		_ = master.Close()
		return screen
	}
}

// sit reads the screen and types.
func (p *person) sit(master *os.File, prompts [][2]string) {
	var screen, unseen strings.Builder
	chunk := make([]byte, 1024)
	for {
		n, err := master.Read(chunk)
		screen.Write(chunk[:n])
		unseen.Write(chunk[:n])
		for len(prompts) > 0 && strings.Contains(unseen.String(), prompts[0][0]) {
			_, rest, _ := strings.Cut(unseen.String(), prompts[0][0])
			unseen.Reset()
			unseen.WriteString(rest)
			_, _ = master.WriteString(prompts[0][1]) // a terminal that is gone ends the reading
			prompts = prompts[1:]
		}
		if err != nil {
			p.screen <- screen.String()
			return
		}
	}
}

func TestAsksAreAnsweredAtTheTerminal(t *testing.T) {
	url := official(t)
	for name, test := range map[string]struct {
		prompts [][2]string
		want    string
	}{
		"answered":  {[][2]string{{"item", "2\n"}, {"[y/n/c]", "y\n"}}, "refunded the plate\n"},
		"declined":  {[][2]string{{"item", "1\n"}, {"[y/n/c]", "n\n"}}, "kept the cup\n"},
		"cancelled": {[][2]string{{"(one number): ", ":cancel\n"}}, "nothing refunded\n"},
		"closed":    {[][2]string{{"(one number): ", "\x04"}}, "nothing refunded\n"},
	} {
		t.Run(name, func(t *testing.T) {
			terminal, screen := typing(t, test.prompts...)
			var out bytes.Buffer
			code := run(t.Context(), []string{"--url", url, "call", "refund", "order=7", "cents=1"}, console{in: terminal, out: &out, err: terminal})
			shown := screen()
			if code != exitOK || out.String() != test.want {
				t.Errorf("exit code %d with %q, want %q; the screen:\n%s", code, out.String(), test.want, shown)
			}
			if !strings.Contains(shown, "Which item?") || !strings.Contains(shown, "127.0.0.1:") {
				t.Errorf("the screen does not show who asks what:\n%s", shown)
			}
		})
	}
}

func TestAServerCannotControlTheTerminal(t *testing.T) {
	const hostile = `\u001b]0;owned\u0007\u009b2J`
	server := called(t, asks("k", `"a":{"type":"string","title":"`+hostile+`"}`, `"s"`), result(`{"content":[{"type":"text","text":"`+hostile+`"}],"n":"`+"\u009b"+`2J"}`))
	for _, arguments := range [][]string{{"call", "t"}, {"--json", "call", "t"}} {
		terminal, screen := typing(t, [2]string{"(optional): ", "x\n"})
		t.Setenv("NO_COLOR", "1")
		code := run(t.Context(), append([]string{"--url", server.url}, arguments...), console{in: terminal, out: terminal, err: terminal})
		shown := screen()
		if code != exitOK || strings.ContainsAny(shown, "\x1b\a\u009b") {
			t.Errorf("%v: exit code %d and the screen %q", arguments, code, shown)
		}
	}
}
