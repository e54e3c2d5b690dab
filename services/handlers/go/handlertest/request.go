package handlertest

import (
	"encoding/json"
	"fmt"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
)

// Request is what to ask of the handler service.
type Request func(begin *handlerv1.Begin)

// CallTool calls a tool. The arguments are a [json.RawMessage] with their
// exact text, or a value that becomes a JSON object; nil is `{}`.
func CallTool(name string, arguments any) Request {
	text := encode(arguments)
	return func(begin *handlerv1.Begin) {
		begin.Request = &handlerv1.Begin_CallTool{CallTool: &handlerv1.CallTool{Name: name, Arguments: text}}
	}
}

// GetPrompt renders a prompt.
func GetPrompt(name string, arguments map[string]string) Request {
	return func(begin *handlerv1.Begin) {
		begin.Request = &handlerv1.Begin_GetPrompt{GetPrompt: &handlerv1.GetPrompt{Name: name, Arguments: arguments}}
	}
}

// ReadResource reads a resource that the catalog lists.
func ReadResource(uri string) Request { return ReadTemplated(uri, "") }

// ReadTemplated reads a resource whose URI matches a template of the catalog.
func ReadTemplated(uri, uriTemplate string) Request {
	return func(begin *handlerv1.Begin) {
		begin.Request = &handlerv1.Begin_ReadResource{
			ReadResource: &handlerv1.ReadResource{Uri: uri, UriTemplate: uriTemplate},
		}
	}
}

// encode panics where a test gives something that has no JSON.
func encode(value any) []byte {
	if value == nil {
		return []byte("{}")
	}
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("handlertest: %v", err))
	}
	return text
}
