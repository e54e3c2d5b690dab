package main

import (
	"encoding/json"
	"fmt"

	handler "github.com/countersign-mcp/countersign/services/handlers/go"
)

// registerForms adds the tools whose point is what a form can hold and when it is
// shown.
func registerForms(server *handler.Server) {
	handler.Tool(server, "test_elicitation", askForContact,
		handler.Description("Asks for a user name and an email address with the words it is given."))
	handler.Tool(server, "test_elicitation_sep1034_defaults", askWithDefaults,
		handler.Description("Asks with a form that has a default for each type of field."))
	handler.Tool(server, "test_elicitation_sep1330_enums", askForChoices,
		handler.Description("Asks with a form that has each kind of choice."))
	handler.Tool(server, "test_streaming_elicitation", askAfterProgress,
		handler.Description("Reports progress and then asks for a name."))
}

type messageInput struct {
	Message string `json:"message" jsonschema:"What to say above the form."`
}

type userForm struct {
	Username string `json:"username" title:"User name" jsonschema:"The name of the account."`
	Email    string `json:"email" title:"Email" jsonschema:"Where to write to." format:"email"`
}

func askForContact(ctx *handler.Context, in messageInput) (string, error) {
	answer, err := handler.Elicit[userForm](ctx, in.Message, handler.Key("user"))
	if err != nil {
		return "", err
	}
	return describeAnswer(answer), nil
}

type defaultsForm struct {
	Name     string  `json:"name,omitempty" title:"Name" default:"John Doe"`
	Age      int     `json:"age,omitempty" title:"Age" default:"30"`
	Score    float64 `json:"score,omitempty" title:"Score" default:"95.5"`
	Status   string  `json:"status,omitempty" title:"Status" enum:"active,inactive,pending" default:"active"`
	Verified bool    `json:"verified,omitempty" title:"Verified" default:"true"`
}

func askWithDefaults(ctx *handler.Context, _ none) (string, error) {
	answer, err := handler.Elicit[defaultsForm](ctx, "Is this right?", handler.Key("defaults"))
	if err != nil {
		return "", err
	}
	return describeAnswer(answer), nil
}

// choicesSchema is written by hand for enumNames: older clients know titles only in
// this form, which the kit no longer writes.
const choicesSchema = `{
  "type": "object",
  "properties": {
    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
    "titledSingle": {
      "type": "string",
      "oneOf": [
        {"const": "value1", "title": "First Option"},
        {"const": "value2", "title": "Second Option"},
        {"const": "value3", "title": "Third Option"}
      ]
    },
    "legacyEnum": {
      "type": "string",
      "enum": ["opt1", "opt2", "opt3"],
      "enumNames": ["Option One", "Option Two", "Option Three"]
    },
    "untitledMulti": {
      "type": "array",
      "items": {"type": "string", "enum": ["option1", "option2", "option3"]}
    },
    "titledMulti": {
      "type": "array",
      "items": {
        "anyOf": [
          {"const": "value1", "title": "First Choice"},
          {"const": "value2", "title": "Second Choice"},
          {"const": "value3", "title": "Third Choice"}
        ]
      }
    }
  }
}`

type choicesForm struct {
	UntitledSingle string   `json:"untitledSingle,omitempty"`
	TitledSingle   string   `json:"titledSingle,omitempty"`
	LegacyEnum     string   `json:"legacyEnum,omitempty"`
	UntitledMulti  []string `json:"untitledMulti,omitempty"`
	TitledMulti    []string `json:"titledMulti,omitempty"`
}

func askForChoices(ctx *handler.Context, _ none) (string, error) {
	answer, err := handler.Elicit[choicesForm](ctx, "Which of these?",
		handler.Key("choices"), handler.FormSchema(json.RawMessage(choicesSchema)))
	if err != nil {
		return "", err
	}
	return describeAnswer(answer), nil
}

func askAfterProgress(ctx *handler.Context, input none) (string, error) {
	if err := ctx.Progress(1, 2, "about to ask"); err != nil {
		return "", err
	}
	return greet(ctx, input)
}

// describeAnswer says what the user did, and what is in the form.
func describeAnswer[T any](answer handler.Answer[T]) string {
	if !answer.Accepted() {
		return fmt.Sprintf("Elicitation completed: action=%s", answer.Action)
	}
	return fmt.Sprintf("Elicitation completed: action=%s, content=%+v", answer.Action, answer.Content)
}
