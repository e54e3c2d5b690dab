package main

import (
	"slices"
	"strings"
	"testing"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	"github.com/countersign-mcp/countersign/services/handlers/go/handlertest"
)

func TestRendersPrompts(t *testing.T) {
	for _, test := range []struct {
		prompt    string
		arguments map[string]string
		holds     func(first *handlerv1.ContentBlock) bool
		messages  int
	}{
		{
			"test_simple_prompt", nil,
			func(first *handlerv1.ContentBlock) bool {
				return first.GetText().GetText() == "This is a simple prompt for testing."
			}, 1,
		},
		{
			"test_prompt_with_arguments",
			map[string]string{"arg1": "testValue1", "arg2": "testValue2"},
			func(first *handlerv1.ContentBlock) bool {
				text := first.GetText().GetText()
				return strings.Contains(text, "testValue1") && strings.Contains(text, "testValue2")
			}, 1,
		},
		{
			"test_prompt_with_embedded_resource",
			map[string]string{"resourceUri": "test://example-resource"},
			func(first *handlerv1.ContentBlock) bool {
				return first.GetResource().GetContents().GetUri() == "test://example-resource"
			}, 2,
		},
		{
			"test_prompt_with_image", nil,
			func(first *handlerv1.ContentBlock) bool { return first.GetImage().GetMimeType() == "image/png" }, 2,
		},
	} {
		t.Run(test.prompt, func(t *testing.T) {
			outcome := handlertest.Run(t, newServer, handlertest.GetPrompt(test.prompt, test.arguments), nil)
			messages := outcome.Finish.GetGetPrompt().GetMessages()
			if len(messages) != test.messages || !test.holds(messages[0].GetContent()) {
				t.Errorf("rendered %v", messages)
			}
		})
	}
}

func TestCompletesTheFirstArgument(t *testing.T) {
	client := handlertest.Serve(t, newServer())
	for typed, want := range map[string][]string{
		"":      {"paragraph", "test", "testValue1", "testimony"},
		"testV": {"testValue1"},
		"x":     nil,
	} {
		response, err := client.Complete(t.Context(), &handlerv1.CompleteRequest{
			Reference:    &handlerv1.CompleteRequest_PromptName{PromptName: "test_prompt_with_arguments"},
			ArgumentName: "arg1", ArgumentValue: typed,
		})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(response.GetValues(), want) {
			t.Errorf("%q is completed to %q, want %q", typed, response.GetValues(), want)
		}
	}
}
