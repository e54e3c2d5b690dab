package ask_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign-mcp/countersign/client/ask"
)

// formOf parses one form with the given properties.
func formOf(t *testing.T, schema string) *ask.Form {
	t.Helper()
	asks, err := ask.Parse(jsontext.Value(`{"k":{"method":"elicitation/create","params":{"message":"m","requestedSchema":` + schema + `}}}`))
	if err != nil {
		t.Fatal(err)
	}
	return asks[0].Form
}

// everyKind has a property of every kind the revision allows, and one it does not.
const everyKind = `{"type":"object","required":["email","size"],"properties":{
	"email":{"type":"string","title":"Email","description":"Where to write","format":"email","maxLength":30},
	"age":{"type":"integer","minimum":18,"maximum":9007199254740993},
	"weight":{"type":"number","default":1.50},
	"news":{"type":"boolean","default":true},
	"size":{"type":"string","enum":["S","M"],"enumNames":["Small","Medium"]},
	"color":{"type":"string","oneOf":[{"const":"#f00","title":"Red"},{"const":"#0f0","title":"Green"}]},
	"tags":{"type":"array","maxItems":2,"items":{"type":"string","enum":["new","used","rare"]}},
	"tones":{"type":"array","items":{"anyOf":[{"const":"a","title":"Low"},{"const":"b","title":"High"}]}},
	"place":{"type":"object"}}}`

