package handler

import (
	"encoding/json"
	"errors"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
)

// ToolOption changes a tool.
type ToolOption interface {
	applyToTool(entry *toolEntry) error
}

// PromptOption changes a prompt.
type PromptOption interface {
	applyToPrompt(entry *promptEntry) error
}

// ResourceOption changes a resource.
type ResourceOption interface {
	applyToResource(entry *resourceEntry) error
}

// TemplateOption changes a resource template.
type TemplateOption interface {
	applyToTemplate(entry *templateEntry) error
}

// Option changes an entry of any kind.
type Option interface {
	ToolOption
	PromptOption
	ResourceOption
	TemplateOption
}

// ReadOption changes a resource or a resource template.
type ReadOption interface {
	ResourceOption
	TemplateOption
}

// CompletionOption changes an entry whose arguments can be completed.
type CompletionOption interface {
	PromptOption
	TemplateOption
}

type descriptionOption string

// Description says what the entry is for, to the model or user that chooses it.
// Tools and prompts must have one.
func Description(text string) Option { return descriptionOption(text) }

func (o descriptionOption) applyToTool(entry *toolEntry) error {
	entry.message.Description = string(o)
	return nil
}

func (o descriptionOption) applyToPrompt(entry *promptEntry) error {
	entry.message.Description = string(o)
	return nil
}

func (o descriptionOption) applyToResource(entry *resourceEntry) error {
	entry.message.Description = string(o)
	return nil
}

func (o descriptionOption) applyToTemplate(entry *templateEntry) error {
	entry.message.Description = string(o)
	return nil
}

type titleOption string

// Title is the entry's name for display.
func Title(text string) Option { return titleOption(text) }

func (o titleOption) applyToTool(entry *toolEntry) error {
	entry.message.Title = string(o)
	return nil
}

func (o titleOption) applyToPrompt(entry *promptEntry) error {
	entry.message.Title = string(o)
	return nil
}

func (o titleOption) applyToResource(entry *resourceEntry) error {
	entry.message.Title = string(o)
	return nil
}

func (o titleOption) applyToTemplate(entry *templateEntry) error {
	entry.message.Title = string(o)
	return nil
}

// Icon is a picture for display.
type Icon struct {
	// Source is an https: or data: URI.
	Source   string
	MIMEType string
	// Sizes are such as `48x48`, or `any`.
	Sizes []string
	// Theme is the background it is for: `light`, `dark` or empty.
	Theme string
}

type iconsOption []Icon

// Icons sets the entry's pictures.
func Icons(icons ...Icon) Option { return iconsOption(icons) }

func (o iconsOption) messages() []*handlerv1.Icon {
	messages := make([]*handlerv1.Icon, 0, len(o))
	for _, icon := range o {
		messages = append(messages, &handlerv1.Icon{
			Src: icon.Source, MimeType: icon.MIMEType, Sizes: icon.Sizes, Theme: icon.Theme,
		})
	}
	return messages
}

func (o iconsOption) applyToTool(entry *toolEntry) error {
	entry.message.Icons = o.messages()
	return nil
}

func (o iconsOption) applyToPrompt(entry *promptEntry) error {
	entry.message.Icons = o.messages()
	return nil
}

func (o iconsOption) applyToResource(entry *resourceEntry) error {
	entry.message.Icons = o.messages()
	return nil
}

func (o iconsOption) applyToTemplate(entry *templateEntry) error {
	entry.message.Icons = o.messages()
	return nil
}

type metaOption json.RawMessage

// Meta sets the entry's vendor `_meta`: a JSON object.
func Meta(object json.RawMessage) Option { return metaOption(object) }

func (o metaOption) check() error {
	if !isJSONObject(o) {
		return errors.New("the `_meta` must be a JSON object")
	}
	return nil
}

func (o metaOption) applyToTool(entry *toolEntry) error {
	entry.message.Meta = o
	return o.check()
}

func (o metaOption) applyToPrompt(entry *promptEntry) error {
	entry.message.Meta = o
	return o.check()
}

func (o metaOption) applyToResource(entry *resourceEntry) error {
	entry.message.Meta = o
	return o.check()
}

func (o metaOption) applyToTemplate(entry *templateEntry) error {
	entry.message.Meta = o
	return o.check()
}

type mimeTypeOption string

// MIMEType is the media type of what is read.
func MIMEType(mimeType string) ReadOption { return mimeTypeOption(mimeType) }

func (o mimeTypeOption) applyToResource(entry *resourceEntry) error {
	entry.message.MimeType = string(o)
	return nil
}

func (o mimeTypeOption) applyToTemplate(entry *templateEntry) error {
	entry.message.MimeType = string(o)
	return nil
}

type annotationsOption Annotations

// Annotated says for whom a resource is meant and how important it is.
func Annotated(annotations Annotations) ReadOption { return annotationsOption(annotations) }

func (o annotationsOption) applyToResource(entry *resourceEntry) error {
	entry.message.Annotations = Annotations(o).message()
	return nil
}

func (o annotationsOption) applyToTemplate(entry *templateEntry) error {
	entry.message.Annotations = Annotations(o).message()
	return nil
}
