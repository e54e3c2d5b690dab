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

// commonFields are those that entries of every kind have.
type commonFields struct {
	title, description *string
	icons              *[]*handlerv1.Icon
	meta               *[]byte
}

func (e *toolEntry) common() commonFields {
	return commonFields{&e.message.Title, &e.message.Description, &e.message.Icons, &e.message.Meta}
}

func (e *promptEntry) common() commonFields {
	return commonFields{&e.message.Title, &e.message.Description, &e.message.Icons, &e.message.Meta}
}

func (e *resourceEntry) common() commonFields {
	return commonFields{&e.message.Title, &e.message.Description, &e.message.Icons, &e.message.Meta}
}

func (e *templateEntry) common() commonFields {
	return commonFields{&e.message.Title, &e.message.Description, &e.message.Icons, &e.message.Meta}
}

type commonOption func(commonFields) error

func (o commonOption) applyToTool(entry *toolEntry) error         { return o(entry.common()) }
func (o commonOption) applyToPrompt(entry *promptEntry) error     { return o(entry.common()) }
func (o commonOption) applyToResource(entry *resourceEntry) error { return o(entry.common()) }
func (o commonOption) applyToTemplate(entry *templateEntry) error { return o(entry.common()) }

// Description says what the entry is for, to the model or user that chooses it.
// Tools and prompts must have one.
func Description(text string) Option {
	return commonOption(func(fields commonFields) error {
		*fields.description = text
		return nil
	})
}

// Title is the entry's name for display.
func Title(text string) Option {
	return commonOption(func(fields commonFields) error {
		*fields.title = text
		return nil
	})
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

// Icons sets the entry's pictures.
func Icons(icons ...Icon) Option {
	return commonOption(func(fields commonFields) error {
		for _, icon := range icons {
			*fields.icons = append(*fields.icons, &handlerv1.Icon{
				Src: icon.Source, MimeType: icon.MIMEType, Sizes: icon.Sizes, Theme: icon.Theme,
			})
		}
		return nil
	})
}

// Meta sets the entry's vendor `_meta`: a JSON object.
func Meta(object json.RawMessage) Option {
	return commonOption(func(fields commonFields) error {
		if !isJSONObject(object) {
			return errors.New("the `_meta` must be a JSON object")
		}
		*fields.meta = object
		return nil
	})
}

type readOption func(mimeType *string, annotations **handlerv1.Annotations)

func (o readOption) applyToResource(entry *resourceEntry) error {
	o(&entry.message.MimeType, &entry.message.Annotations)
	return nil
}

func (o readOption) applyToTemplate(entry *templateEntry) error {
	o(&entry.message.MimeType, &entry.message.Annotations)
	return nil
}

// MIMEType is the media type of what is read.
func MIMEType(mimeType string) ReadOption {
	return readOption(func(target *string, _ **handlerv1.Annotations) { *target = mimeType })
}

// Annotated says for whom a resource is meant and how important it is.
func Annotated(annotations Annotations) ReadOption {
	return readOption(func(_ *string, target **handlerv1.Annotations) { *target = annotations.message() })
}
