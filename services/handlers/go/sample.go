package handler

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
)

// SampleRequest is what to sample the client's model with: the parameters of
// `sampling/createMessage`.
type SampleRequest struct {
	// Messages is the conversation so far, at least one message.
	Messages []SampleMessage `json:"messages"`
	// MaxTokens is the most that the model may say.
	MaxTokens int64 `json:"maxTokens"`
	// SystemPrompt may be empty; a client may ignore it.
	SystemPrompt string `json:"systemPrompt,omitempty"`
	// Temperature is nil for the client's default.
	Temperature *float64 `json:"temperature,omitempty"`
	// StopSequences end the model's text where one occurs.
	StopSequences []string `json:"stopSequences,omitempty"`
	// IncludeContext is `none`, `thisServer`, `allServers` or empty.
	IncludeContext string `json:"includeContext,omitempty"`
	// ModelPreferences, Metadata, Tools and ToolChoice are as MCP defines them:
	// JSON, or empty.
	ModelPreferences json.RawMessage `json:"modelPreferences,omitempty"`
	Metadata         json.RawMessage `json:"metadata,omitempty"`
	Tools            json.RawMessage `json:"tools,omitempty"`
	ToolChoice       json.RawMessage `json:"toolChoice,omitempty"`
}

// SampleMessage is one message of a [SampleRequest].
type SampleMessage struct {
	// Role is who says it.
	Role Role `json:"role"`
	// Content is one content block or a list of them: JSON.
	Content json.RawMessage `json:"content"`
}

// SampleText is a message of text.
func SampleText(role Role, text string) SampleMessage {
	// A struct of two strings always has a JSON text.
	content, _ := encodeJSON(struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}{"text", strings.ToValidUTF8(text, "\uFFFD")})
	return SampleMessage{Role: role, Content: content}
}

// Sampled is what the client's model said.
type Sampled struct {
	// Role is who said it.
	Role Role `json:"role"`
	// Model is the name of the model.
	Model string `json:"model"`
	// StopReason is why it stopped; may be empty.
	StopReason string `json:"stopReason,omitempty"`
	// Content is one content block or a list of them: JSON.
	Content json.RawMessage `json:"content"`
	// Raw is the whole result: a JSON object.
	Raw json.RawMessage `json:"-"`
}

// Text is all the text that the model said, one block a line.
func (s Sampled) Text() string {
	type block struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	var blocks []block
	if err := decodeExtensible(s.Content, &blocks); err != nil {
		var single block
		if decodeExtensible(s.Content, &single) != nil {
			return ""
		}
		blocks = []block{single}
	}
	var lines []string
	for _, block := range blocks {
		if block.Type == "text" {
			lines = append(lines, block.Text)
		}
	}
	return strings.Join(lines, "\n")
}

// SampleQuestion samples the client's model; see [Context.Sample].
func SampleQuestion(request SampleRequest, options ...AskOption) *Question[Sampled] {
	return newQuestion("sample", options,
		func(_ *askSettings, question *handlerv1.Question) error {
			params, err := encodeJSON(request)
			if err != nil {
				return fmt.Errorf("encode the parameters of sampling: %w", err)
			}
			question.Kind = &handlerv1.Question_Sample{Sample: &handlerv1.Sample{Params: params}}
			return nil
		},
		func(answer *handlerv1.Answer) (Sampled, error) {
			if answer.GetSampled() == nil {
				return Sampled{}, errors.New("the edge sent an answer of another kind")
			}
			sampled := Sampled{Raw: answer.GetSampled().GetResult()}
			if err := decodeExtensible(sampled.Raw, &sampled); err != nil {
				return Sampled{}, errors.New("the client's sample cannot be read")
			}
			return sampled, nil
		})
}

// Sample asks the client to sample its model. What comes back was made by a model
// and may have been changed by the client: treat it as input. Deprecated by MCP
// 2026-07-28, and answered on every revision that has it.
func (c *Context) Sample(request SampleRequest, options ...AskOption) (Sampled, error) {
	return ask(c, SampleQuestion(request, options...))
}
