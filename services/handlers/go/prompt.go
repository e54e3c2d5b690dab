package handler

import (
	"fmt"
	"reflect"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
)

type promptEntry struct {
	message *handlerv1.Prompt
	render  func(ctx *Context, arguments map[string]string) ([]Message, error)
	completers
}

// Prompt offers a template of messages that a user may pick.
//
// In is a struct whose fields are the arguments: names from the json tags,
// descriptions from the jsonschema tags, names for display from the title tags,
// optional with omitempty or omitzero. The client sends strings; a field may also
// be a number or a boolean that is parsed from one.
//
// An error of the function that is not an [*Error] reaches the client as an
// internal error without its text, which is logged.
//
// Prompt panics if the registration makes no sense.
func Prompt[In any](
	server *Server, name string, render func(ctx *Context, in In) ([]Message, error), options ...PromptOption,
) {
	arguments := reflect.TypeFor[In]()
	if name == "" {
		panic("handler: a prompt has no name")
	}
	if err := checkBindable(arguments); err != nil {
		panic(fmt.Sprintf("handler: register the prompt %q: %v", name, err))
	}
	entry := &promptEntry{
		message: &handlerv1.Prompt{Name: name, Arguments: promptArguments(arguments)},
		render: func(ctx *Context, values map[string]string) ([]Message, error) {
			var in In
			if err := bind(&in, values); err != nil {
				return nil, InvalidParams("the argument %v", err)
			}
			return render(ctx, in)
		},
	}
	for _, option := range options {
		if err := option.applyToPrompt(entry); err != nil {
			panic(fmt.Sprintf("handler: register the prompt %q: %v", name, err))
		}
	}
	if entry.message.GetDescription() == "" {
		panic(fmt.Sprintf("handler: the prompt %q has no description", name))
	}
	for argument := range entry.completers {
		if !hasArgument(entry.message, argument) {
			panic(fmt.Sprintf("handler: the prompt %q has no argument %q to complete", name, argument))
		}
	}
	server.register(&server.prompts, "prompt", name, entry)
}

func promptArguments(of reflect.Type) []*handlerv1.PromptArgument {
	var arguments []*handlerv1.PromptArgument
	for _, field := range reflect.VisibleFields(of) {
		name, optional, skip := jsonName(field)
		if skip {
			continue
		}
		arguments = append(arguments, &handlerv1.PromptArgument{
			Name: name, Title: field.Tag.Get("title"), Description: field.Tag.Get("jsonschema"), Required: !optional,
		})
	}
	return arguments
}

func hasArgument(prompt *handlerv1.Prompt, name string) bool {
	for _, argument := range prompt.GetArguments() {
		if argument.GetName() == name {
			return true
		}
	}
	return false
}