func TestAsksKeepTheirOrderAndKinds(t *testing.T) {
	asks, err := ask.Parse(jsontext.Value(`{
		"z":{"method":"roots/list"},
		"a":{"method":"sampling/createMessage","params":{"maxTokens":100,"systemPrompt":"s","messages":[{"role":"user","content":{"type":"text","text":"hi"}}]}},
		"m":{"method":"elicitation/create","params":{"mode":"url","message":"go","url":"https://example.com/"}},
		"b":{"method":"elicitation/create","params":{"mode":"form","message":"fill","requestedSchema":{"type":"object","properties":{}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, one := range asks {
		keys = append(keys, one.Key)
	}
	if !slices.Equal(keys, []string{"z", "a", "m", "b"}) {
		t.Errorf("the order is %q, want the server's", keys)
	}
	if !asks[0].Roots || asks[1].Sampling == nil || asks[2].Link == nil || asks[3].Form == nil {
		t.Errorf("kinds are wrong: %+v", asks)
	}
}

func TestAnAskThatCannotBeReadIsAnError(t *testing.T) {
	for name, text := range map[string]string{
		"unknown method":    `{"k":{"method":"tools/call"}}`,
		"unknown mode":      `{"k":{"method":"elicitation/create","params":{"mode":"voice","message":"m"}}}`,
		"no URL":            `{"k":{"method":"elicitation/create","params":{"mode":"url","message":"m"}}}`,
		"a null schema":     `{"k":{"method":"elicitation/create","params":{"message":"m","requestedSchema":null}}}`,
		"an invalid schema": `{"k":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":7}}}}`,
		"a list":            `[]`,
	} {
		if _, err := ask.Parse(jsontext.Value(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestASchemaLoadsNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(path, []byte(`{"type":"string"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, reference := range []string{"file://" + path, "http://127.0.0.1:1/schema", "other.json"} {
		_, err := ask.Parse(jsontext.Value(`{"k":{"method":"elicitation/create","params":{"message":"m","requestedSchema":
			{"type":"object","properties":{"a":{"type":"string"},"b":{"$ref":"` + reference + `"}}}}}}`))
		if err == nil || !strings.Contains(err.Error(), "nothing is loaded") {
			t.Errorf("%s: got %v, want a refusal", reference, err)
		}
	}
}

func TestFieldsAreReadInOrderWithTheirKinds(t *testing.T) {
	form := formOf(t, everyKind)
	want := []struct {
		name string
		kind ask.Kind
	}{
		{"email", ask.Text},
		{"age", ask.Integer},
		{"weight", ask.Number},
		{"news", ask.Boolean},
		{"size", ask.OneOf},
		{"color", ask.OneOf},
		{"tags", ask.SomeOf},
		{"tones", ask.SomeOf},
		{"place", ask.JSON},
	}
	if len(form.Fields) != len(want) {
		t.Fatalf("%d fields, want %d", len(form.Fields), len(want))
	}
	for i, field := range form.Fields {
		if field.Name != want[i].name || field.Kind != want[i].kind {
			t.Errorf("field %d is %s of kind %d, want %s of kind %d", i, field.Name, field.Kind, want[i].name, want[i].kind)
		}
	}
	if !form.Fields[0].Required || form.Fields[1].Required {
		t.Error("required fields are wrong")
	}
	if form.Fields[1].Limits != "from 18 to 9007199254740993" {
		t.Errorf("limits are %q", form.Fields[1].Limits)
	}
}

func TestTypedTextBecomesAValueOfTheField(t *testing.T) {
	form := formOf(t, everyKind)
	field := map[string]*ask.Field{}
	for _, one := range form.Fields {
		field[one.Name] = one
	}
	for _, test := range []struct{ name, typed, want string }{
		{"email", "a@example.com", `"a@example.com"`},
		{"email", "not an address", ""},
		{"email", "averyveryverylongname@example.com", ""},
		{"age", "42", "42"},
		{"age", " 18 ", "18"},
		{"age", "9007199254740993", "9007199254740993"},
		{"age", "9007199254740994", ""},
		{"age", "17", ""},
		{"age", "18.5", ""},
		{"age", "0x20", ""},
		{"age", "", ""},
		{"weight", "1.10", "1.10"},
		{"weight", "heavy", ""},
		{"news", "Y", "true"},
		{"news", "no", "false"},
		{"news", "maybe", ""},
		{"size", "2", `"M"`},
		{"size", "S", `"S"`},
		{"size", "medium", `"M"`},
		{"size", "3", ""},
		{"size", "0", ""},
		{"color", "green", `"#0f0"`},
		{"tags", "1, 3,1", `["new","rare"]`},
		{"tags", "none", `[]`},
		{"tags", "1,2,3", ""},
		{"tags", "4", ""},
		{"tones", "High", `["b"]`},
		{"place", `{"x":1.0}`, `{"x":1.0}`},
		{"place", `7`, ""},
		{"place", `{`, ""},
	} {
		value, err := field[test.name].Parse(test.typed)
		if test.want == "" {
			if err == nil {
				t.Errorf("%s: %q became %s, want an error", test.name, test.typed, value)
			}
			continue
		}
		if err != nil || string(value) != test.want {
			t.Errorf("%s: %q became %s (%v), want %s", test.name, test.typed, value, err, test.want)
		}
	}
}

func TestScriptedAnswers(t *testing.T) {
	parse := func(text string) ask.Ask {
		asks, err := ask.Parse(jsontext.Value(`{"k":` + text + `}`))
		if err != nil {
			t.Fatal(err)
		}
		return asks[0]
	}
	form := parse(`{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}}}`)
	withDefault := parse(`{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","required":["n"],"properties":{"n":{"type":"integer","default":3}}}}}`)
	action := parse(`{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"action":{"type":"string"},"n":{"type":"integer"}}}}}`)
	link := parse(`{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://example.com"}}`)
	sampling := parse(`{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`)
	for name, test := range map[string]struct {
		asked       ask.Ask
		given, want string
	}{
		"content":                       {form, `{"n":9007199254740993}`, `{"action":"accept","content":{"n":9007199254740993}}`},
		"a whole response":              {form, `{"action":"accept","content":{"n":1}}`, `{"action":"accept","content":{"n":1}}`},
		"a decline":                     {form, "decline", `{"action":"decline"}`},
		"a cancel as JSON":              {form, `"cancel"`, `{"action":"cancel"}`},
		"a whole decline":               {form, `{"action":"decline"}`, `{"action":"decline"}`},
		"content that does not fit":     {form, `{"n":"x"}`, ""},
		"a response that does not fit":  {form, `{"action":"accept","content":{}}`, ""},
		"a response without content":    {form, `{"action":"accept"}`, ""},
		"an accept without defaults":    {form, "accept", ""},
		"an accept with defaults":       {withDefault, "accept", `{"action":"accept","content":{"n":3}}`},
		"content with an action member": {action, `{"action":"accept","n":1}`, `{"action":"accept","content":{"action":"accept","n":1}}`},
		"no JSON":                       {form, "yes", ""},
		"no object":                     {form, "1", ""},
		"a link's accept":               {link, "accept", `{"action":"accept"}`},
		"a link's content":              {link, `{"n":1}`, ""},
		"a reply":                       {sampling, `"Paris"`, `{"role":"assistant","content":{"type":"text","text":"Paris"},"model":"human","stopReason":"endTurn"}`},
		"a whole reply":                 {sampling, `{"role":"assistant","model":"m","content":[]}`, `{"role":"assistant","model":"m","content":[]}`},
		"a declined reply":              {sampling, "decline", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := test.asked.Scripted(test.given)
			if test.want == "" && err == nil {
				t.Errorf("got %s, want an error", got)
			}
			if test.want != "" && (err != nil || string(got) != test.want) {
				t.Errorf("got %s (%v), want %s", got, err, test.want)
			}
		})
	}
}

func TestTheExampleOfAnAskAnswersIt(t *testing.T) {
	for name, text := range map[string]string{
		"one field":   `{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"ok":{"type":"boolean"}}}}}`,
		"some fields": `{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","required":["a","b","c"],"properties":{"a":{"type":"string","enum":["x"]},"b":{"type":"array","items":{"type":"string","enum":["y"]}},"c":{"type":"number"},"d":{"type":"string"}}}}}`,
		"no fields":   `{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}`,
		"a link":      `{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://example.com"}}`,
		"sampling":    `{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`,
	} {
		asks, err := ask.Parse(jsontext.Value(`{"k":` + text + `}`))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := asks[0].Scripted(asks[0].Example()); err != nil {
			t.Errorf("%s: the example %s is refused: %v", name, asks[0].Example(), err)
		}
	}
}
