// Package render shows results to people: text as text, tables for lists, pictures
// saved as files or summed up in a line, progress as a bar.
//
// Everything a server wrote goes through the package terminal on its way out, so
// that reading a result cannot do more than reading. What people see is therefore
// not always what was sent, byte for byte; who needs that asks for JSON or for
// files.
package render

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign-mcp/countersign/client/terminal"
)

// Printer shows results. Errors of writing are kept for Flush.
type Printer struct {
	// Folder is where binary content goes; nil sums it up instead.
	Folder *Folder
	// Width is how many columns a table may have; zero is any number.
	Width int

	out *bufio.Writer
}

// NewPrinter shows results on out.
func NewPrinter(out io.Writer) *Printer {
	return &Printer{out: bufio.NewWriter(out)}
}

// Flush writes what is not yet written and returns the first error of writing.
func (p *Printer) Flush() error {
	return p.out.Flush()
}

// JSON shows a JSON text exactly. Safe escapes inside its strings what a terminal
// might act on.
func (p *Printer) JSON(value jsontext.Value, safe bool) {
	text := string(value)
	if safe {
		text = terminal.JSON(text)
	}
	p.printf("%s\n", text)
}

// Linef shows a line of this program's own words; the arguments may be a server's.
func (p *Printer) Linef(format string, arguments ...any) {
	p.printf("%s\n", terminal.Line(fmt.Sprintf(format, arguments...)))
}

// printf writes; see Flush for errors.
func (p *Printer) printf(format string, arguments ...any) {
	_, _ = fmt.Fprintf(p.out, format, arguments...) // bufio keeps the first error for Flush
}

// text shows a server's text.
func (p *Printer) text(text string) {
	p.printf("%s\n", strings.TrimRight(terminal.Text(text), "\n"))
}

// pretty shows JSON with indentation and its numbers as they came.
func (p *Printer) pretty(value jsontext.Value) {
	indented := value.Clone()
	if err := indented.Indent(jsontext.WithIndent("  ")); err != nil {
		p.text(string(value))
		return
	}
	p.text(string(indented))
}

// Completion shows the values of a completion result.
func (p *Printer) Completion(result jsontext.Value) error {
	var completed struct {
		Completion struct {
			Values  []string       `json:"values"`
			Total   jsontext.Value `json:"total"`
			HasMore bool           `json:"hasMore"`
		} `json:"completion"`
	}
	if err := json.Unmarshal(result, &completed); err != nil {
		return fmt.Errorf("read the completion: %w", err)
	}
	for _, value := range completed.Completion.Values {
		p.Linef("%s", value)
	}
	switch {
	case completed.Completion.HasMore && len(completed.Completion.Total) > 0:
		p.Linef("(%d of %s)", len(completed.Completion.Values), completed.Completion.Total)
	case completed.Completion.HasMore:
		p.Linef("(and more)")
	}
	return nil
}

// Discovery shows what a server says about itself.
func (p *Printer) Discovery(result jsontext.Value) error {
	var discovered struct {
		SupportedVersions []string       `json:"supportedVersions"`
		Capabilities      jsontext.Value `json:"capabilities"`
		Instructions      string         `json:"instructions"`
		Meta              struct {
			Server struct {
				Name    string `json:"name"`
				Title   string `json:"title"`
				Version string `json:"version"`
			} `json:"io.modelcontextprotocol/serverInfo"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(result, &discovered); err != nil {
		return fmt.Errorf("read what the server says about itself: %w", err)
	}
	if server := discovered.Meta.Server; server.Name != "" {
		p.Linef("server        %s %s", server.Name, server.Version)
	}
	p.Linef("revisions     %s", strings.Join(discovered.SupportedVersions, ", "))
	p.Linef("capabilities  %s", discovered.Capabilities)
	if discovered.Instructions != "" {
		p.printf("\n")
		p.text(discovered.Instructions)
	}
	return nil
}
