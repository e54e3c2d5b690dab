package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign-mcp/countersign/client/terminal"
)

// entry is a tool, a prompt, a resource or a resource template of a list.
type entry struct {
	Name        string `json:"name"`
	Title       string `json:"title"`
	Description string `json:"description"`
	URI         string `json:"uri"`
	URITemplate string `json:"uriTemplate"`
	MimeType    string `json:"mimeType"`
	Arguments   []struct {
		Name     string `json:"name"`
		Required bool   `json:"required"`
	} `json:"arguments"`
	InputSchema struct {
		Properties map[string]jsontext.Value `json:"properties"`
		Required   []string                  `json:"required"`
	} `json:"inputSchema"`
	Annotations struct {
		ReadOnly    bool `json:"readOnlyHint"`
		Destructive bool `json:"destructiveHint"`
	} `json:"annotations"`
}

// List shows the entries of one kind as a table: `tools`, `prompts`, `resources`
// or `templates`. An argument that is required has a star.
func (p *Printer) List(kind string, entries []jsontext.Value) error {
	rows := [][]string{header(kind)}
	for _, text := range entries {
		var listed entry
		if err := json.Unmarshal(text, &listed); err != nil {
			return fmt.Errorf("read an entry of %s: %w", kind, err)
		}
		rows = append(rows, listed.row(kind))
	}
	if len(entries) == 0 {
		p.Linef("no %s", kind)
		return nil
	}
	return p.table(rows)
}

// header names the columns.
func header(kind string) []string {
	switch kind {
	case "tools":
		return []string{"TOOL", "ARGUMENTS", "HINT", "DESCRIPTION"}
	case "prompts":
		return []string{"PROMPT", "ARGUMENTS", "DESCRIPTION"}
	case "resources":
		return []string{"RESOURCE", "TYPE", "NAME", "DESCRIPTION"}
	default:
		return []string{"TEMPLATE", "TYPE", "NAME", "DESCRIPTION"}
	}
}

// row is the entry in those columns.
func (e *entry) row(kind string) []string {
	description := e.Description
	if description == "" {
		description = e.Title
	}
	switch kind {
	case "tools":
		return []string{e.Name, e.toolArguments(), e.hint(), description}
	case "prompts":
		var names []string
		for _, argument := range e.Arguments {
			names = append(names, starred(argument.Name, argument.Required))
		}
		return []string{e.Name, strings.Join(names, " "), description}
	case "resources":
		return []string{e.URI, e.MimeType, e.Name, description}
	default:
		return []string{e.URITemplate, e.MimeType, e.Name, description}
	}
}

// toolArguments are the names of a tool's arguments.
func (e *entry) toolArguments() string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(e.InputSchema.Properties)) {
		names = append(names, starred(name, slices.Contains(e.InputSchema.Required, name)))
	}
	return strings.Join(names, " ")
}

// starred marks what is required.
func starred(name string, required bool) string {
	if required {
		return name + "*"
	}
	return name
}

// hint is what a tool says that it does to the world.
func (e *entry) hint() string {
	switch {
	case e.Annotations.ReadOnly:
		return "read-only"
	case e.Annotations.Destructive:
		return "destructive"
	default:
		return ""
	}
}

// table aligns rows and cuts lines to the width.
func (p *Printer) table(rows [][]string) error {
	var aligned strings.Builder
	columns := tabwriter.NewWriter(&aligned, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i := range row {
			row[i] = firstLine(row[i])
		}
		if _, err := fmt.Fprintln(columns, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	if err := columns.Flush(); err != nil {
		return err
	}
	for line := range strings.SplitSeq(strings.TrimRight(aligned.String(), "\n"), "\n") {
		p.printf("%s\n", cut(strings.TrimRight(line, " "), p.Width))
	}
	return nil
}

// firstLine is the first line of a server's text.
func firstLine(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return terminal.Line(first)
}

// cut shortens a line to a number of columns; zero is any number.
func cut(line string, width int) string {
	if width <= 0 || utf8.RuneCountInString(line) <= width {
		return line
	}
	runes := []rune(line)
	return string(runes[:width-1]) + "…"
}
