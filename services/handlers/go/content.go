package handler

import (
	"encoding/json"
	"time"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
)

// Content is one piece of what a tool or a prompt says. Make one with [Text],
// [Image], [Audio], [ResourceLink], [Embed] or [RawContent].
type Content struct {
	block *handlerv1.ContentBlock
}

// Text is a piece of text.
func Text(text string) Content {
	return Content{&handlerv1.ContentBlock{Content: &handlerv1.ContentBlock_Text{
		Text: &handlerv1.TextContent{Text: text},
	}}}
}

// Image is a picture. Pass the picture's own bytes, not base64.
func Image(mimeType string, data []byte) Content {
	return Content{&handlerv1.ContentBlock{Content: &handlerv1.ContentBlock_Image{
		Image: &handlerv1.ImageContent{Data: data, MimeType: mimeType},
	}}}
}

// Audio is a sound. Pass the sound's own bytes, not base64.
func Audio(mimeType string, data []byte) Content {
	return Content{&handlerv1.ContentBlock{Content: &handlerv1.ContentBlock_Audio{
		Audio: &handlerv1.AudioContent{Data: data, MimeType: mimeType},
	}}}
}

// ResourceLink points to a resource that the client may read.
func ResourceLink(link Link) Content {
	message := &handlerv1.ResourceLink{
		Uri: link.URI, Name: link.Name, Title: link.Title, Description: link.Description, MimeType: link.MIMEType,
	}
	if link.Size > 0 {
		message.Size = &link.Size
	}
	return Content{&handlerv1.ContentBlock{Content: &handlerv1.ContentBlock_ResourceLink{ResourceLink: message}}}
}

// Link describes a resource in a [ResourceLink]. URI and Name are required.
type Link struct {
	URI         string
	Name        string
	Title       string
	Description string
	MIMEType    string
	// Size in bytes before any encoding; 0 when unknown.
	Size uint64
}

// Embed is a resource's contents inside a result. The contents need a URI of
// their own; see [Contents.At].
func Embed(contents Contents) Content {
	return Content{&handlerv1.ContentBlock{Content: &handlerv1.ContentBlock_Resource{
		Resource: &handlerv1.EmbeddedResource{Contents: contents.message},
	}}}
}

// RawContent is a content block that this kit does not know: a JSON object as
// exact text, `type` included.
func RawContent(object json.RawMessage) Content {
	return Content{&handlerv1.ContentBlock{Content: &handlerv1.ContentBlock_Raw{Raw: object}}}
}

// Annotate returns the piece with annotations. It does nothing to [RawContent],
// whose annotations are inside it.
func (c Content) Annotate(annotations Annotations) Content {
	if c.block.GetRaw() == nil {
		c.block.Annotations = annotations.message()
	}
	return c
}

// Annotations say for whom something is meant and how important it is.
type Annotations struct {
	// Audience is for whom; empty for everybody.
	Audience []Role
	// Priority goes from 0, optional, to 1, required; nil when unknown.
	Priority *float64
	// LastModified is when it last changed; zero when unknown.
	LastModified time.Time
}

func (a Annotations) message() *handlerv1.Annotations {
	message := &handlerv1.Annotations{Priority: a.Priority}
	for _, role := range a.Audience {
		message.Audience = append(message.Audience, role.message())
	}
	if !a.LastModified.IsZero() {
		message.LastModified = a.LastModified.UTC().Format(time.RFC3339)
	}
	return message
}

// Role is a side of a conversation with a model.
type Role string

// The sides of a conversation.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

func (r Role) message() handlerv1.Role {
	if r == RoleAssistant {
		return handlerv1.Role_ROLE_ASSISTANT
	}
	return handlerv1.Role_ROLE_USER
}

// Message is one message of a rendered prompt. Make one with [User] or
// [Assistant].
type Message struct {
	message *handlerv1.PromptMessage
}

// User is a message that the user says.
func User(content Content) Message {
	return Message{&handlerv1.PromptMessage{Role: handlerv1.Role_ROLE_USER, Content: content.block}}
}

// Assistant is a message that the model says.
func Assistant(content Content) Message {
	return Message{&handlerv1.PromptMessage{Role: handlerv1.Role_ROLE_ASSISTANT, Content: content.block}}
}

// Contents is what one resource holds. Make one with [TextContents] or
// [BlobContents].
type Contents struct {
	message *handlerv1.ResourceContents
}

// TextContents is a resource's text. Its URI is the one that is read.
func TextContents(mimeType, text string) Contents {
	return Contents{&handlerv1.ResourceContents{
		MimeType: mimeType, Body: &handlerv1.ResourceContents_Text{Text: text},
	}}
}

// BlobContents is a resource that is not text. Pass its own bytes, not base64.
// Its URI is the one that is read.
func BlobContents(mimeType string, data []byte) Contents {
	return Contents{&handlerv1.ResourceContents{
		MimeType: mimeType, Body: &handlerv1.ResourceContents_Blob{Blob: data},
	}}
}

// At returns the contents with a URI of their own: for [Embed], and for a read
// that returns several resources.
func (c Contents) At(uri string) Contents {
	c.message.Uri = uri
	return c
}

// Result is a tool's result put together by hand. Return one (as *Result) where
// a text block with the JSON of the output is not what a model should read.
type Result struct {
	// Content is what the model reads.
	Content []Content
	// Structured is the same as JSON; nil when there is none.
	Structured any
	// IsError says that the tool failed. The content then says why, in words that
	// help a model to do better.
	IsError bool
	// Meta is vendor `_meta`: a JSON object, or empty.
	Meta json.RawMessage
}

func (r *Result) message() (*handlerv1.CallToolResult, error) {
	message := &handlerv1.CallToolResult{IsError: r.IsError, Meta: r.Meta}
	for _, content := range r.Content {
		message.Content = append(message.Content, content.block)
	}
	if r.Structured != nil {
		structured, err := encodeJSON(r.Structured)
		if err != nil {
			return nil, err
		}
		message.StructuredContent = structured
	}
	return message, nil
}
