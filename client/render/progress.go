package render

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign-mcp/countersign/client/terminal"
)

// Progress shows how far a request is: as one line that is drawn again on a
// terminal, as a line each time elsewhere.
type Progress struct {
	// Out is where it is shown.
	Out io.Writer
	// Live says that Out is a terminal.
	Live bool
	// Width is how many columns the terminal has.
	Width int

	drawn bool
}

// Show shows the parameters of a progress notification. One that cannot be read
// is passed over: it decides nothing.
func (p *Progress) Show(params jsontext.Value) {
	var progress struct {
		Progress jsontext.Value `json:"progress"`
		Total    jsontext.Value `json:"total"`
		Message  string         `json:"message"`
	}
	if json.Unmarshal(params, &progress) != nil || progress.Progress.Kind() != '0' {
		return
	}
	text := string(progress.Progress)
	if progress.Total.Kind() == '0' {
		text += "/" + string(progress.Total)
	}
	if progress.Message != "" {
		text += " " + terminal.Line(progress.Message)
	}
	if !p.Live {
		p.printf("progress %s\n", text)
		return
	}
	p.printf("\r\x1b[K%s", cut(bar(progress.Progress, progress.Total)+text, p.Width-1))
	p.drawn = true
}

// Clear takes the line away, so that something else can be shown.
func (p *Progress) Clear() {
	if p.drawn {
		p.printf("\r\x1b[K")
		p.drawn = false
	}
}

// printf writes. Progress that cannot be shown is no reason to fail a request.
func (p *Progress) printf(format string, arguments ...any) {
	_, _ = fmt.Fprintf(p.Out, format, arguments...) // see above
}

// bar draws how much of the total is done, or nothing where there is no total.
func bar(progress, total jsontext.Value) string {
	const cells = 20
	done, err := strconv.ParseFloat(string(progress), 64)
	if err != nil {
		return ""
	}
	all, err := strconv.ParseFloat(string(total), 64)
	if err != nil || all <= 0 {
		return ""
	}
	full := int(min(max(done/all, 0), 1) * cells)
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", cells-full) + "] "
}
