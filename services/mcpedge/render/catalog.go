package render

import (
	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
)

// Tool returns a Tool as an element of the result of `tools/list`.
func Tool(tool *handlerv1.Tool) ([]byte, error) {
	o := newObject(nil)
	o.string("name", tool.GetName())
	o.optional("title", tool.GetTitle())
	o.optional("description", tool.GetDescription())
	o.raw("inputSchema", tool.GetInputSchema(), '{')
	o.raw("outputSchema", tool.GetOutputSchema(), '{')
	if annotations := tool.GetAnnotations(); annotations != nil {
		o.member("annotations", func(dst []byte) ([]byte, error) {
			a := newObject(dst)
			a.optional("title", annotations.GetTitle())
			a.hint("readOnlyHint", annotations.ReadOnlyHint)
			a.hint("destructiveHint", annotations.DestructiveHint)
			a.hint("idempotentHint", annotations.IdempotentHint)
			a.hint("openWorldHint", annotations.OpenWorldHint)
			return a.close()
		})
	}
	o.icons(tool.GetIcons())
	o.raw("_meta", tool.GetMeta(), '{')
	return o.close()
}

// Prompt returns a Prompt as an element of the result of `prompts/list`.
func Prompt(prompt *handlerv1.Prompt) ([]byte, error) {
	o := newObject(nil)
	o.string("name", prompt.GetName())
	o.optional("title", prompt.GetTitle())
	o.optional("description", prompt.GetDescription())
	if arguments := prompt.GetArguments(); len(arguments) > 0 {
		o.array("arguments", len(arguments), func(i int) {
			o.append(func(dst []byte) ([]byte, error) {
				a := newObject(dst)
				a.string("name", arguments[i].GetName())
				a.optional("title", arguments[i].GetTitle())
				a.optional("description", arguments[i].GetDescription())
				a.bool("required", arguments[i].GetRequired())
				return a.close()
			})
		})
	}
	o.icons(prompt.GetIcons())
	o.raw("_meta", prompt.GetMeta(), '{')
	return o.close()
}

// Resource returns a Resource as an element of the result of `resources/list`.
func Resource(resource *handlerv1.Resource) ([]byte, error) {
	o := newObject(nil)
	o.string("uri", resource.GetUri())
	o.string("name", resource.GetName())
	o.optional("title", resource.GetTitle())
	o.optional("description", resource.GetDescription())
	o.optional("mimeType", resource.GetMimeType())
	if resource.Size != nil {
		o.uint("size", resource.GetSize())
	}
	o.annotations(resource.GetAnnotations())
	o.icons(resource.GetIcons())
	o.raw("_meta", resource.GetMeta(), '{')
	return o.close()
}

// ResourceTemplate returns a ResourceTemplate as an element of the result of
// `resources/templates/list`.
func ResourceTemplate(template *handlerv1.ResourceTemplate) ([]byte, error) {
	o := newObject(nil)
	o.string("uriTemplate", template.GetUriTemplate())
	o.string("name", template.GetName())
	o.optional("title", template.GetTitle())
	o.optional("description", template.GetDescription())
	o.optional("mimeType", template.GetMimeType())
	o.annotations(template.GetAnnotations())
	o.icons(template.GetIcons())
	o.raw("_meta", template.GetMeta(), '{')
	return o.close()
}
