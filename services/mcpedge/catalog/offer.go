package catalog

import (
	"fmt"

	"github.com/yosida95/uritemplate/v3"
	"google.golang.org/protobuf/proto"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	"github.com/countersign-mcp/countersign/services/mcpedge/mirror"
	"github.com/countersign-mcp/countersign/services/mcpedge/render"
	"github.com/countersign-mcp/countersign/services/mcpedge/schema"
)

// offer is what one handler offers, prepared as far as that depends on no other
// handler. It is immutable.
type offer struct {
	Description

	tools                []prepared[*Tool]
	prompts              []prepared[*Prompt]
	resources, templates []prepared[*Resource]

	// inputs and outputs are the schemas it uses, by their exact text.
	inputs, outputs map[string]compiled
}

// prepared is an entry, or why it cannot be used.
type prepared[T any] struct {
	name  string
	entry T
	err   error
}

// compiled is a schema, or why it does not compile.
type compiled struct {
	schema *schema.Schema
	err    error
}

// prepare prepares what a handler described. Schemas that it had before, in the offer
// given, are not compiled again; that may be nil.
func prepare(description Description, before *offer) *offer {
	o := &offer{Description: description, inputs: map[string]compiled{}, outputs: map[string]compiled{}}
	if before == nil {
		before = &offer{}
	}
	for _, tool := range description.Catalog.GetTools() {
		o.tools = append(o.tools, o.tool(tool, before))
	}
	for _, prompt := range description.Catalog.GetPrompts() {
		o.prompts = append(o.prompts, o.prompt(prompt))
	}
	for _, resource := range description.Catalog.GetResources() {
		o.resources = append(o.resources, o.resource(resource))
	}
	for _, template := range description.Catalog.GetResourceTemplates() {
		o.templates = append(o.templates, o.template(template))
	}
	return o
}

func (o *offer) tool(offered *handlerv1.Tool, before *offer) prepared[*Tool] {
	tool := offered
	if prefix := o.Handler.Prefix; prefix != "" {
		tool = proto.CloneOf(offered)
		tool.Name = prefix + offered.GetName()
	}
	input, err := compile(tool.GetInputSchema(), compileInput, before.inputs, o.inputs)
	var mirrored []mirror.Param
	if err == nil {
		mirrored, err = mirror.Params(tool.GetInputSchema())
	}
	var output *schema.Schema
	if err == nil && len(tool.GetOutputSchema()) > 0 {
		output, err = compile(tool.GetOutputSchema(), compileOutput, before.outputs, o.outputs)
	}
	if err == nil && !validToolName(tool.GetName()) {
		err = errToolName
	}
	text, renderErr := render.Tool(tool)
	if err == nil {
		err = renderErr
	}
	return checked(tool.GetName(), &Tool{
		Entry:      o.entry(tool.GetName(), offered.GetName(), text),
		Input:      input,
		Output:     output,
		Repeatable: tool.GetAnnotations().GetReadOnlyHint() || tool.GetAnnotations().GetIdempotentHint(),
		Mirrored:   mirrored,
		// MCP's default for destructiveHint is true; only what the author said counts.
		AsksMustBeShown: tool.GetAsksMustBeShown() || tool.GetAnnotations().GetDestructiveHint(),
	}, err)
}

// compile compiles a schema unless it was before, and keeps it.
func compile(text []byte, with func([]byte) (*schema.Schema, error), before, now map[string]compiled) (*schema.Schema, error) {
	key := string(text)
	result, known := now[key]
	if !known {
		result, known = before[key]
	}
	if !known {
		result.schema, result.err = with(text)
	}
	now[key] = result
	return result.schema, result.err
}

func (o *offer) prompt(offered *handlerv1.Prompt) prepared[*Prompt] {
	prompt := offered
	if prefix := o.Handler.Prefix; prefix != "" {
		prompt = proto.CloneOf(offered)
		prompt.Name = prefix + offered.GetName()
	}
	text, err := render.Prompt(prompt)
	if err == nil && offered.GetName() == "" {
		err = errNoName
	}
	return checked(prompt.GetName(), &Prompt{Entry: o.entry(prompt.GetName(), offered.GetName(), text), Arguments: prompt.GetArguments()}, err)
}

func (o *offer) resource(resource *handlerv1.Resource) prepared[*Resource] {
	text, err := render.Resource(resource)
	if err == nil && (resource.GetUri() == "" || resource.GetName() == "") {
		err = errNoName
	}
	return checked(resource.GetUri(), &Resource{Entry: o.entry(resource.GetUri(), resource.GetUri(), text), Cache: o.Catalog.GetCache()}, err)
}

func (o *offer) template(template *handlerv1.ResourceTemplate) prepared[*Resource] {
	text, err := render.ResourceTemplate(template)
	parsed, parseErr := uritemplate.New(template.GetUriTemplate())
	switch {
	case err != nil:
	case template.GetUriTemplate() == "" || template.GetName() == "":
		err = errNoName
	case parseErr != nil:
		err = fmt.Errorf("read the URI template: %w", parseErr)
	}
	return checked(template.GetUriTemplate(), &Resource{
		Entry:    o.entry(template.GetUriTemplate(), template.GetUriTemplate(), text),
		Cache:    o.Catalog.GetCache(),
		template: parsed,
	}, err)
}

func (o *offer) entry(name, own string, text []byte) Entry {
	return Entry{Name: name, Own: own, Handler: o.Handler, Revision: o.Catalog.GetRevision(), JSON: text}
}

// checked is an entry whose name is checked as well.
func checked[T any](name string, entry T, err error) prepared[T] {
	if err == nil && len(name) > MaxNameBytes {
		err = errLong
	}
	return prepared[T]{name: name, entry: entry, err: err}
}
