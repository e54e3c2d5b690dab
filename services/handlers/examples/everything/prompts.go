package main

import (
	"context"
	"fmt"
	"strings"

	handler "github.com/countersign-mcp/countersign/services/handlers/go"
)

// registerPrompts adds the prompts that need no answer.
func registerPrompts(server *handler.Server) {
	handler.Prompt(server, "test_simple_prompt", simplePrompt,
		handler.Description("A prompt of one message."))
	handler.Prompt(server, "test_prompt_with_arguments", promptWithArguments,
		handler.Description("A prompt that repeats its two arguments."),
		handler.Complete("arg1", suggestFirst))
	handler.Prompt(server, "test_prompt_with_embedded_resource", promptWithResource,
		handler.Description("A prompt that holds a resource."))
	handler.Prompt(server, "test_prompt_with_image", promptWithImage,
		handler.Description("A prompt that holds a picture."))
}

func simplePrompt(*handler.Context, none) ([]handler.Message, error) {
	return []handler.Message{handler.User(handler.Text("This is a simple prompt for testing."))}, nil
}

type twoArguments struct {
	First  string `json:"arg1" jsonschema:"The first argument. It can be completed."`
	Second string `json:"arg2" jsonschema:"The second argument."`
}

func promptWithArguments(_ *handler.Context, in twoArguments) ([]handler.Message, error) {
	text := fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", in.First, in.Second)
	return []handler.Message{handler.User(handler.Text(text))}, nil
}

// suggestFirst completes what has been typed of the first argument.
func suggestFirst(_ context.Context, request handler.CompletionRequest) (handler.Suggestions, error) {
	var suggestions handler.Suggestions
	for _, value := range []string{"paragraph", "test", "testValue1", "testimony"} {
		if strings.HasPrefix(value, request.Value) {
			suggestions.Values = append(suggestions.Values, value)
		}
	}
	return suggestions, nil
}

type resourceArgument struct {
	URI string `json:"resourceUri" jsonschema:"The URI that the resource in the prompt gets."`
}

func promptWithResource(_ *handler.Context, in resourceArgument) ([]handler.Message, error) {
	return []handler.Message{
		handler.User(handler.Embed(handler.TextContents("text/plain", "Embedded resource content for testing.").At(in.URI))),
		handler.User(handler.Text("Please process the embedded resource above.")),
	}, nil
}

func promptWithImage(*handler.Context, none) ([]handler.Message, error) {
	return []handler.Message{
		handler.User(redPixel()),
		handler.User(handler.Text("Please analyze the image above.")),
	}, nil
}
