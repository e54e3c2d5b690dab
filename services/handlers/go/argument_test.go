package handler_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	handler "github.com/countersign-mcp/countersign/services/handlers/go"
	"github.com/countersign-mcp/countersign/services/handlers/go/handlertest"
)

type line struct {
	Count int8 `json:"count" title:"Count" minimum:"1"`
}

type search struct {
	Words  string          `json:"words" jsonschema:"What to look for." title:"Words" minLength:"1" maxLength:"50"`
	Order  string          `json:"order,omitempty" enum:"newest,oldest" enumTitles:"Newest first," default:"newest"`
	Limit  *int            `json:"limit,omitempty" minimum:"1" maximum:"100" default:"20"`
	Tags   []string        `json:"tags,omitempty" enum:"new,used" maxItems:"2" default:"new,used"`
	ID     string          `json:"id,omitempty" format:"uuid" bson:"_id" form:"id" validate:"uuid" db:"id"`
	Lines  []line          `json:"lines,omitempty" minItems:"1"`
	ByName map[string]line `json:"byName,omitempty"`
}

func echoSearch(_ *handler.Context, in search) (search, error) { return in, nil }

func TestTagsSayInArgumentsWhatTheySayInForms(t *testing.T) {
	got := string(describe(t, serverWith(echoSearch)()).GetTools()[0].GetInputSchema())
	inside := `{"type":"object","properties":{"count":{"type":"integer","title":"Count","minimum":1,"maximum":127}},` +
		`"required":["count"],"additionalProperties":false}`
	want := `{"type":"object","properties":{` +
		`"words":{"type":"string","title":"Words","description":"What to look for.","minLength":1,"maxLength":50},` +
		`"order":{"type":"string","default":"newest","oneOf":[{"const":"newest","title":"Newest first"},{"const":"oldest","title":"oldest"}]},` +
		`"limit":{"type":["null","integer"],"default":20,"minimum":1,"maximum":100},` +
		`"tags":{"type":"array","default":["new","used"],"maxItems":2,"items":{"type":"string","enum":["new","used"]}},` +
		`"id":{"type":"string","format":"uuid"},` +
		`"lines":{"type":"array","minItems":1,"items":` + inside + `},` +
		`"byName":{"type":"object","additionalProperties":` + inside + `}},` +
		`"required":["words"],"additionalProperties":false}`
	if !sameJSON(t, got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAnArgumentThatIsLeftOutHasItsDefault(t *testing.T) {
	for arguments, want := range map[string]string{
		`{"words":"tea"}`: `{"words":"tea","order":"newest","limit":20,"tags":["new","used"]}`,
		`{"words":"tea","order":"oldest","limit":1,"tags":["used"]}`: `{"words":"tea","order":"oldest","limit":1,"tags":["used"]}`,
		`{"words":"tea","limit":null,"tags":[]}`:                     `{"words":"tea","order":"newest"}`,
	} {
		if got := callTool(t, serverWith(echoSearch), json.RawMessage(arguments)).Structured(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestArgumentsThatAnEdgeWouldRefuseFailTheRun(t *testing.T) {
	for _, arguments := range []string{`{"wrods":"tea"}`, `{}`, `{"words":""}`, `{"words":"tea","limit":0}`, `{"words":"tea","tags":["old"]}`} {
		_, err := handlertest.Check(t.Context(), serverWith(echoSearch),
			handlertest.CallTool("tool", json.RawMessage(arguments)), nil)
		if err == nil || !strings.Contains(err.Error(), "the arguments do not fit the input schema of \"tool\"") {
			t.Errorf("%s: got %v", arguments, err)
		}
	}
}

// registered is the panic of registering a tool whose arguments are a T.
func registered[T any]() (message string) {
	defer func() { message = fmt.Sprint(recover()) }()
	handler.Tool(handler.NewServer("test"), "tool",
		func(*handler.Context, T) (string, error) { return "", nil }, handler.Description("A tool."))
	return ""
}

func TestTagsThatWouldDoNothingAreRefusedAtRegistration(t *testing.T) {
	for problem, got := range map[string]string{
		`A: the tag "formt" does nothing: is it "format"?`: registered[struct {
			A string `formt:"email"`
		}](),
		`the tag "minlength" does nothing: is it "minLength"?`: registered[struct {
			A string `minlength:"1"`
		}](),
		`the tag "jsno" does nothing: is it "json"?`: registered[struct {
			A string `jsno:"a"`
		}](),
		`the tag "pattern" does nothing: no tag says this`: registered[struct {
			A string `pattern:"x"`
		}](),
		`the tag "required" does nothing: a field is required unless`: registered[struct {
			A struct {
				B []struct {
					C string `required:"true"`
				}
			}
		}](),
		"the lower bound is above the upper one": registered[struct {
			A int8 `minimum:"128"`
		}](),
		"only strings and lists of strings have choices": registered[struct {
			A int `enum:"1,2"`
		}](),
		`format "mail"`: registered[struct {
			A string `format:"mail"`
		}](),
		`default "3": not a value`: registered[struct {
			A int `maximum:"2" default:"3"`
		}](),
		`the argument "A" has a default inside`: registered[struct {
			A []struct {
				B int `default:"1"`
			}
		}](),
	} {
		if !strings.Contains(got, problem) {
			t.Errorf("got %q, want %q", got, problem)
		}
	}
}

func TestATagOfAPromptIsCheckedToo(t *testing.T) {
	defer func() {
		if message := fmt.Sprint(recover()); !strings.Contains(message, `the tag "titel" does nothing`) {
			t.Errorf("the panic is %q", message)
		}
	}()
	handler.Prompt[struct {
		A string `titel:"A"`
	}](handler.NewServer("test"), "prompt", nil, handler.Description("A prompt."))
}
