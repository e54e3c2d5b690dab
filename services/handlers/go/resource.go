package handler

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"

	"github.com/yosida95/uritemplate/v3"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
)

type resourceEntry struct {
	message *handlerv1.Resource
	read    func(ctx *Context) (*ReadResult, error)
}

type templateEntry struct {
	message  *handlerv1.ResourceTemplate
	template *uritemplate.Template
	read     func(ctx *Context, uri string) (*ReadResult, error)
	completers
}

// ReadResult is what a resource holds.
type ReadResult struct {
	// Contents has at least one element. A resource that does not exist is
	// [NotFound], never an empty list.
	Contents []Contents
	// Cache says how long a client may keep the contents; nil for what
	// [WithCacheHint] says.
	Cache *CacheHint
	// Meta is vendor `_meta`: a JSON object, or empty.
	Meta json.RawMessage
}

// Read is the result of reading a resource with these contents.
func Read(contents ...Contents) *ReadResult { return &ReadResult{Contents: contents} }

// message fills in the URI that was read where the contents have none.
func (r *ReadResult) message(uri string) (*handlerv1.ReadResourceResult, error) {
	if r == nil || len(r.Contents) == 0 {
		return nil, errors.New("the resource has no contents: a resource that does not exist is NotFound")
	}
	message := &handlerv1.ReadResourceResult{Meta: r.Meta}
	if r.Cache != nil {
		message.Cache = r.Cache.message()
	}
	for _, contents := range r.Contents {
		if contents.message.GetUri() == "" {
			contents = contents.At(uri)
		}
		message.Contents = append(message.Contents, contents.message)
	}
	return message, nil
}

// Resource offers something that can be read under a URI of its own, and is listed.
// The name identifies it among resources. An error that is not an [*Error] reaches
// the client as an internal error without its text, which is logged.
//
// Resource panics if the registration makes no sense.
func Resource(
	server *Server, uri, name string, read func(ctx *Context) (*ReadResult, error), options ...ResourceOption,
) {
	parsed, err := url.Parse(uri)
	if err != nil || !parsed.IsAbs() {
		panic(fmt.Sprintf("handler: the resource %q is not an absolute URI", uri))
	}
	if name == "" {
		panic(fmt.Sprintf("handler: the resource %q has no name", uri))
	}
	entry := &resourceEntry{message: &handlerv1.Resource{Uri: uri, Name: name}, read: read}
	for _, option := range options {
		if err := option.applyToResource(entry); err != nil {
			panic(fmt.Sprintf("handler: register the resource %q: %v", uri, err))
		}
	}
	server.register(&server.resources, "resource", uri, entry)
}

// ResourceTemplate offers a family of resources whose URIs match an RFC 6570
// template, for example `orders://{id}`. Vars is a struct whose fields are the
// template's variables by their json tags: strings, or numbers and booleans that
// are parsed. A URI whose variable cannot be parsed is not found.
//
// ResourceTemplate panics if the registration makes no sense, for example if a
// variable has no field.
func ResourceTemplate[Vars any](
	server *Server, uriTemplate, name string, read func(ctx *Context, vars Vars) (*ReadResult, error),
	options ...TemplateOption,
) {
	template, err := uritemplate.New(uriTemplate)
	if err != nil {
		panic(fmt.Sprintf("handler: the resource template %q is not an RFC 6570 template", uriTemplate))
	}
	if name == "" {
		panic(fmt.Sprintf("handler: the resource template %q has no name", uriTemplate))
	}
	if err := checkVariables(reflect.TypeFor[Vars](), template); err != nil {
		panic(fmt.Sprintf("handler: register the resource template %q: %v", uriTemplate, err))
	}
	entry := &templateEntry{
		message:  &handlerv1.ResourceTemplate{UriTemplate: uriTemplate, Name: name},
		template: template,
		read: func(ctx *Context, uri string) (*ReadResult, error) {
			matched := template.Match(uri)
			if matched == nil {
				return nil, NotFound()
			}
			values := make(map[string]string)
			for _, variable := range template.Varnames() {
				values[variable] = matched.Get(variable).String()
			}
			var vars Vars
			if err := bind(&vars, values); err != nil {
				return nil, NotFound()
			}
			return read(ctx, vars)
		},
	}
	for _, option := range options {
		if err := option.applyToTemplate(entry); err != nil {
			panic(fmt.Sprintf("handler: register the resource template %q: %v", uriTemplate, err))
		}
	}
	for variable := range entry.completers {
		if !slices.Contains(template.Varnames(), variable) {
			panic(fmt.Sprintf("handler: the resource template %q has no variable %q to complete", uriTemplate, variable))
		}
	}
	server.register(&server.templates, "resource template", uriTemplate, entry)
}

// checkVariables refuses a struct that does not have exactly the template's
// variables.
func checkVariables(of reflect.Type, template *uritemplate.Template) error {
	if err := checkBindable(of); err != nil {
		return err
	}
	var fields []string
	for _, field := range reflect.VisibleFields(of) {
		if name, _, skip := jsonName(field); !skip {
			fields = append(fields, name)
		}
	}
	for _, variable := range template.Varnames() {
		if !slices.Contains(fields, variable) {
			return fmt.Errorf("%s has no field for the variable %q", of, variable)
		}
	}
	for _, field := range fields {
		if !slices.Contains(template.Varnames(), field) {
			return fmt.Errorf("the template has no variable for the field %q of %s", field, of)
		}
	}
	return nil
}
