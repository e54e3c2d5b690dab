package render

import (
	"encoding/base64"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign-mcp/countersign/client/terminal"
)

// block is a content block of any type.
type block struct {
	Type        string    `json:"type"`
	Text        *string   `json:"text"`
	Data        string    `json:"data"`
	MimeType    string    `json:"mimeType"`
	URI         string    `json:"uri"`
	Name        string    `json:"name"`
	Title       string    `json:"title"`
	Description string    `json:"description"`
	Resource    *contents `json:"resource"`
}

// contents is what one resource holds.
type contents struct {
	URI      string  `json:"uri"`
	MimeType string  `json:"mimeType"`
	Text     *string `json:"text"`
	Blob     *string `json:"blob"`
}

// ToolResult shows the result of a tool.
func (p *Printer) ToolResult(result jsontext.Value) error {
	var called struct {
		Content           []jsontext.Value `json:"content"`
		StructuredContent jsontext.Value   `json:"structuredContent"`
	}
	if err := json.Unmarshal(result, &called); err != nil {
		return fmt.Errorf("read the tool's result: %w", err)
	}
	for _, content := range called.Content {
		if len(called.StructuredContent) > 0 && repeats(content, called.StructuredContent) {
			continue
		}
		if err := p.block(content); err != nil {
			return err
		}
	}
	if len(called.StructuredContent) > 0 {
		p.pretty(called.StructuredContent)
	}
	return nil
}

// repeats says whether a block is the structured content once more, as text, which
// servers send for older clients.
func repeats(content, structured jsontext.Value) bool {
	var text block
	if json.Unmarshal(content, &text) != nil || text.Type != "text" || text.Text == nil {
		return false
	}
	asText, asStructure := jsontext.Value(*text.Text), structured.Clone()
	if !asText.IsValid() {
		return false
	}
	// Numbers keep their text: two that differ only as text are two.
	return canonical(asText) == canonical(asStructure)
}

// canonical writes JSON with sorted members and no spaces.
func canonical(value jsontext.Value) string {
	sorted := value.Clone()
	err := sorted.Format(jsontext.ReorderRawObjects(true), jsontext.PreserveRawStrings(false))
	if err != nil {
		return string(value)
	}
	return string(sorted)
}

// PromptResult shows the messages of a prompt.
func (p *Printer) PromptResult(result jsontext.Value) error {
	var got struct {
		Description string `json:"description"`
		Messages    []struct {
			Role    string         `json:"role"`
			Content jsontext.Value `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(result, &got); err != nil {
		return fmt.Errorf("read the prompt: %w", err)
	}
	if got.Description != "" {
		p.text(got.Description)
		p.printf("\n")
	}
	for _, message := range got.Messages {
		p.Linef("%s:", message.Role)
		if err := p.block(message.Content); err != nil {
			return err
		}
	}
	return nil
}

// ResourceResult shows the contents of a resource.
func (p *Printer) ResourceResult(result jsontext.Value) error {
	var read struct {
		Contents []contents `json:"contents"`
	}
	if err := json.Unmarshal(result, &read); err != nil {
		return fmt.Errorf("read the resource: %w", err)
	}
	for _, content := range read.Contents {
		if len(read.Contents) > 1 {
			p.Linef("%s:", content.URI)
		}
		if err := p.contents(content); err != nil {
			return err
		}
	}
	return nil
}

// block shows one content block.
func (p *Printer) block(content jsontext.Value) error {
	var shown block
	if err := json.Unmarshal(content, &shown); err != nil {
		return fmt.Errorf("read a content block: %w", err)
	}
	switch {
	case shown.Type == "text" && shown.Text != nil:
		p.text(*shown.Text)
	case shown.Type == "image" || shown.Type == "audio":
		return p.binary(shown.Type, shown.MimeType, shown.Data)
	case shown.Type == "resource_link":
		name := shown.Title
		if name == "" {
			name = shown.Name
		}
		p.Linef("%s <%s> %s", name, shown.URI, shown.MimeType)
		if shown.Description != "" {
			p.text(shown.Description)
		}
	case shown.Type == "resource" && shown.Resource != nil:
		p.Linef("%s:", shown.Resource.URI)
		return p.contents(*shown.Resource)
	default:
		p.pretty(content)
	}
	return nil
}

// contents shows what a resource holds. With a folder it is saved there too, since
// only the file has every byte as it was.
func (p *Printer) contents(content contents) error {
	if content.Blob != nil {
		return p.binary("resource", content.MimeType, *content.Blob)
	}
	if content.Text == nil {
		return nil
	}
	p.text(*content.Text)
	if p.Folder == nil {
		return nil
	}
	return p.save("resource", content.MimeType, []byte(*content.Text))
}

// binary saves content that is not text, or sums it up.
func (p *Printer) binary(what, mimeType, encoded string) error {
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return fmt.Errorf("decode the %s: %w", what, err)
	}
	if p.Folder == nil {
		p.printf("[%s, %s, %s; --output FOLDER saves it]\n", what, terminal.Line(mimeType), size(len(data)))
		return nil
	}
	return p.save(what, mimeType, data)
}

// save writes a file and says where.
func (p *Printer) save(what, mimeType string, data []byte) error {
	path, err := p.Folder.Save(what, mimeType, data)
	if err != nil {
		return err
	}
	p.printf("[%s, %s, %s, saved as %s]\n", what, terminal.Line(mimeType), size(len(data)), path)
	return nil
}

// size is a number of bytes for people.
func size(bytes int) string {
	switch {
	case bytes < 1000:
		return fmt.Sprintf("%d B", bytes)
	case bytes < 1000*1000:
		return fmt.Sprintf("%.1f kB", float64(bytes)/1000)
	default:
		return fmt.Sprintf("%.1f MB", float64(bytes)/1000/1000)
	}
}
