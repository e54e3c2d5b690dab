package main

import (
	"encoding/json"
	"slices"
	"testing"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	"github.com/countersign-mcp/countersign/services/handlers/go/handlertest"
)

// form is the only form that was shown.
func form(t *testing.T, outcome *handlertest.Outcome) *handlerv1.ElicitForm {
	t.Helper()
	if len(outcome.Rounds) != 1 || len(outcome.Rounds[0]) != 1 || outcome.Rounds[0][0].GetElicitForm() == nil {
		t.Fatalf("asked %v", outcome.Rounds)
	}
	return outcome.Rounds[0][0].GetElicitForm()
}

func TestAsksWithTheWordsItIsGiven(t *testing.T) {
	request := handlertest.CallTool("test_elicitation", map[string]string{"message": "Who are you?"})
	outcome := handlertest.Run(t, newServer, request, handlertest.Answers{
		"user": handlertest.Accept(map[string]string{"username": "alice", "email": "alice@example.com"}),
	})
	if message := form(t, outcome).GetMessage(); message != "Who are you?" {
		t.Errorf("asked %q", message)
	}
	if want := "Elicitation completed: action=accept, content={Username:alice Email:alice@example.com}"; outcome.Text() != want {
		t.Errorf("the text is %q, want %q", outcome.Text(), want)
	}
	outcome = handlertest.Run(t, newServer, request, handlertest.Answers{"user": handlertest.Decline()})
	if want := "Elicitation completed: action=decline"; outcome.Text() != want {
		t.Errorf("the text is %q, want %q", outcome.Text(), want)
	}
}

func TestEveryTypeOfFieldHasItsDefault(t *testing.T) {
	outcome := handlertest.Run(t, newServer, handlertest.CallTool("test_elicitation_sep1034_defaults", nil),
		handlertest.Answers{"defaults": handlertest.Accept(json.RawMessage(
			`{"name":"Jane","age":25,"score":88.5,"status":"inactive","verified":false}`))})
	if want := "Elicitation completed: action=accept, content={Name:Jane Age:25 Score:88.5 Status:inactive Verified:false}"; outcome.Text() != want {
		t.Errorf("the text is %q, want %q", outcome.Text(), want)
	}
	var schema struct {
		Properties map[string]struct {
			Type    string   `json:"type"`
			Default any      `json:"default"`
			Enum    []string `json:"enum"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if err := json.Unmarshal(form(t, outcome).GetRequestedSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		fieldType string
		value     any
	}{
		"name": {"string", "John Doe"}, "age": {"integer", 30.0}, "score": {"number", 95.5},
		"status": {"string", "active"}, "verified": {"boolean", true},
	} {
		if got := schema.Properties[name]; got.Type != want.fieldType || got.Default != want.value {
			t.Errorf("the field %q is %+v, want %+v", name, got, want)
		}
	}
	if len(schema.Properties) != 5 || len(schema.Required) != 0 {
		t.Errorf("the fields are %v, of which required %v", schema.Properties, schema.Required)
	}
	if choices := schema.Properties["status"].Enum; !slices.Equal(choices, []string{"active", "inactive", "pending"}) {
		t.Errorf("the choices are %q", choices)
	}
}

func TestShowsEachKindOfChoice(t *testing.T) {
	outcome := handlertest.Run(t, newServer, handlertest.CallTool("test_elicitation_sep1330_enums", nil),
		handlertest.Answers{"choices": handlertest.Accept(json.RawMessage(
			`{"untitledSingle":"option1","titledSingle":"value2","legacyEnum":"opt3",` +
				`"untitledMulti":["option1","option2"],"titledMulti":["value3"]}`))})
	if want := "Elicitation completed: action=accept, content={UntitledSingle:option1 TitledSingle:value2 " +
		"LegacyEnum:opt3 UntitledMulti:[option1 option2] TitledMulti:[value3]}"; outcome.Text() != want {
		t.Errorf("the text is %q, want %q", outcome.Text(), want)
	}
	if schema := string(form(t, outcome).GetRequestedSchema()); schema != choicesSchema {
		t.Errorf("the schema is %s", schema)
	}
}

func TestReportsProgressBeforeItAsks(t *testing.T) {
	outcome := handlertest.Run(t, newServer, handlertest.CallTool("test_streaming_elicitation", nil),
		handlertest.Answers{"user_name": handlertest.Accept(map[string]string{"name": "Alice"})})
	if outcome.Text() != "Hello, Alice!" || len(outcome.Progress) != 1 {
		t.Errorf("reported %v and got %q", outcome.Progress, outcome.Text())
	}
}
