package terminal

import (
	"context"
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign-mcp/countersign/client/ask"
)

// sampling lets the person write what a model would have said.
func (i *Interviewer) sampling(ctx context.Context, sampling *ask.Sampling) (jsontext.Value, error) {
	i.heading("asks for a model's reply. You are the model:", "")
	if sampling.SystemPrompt != "" {
		i.paragraph("system", sampling.SystemPrompt)
	}
	for _, message := range sampling.Messages {
		i.paragraph(message.Role, sampledContent(message.Content))
	}
	if len(sampling.MaxTokens) > 0 {
		i.printf("  At most %s tokens are wanted.\n", Line(string(sampling.MaxTokens)))
	}
	i.printf("  Type the reply and end it with a line that is just a full stop; %s refuses.\n", declineWord)
	var reply []string
	for {
		typed, err := i.prompt(ctx, "> ")
		if _, ok := errors.AsType[*acted](err); ok {
			return nil, ask.ErrDeclined
		}
		if err != nil {
			return nil, err
		}
		if typed == "." {
			return ask.SampledText(strings.Join(reply, "\n")), nil
		}
		reply = append(reply, typed)
	}
}

// paragraph shows a text under who said it.
func (i *Interviewer) paragraph(role, text string) {
	i.printf("  %s:\n", i.bold(Line(role)))
	for line := range strings.SplitSeq(Text(text), "\n") {
		i.printf("    %s\n", line)
	}
}

// sampledContent is the text of a sampling message; what is not text is named.
func sampledContent(content jsontext.Value) string {
	blocks := []jsontext.Value{content}
	if content.Kind() == '[' {
		if json.Unmarshal(content, &blocks) != nil {
			return string(content)
		}
	}
	var texts []string
	for _, block := range blocks {
		var typed struct {
			Type string  `json:"type"`
			Text *string `json:"text"`
		}
		switch {
		case json.Unmarshal(block, &typed) != nil:
			texts = append(texts, string(block))
		case typed.Text != nil:
			texts = append(texts, *typed.Text)
		default:
			texts = append(texts, "["+typed.Type+"]")
		}
	}
	return strings.Join(texts, "\n")
}
