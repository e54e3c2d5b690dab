package handler_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	handler "github.com/countersign-mcp/countersign/services/handlers/go"
	"github.com/countersign-mcp/countersign/services/handlers/go/handlertest"
)

type none struct{}

func TestAConfirmationIsAcceptedOnlyWithTheBoxTicked(t *testing.T) {
	newServer := serverWith(func(ctx *handler.Context, _ none) (string, error) {
		action, err := ctx.Confirm("Sure?", handler.Key("sure"))
		return string(action), err
	})
	for want, answer := range map[string]handlertest.Answer{
		"accept":  handlertest.Confirm(),
		"decline": handlertest.Decline(),
		"cancel":  handlertest.Cancel(),
	} {
		outcome := handlertest.Run(t, newServer, handlertest.CallTool("tool", nil), handlertest.Answers{"sure": answer})
		if outcome.Text() != want || outcome.Attempts != 2 {
			t.Errorf("got %q in %d attempts, want %q", outcome.Text(), outcome.Attempts, want)
		}
	}
	unticked := handlertest.Run(t, newServer, handlertest.CallTool("tool", nil),
		handlertest.Answers{"sure": handlertest.Accept(map[string]bool{"confirm": false})})
	if unticked.Text() != "decline" {
		t.Errorf("an unticked box is %q", unticked.Text())
	}
	schema := string(unticked.Rounds[0][0].GetElicitForm().GetRequestedSchema())
	if want := `{"type":"object","properties":{"confirm":{"type":"boolean","title":"Confirm"}},"required":["confirm"]}`; schema != want {
		t.Errorf("the form is %s", schema)
	}
}

func TestDerivedKeysAreReadableAndCountEqualQuestions(t *testing.T) {
	newServer := serverWith(func(ctx *handler.Context, _ none) (string, error) {
		for _, question := range []string{"One?", "Two?", "One?"} {
			if _, err := ctx.Confirm(question); err != nil {
				return "", err
			}
		}
		_, err := ctx.ElicitURL("Go", "https://example.com/")
		return "done", err
	})
	outcome := handlertest.Run(t, newServer, handlertest.CallTool("tool", nil),
		handlertest.AnswerFunc(func(question *handlerv1.Question) (handlertest.Answer, error) {
			if question.GetElicitUrl() != nil {
				return handlertest.Accept(nil), nil
			}
			return handlertest.Confirm(), nil
		}))
	keys := outcome.Keys()
	// The digits are part of the contract between replicas of different builds.
	want := []string{"confirm-c834f2e7", "confirm-ecb58576", "confirm-c834f2e7-2", "url-41317da8"}
	if !slices.Equal(keys, want) {
		t.Errorf("the keys are %q, want %q", keys, want)
	}
	if !regexp.MustCompile(`^confirm-[0-9a-f]{8}$`).MatchString(keys[0]) {
		t.Errorf("the key %q is not of the documented form", keys[0])
	}
}

func TestTheSpellingOfASchemaDoesNotChangeTheKey(t *testing.T) {
	keyOf := func(schema string) string {
		outcome := handlertest.Run(t, serverWith(func(ctx *handler.Context, _ none) (string, error) {
			answer, err := handler.Elicit[json.RawMessage](ctx, "Q", handler.FormSchema(json.RawMessage(schema)))
			return string(answer.Action), err
		}), handlertest.CallTool("tool", nil), handlertest.Always(handlertest.Decline()))
		return outcome.Keys()[0]
	}
	one := keyOf(`{"type":"object","properties":{"a":{"type":"integer","maximum":9007199254740993}}}`)
	if two := keyOf(`{ "properties":{"a":{"maximum":9007199254740993,"type":"integer"}}, "type":"object" }`); two != one {
		t.Errorf("the keys are %q and %q", one, two)
	}
	if other := keyOf(`{"type":"object","properties":{"a":{"type":"integer","maximum":9007199254740992}}}`); other == one {
		t.Errorf("two schemas share the key %q", one)
	}
}

// usageErrorOf is what a run says of a function that misuses the kit.
func usageErrorOf(t *testing.T, newServer func() *handler.Server, answers handlertest.Answerer) string {
	t.Helper()
	if _, err := handlertest.Check(t.Context(), newServer, handlertest.CallTool("tool", nil), answers); err != nil {
		return err.Error()
	}
	return "no error"
}

func TestAKeyIsAskedOncePerAttempt(t *testing.T) {
	got := usageErrorOf(t, serverWith(func(ctx *handler.Context, _ none) (string, error) {
		if _, err := ctx.Confirm("Sure?", handler.Key("sure")); err != nil {
			return "", err
		}
		_, err := ctx.Confirm("Really?", handler.Key("sure"))
		if _, isUsage := errors.AsType[*handler.UsageError](err); !isUsage {
			t.Errorf("the error is a %T", err)
		}
		return "the error is kept", nil
	}), handlertest.Always(handlertest.Confirm()))
	if !strings.Contains(got, `the handler has a fault: ask: the key "sure" was asked before`) {
		t.Errorf("got %s", got)
	}
}

func TestAUsageErrorIsForTheLogAndNotForTheModel(t *testing.T) {
	var log strings.Builder
	newServer := func() *handler.Server {
		server := handler.NewServer("test", handler.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		handler.Tool(server, "tool", func(ctx *handler.Context, _ none) (string, error) {
			_, err := handler.Elicit[struct{ Sub struct{} }](ctx, "Fill in")
			return "", fmt.Errorf("ask for the form: %w", err)
		}, handler.Description("Asks for a form that cannot be."))
		return server
	}
	outcome := handlertest.Run(t, newServer, handlertest.CallTool("tool", nil), nil, handlertest.AllowFaults())
	if got := outcome.Err(); got == nil || got.Error() != "internal: the handler failed" {
		t.Errorf("the client is told %v", got)
	}
	for _, want := range []string{
		"level=ERROR", "a function misuses the kit", `target="tool tool"`, "invocation=attempt-1", "Sub cannot be in a form",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("logged %s, want %s in it", log.String(), want)
		}
	}
}

func TestSeveralQuestionsShareOneRound(t *testing.T) {
	newServer := serverWith(func(ctx *handler.Context, _ none) (string, error) {
		confirmed := handler.ConfirmQuestion("Sure?", handler.Key("a"))
		sampled := handler.SampleQuestion(handler.SampleRequest{
			Messages: []handler.SampleMessage{handler.SampleText(handler.RoleUser, "Say \"<hi>\"")}, MaxTokens: 10,
		}, handler.Key("b"))
		roots := handler.RootsQuestion(handler.Key("c"))
		if err := ctx.AskAll(confirmed, sampled, roots); err != nil {
			return "", err
		}
		return fmt.Sprint(confirmed.Answer(), " ", sampled.Answer().Text(), " ", sampled.Answer().Model, " ",
			roots.Answer()[0].URI), nil
	})
	outcome := handlertest.Run(t, newServer, handlertest.CallTool("tool", nil), handlertest.Answers{
		"a": handlertest.Confirm(), "b": handlertest.Sampled("hi"), "c": handlertest.Roots("file:///r"),
	})
	if outcome.Text() != "accept hi model-1 file:///r" || len(outcome.Rounds) != 1 || outcome.Attempts != 2 {
		t.Errorf("got %q in %d rounds and %d attempts", outcome.Text(), len(outcome.Rounds), outcome.Attempts)
	}
	params := string(outcome.Rounds[0][1].GetSample().GetParams())
	want := `{"messages":[{"role":"user","content":{"type":"text","text":"Say \"<hi>\""}}],"maxTokens":10}`
	if params != want {
		t.Errorf("the parameters are %s", params)
	}
}

func TestTheTextOfASampleIsThatOfAllItsBlocks(t *testing.T) {
	sampled := handler.Sampled{Content: json.RawMessage(
		`[{"type":"text","text":"one"},{"type":"image","data":"","mimeType":"image/png"},{"type":"text","text":"two"}]`)}
	if sampled.Text() != "one\ntwo" {
		t.Errorf("the text is %q", sampled.Text())
	}
}

func TestAnAnswerThatWasNotGivenPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("it did not panic")
		}
	}()
	handler.RootsQuestion().Answer()
}

func TestARefusedAskIsAnErrorThatTheFunctionMayHandle(t *testing.T) {
	refuse := handlertest.Answers{"sure": handlertest.Refuse(
		handlerv1.AskRefusedReason_ASK_REFUSED_REASON_STATE_TOO_LARGE, "store less")}
	handled := handlertest.Run(t, serverWith(func(ctx *handler.Context, _ none) (string, error) {
		_, err := ctx.Confirm("Sure?", handler.Key("sure"))
		if refused, ok := errors.AsType[*handler.AskRefusedError](err); ok && refused.Reason == handler.StateTooLarge {
			return "went on: " + refused.Message, nil
		}
		return "", err
	}), handlertest.CallTool("tool", nil), refuse)
	if handled.Text() != "went on: store less" || handled.Attempts != 1 {
		t.Errorf("got %q in %d attempts", handled.Text(), handled.Attempts)
	}
	returned := handlertest.Run(t, serverWith(func(ctx *handler.Context, _ none) (string, error) {
		_, err := ctx.Confirm("Sure?", handler.Key("sure"))
		return "", err
	}), handlertest.CallTool("tool", nil), refuse)
	got := returned.Finish.GetError()
	if got.GetKind() != handlerv1.ErrorKind_ERROR_KIND_INTERNAL ||
		got.GetMessage() != "the question was refused (state too large): store less" {
		t.Errorf("got %v", returned.Finish)
	}
}

func TestAnswersArriveTypedAndWithTheirDigits(t *testing.T) {
	type form struct {
		Amount int64     `json:"amount"`
		When   time.Time `json:"when"`
		Note   *string   `json:"note"`
	}
	outcome := handlertest.Run(t, serverWith(func(ctx *handler.Context, _ none) (string, error) {
		answer, err := handler.Elicit[form](ctx, "How much?", handler.Key("form"))
		return fmt.Sprint(answer.Content.Amount, answer.Content.When.Year(), answer.Content.Note == nil), err
	}), handlertest.CallTool("tool", nil), handlertest.Answers{
		"form": handlertest.Accept(json.RawMessage(`{"amount":9007199254740993,"when":"2026-07-28T00:00:00Z"}`)),
	})
	if outcome.Text() != "9007199254740993 2026 true" {
		t.Errorf("got %q", outcome.Text())
	}
}

func TestAFormIsInferredFromItsStruct(t *testing.T) {
	type form struct {
		Name   string    `json:"name" title:"Your name" jsonschema:"As in your passport." minLength:"1" maxLength:"50"`
		Mail   string    `json:"mail,omitempty" format:"email"`
		Age    int       `json:"age" minimum:"18" maximum:"120" default:"30"`
		Score  float64   `json:"score" default:"95.5"`
		Agree  *bool     `json:"agree" default:"true"`
		Status string    `json:"status" enum:"active,inactive" default:"active"`
		Size   string    `json:"size" enum:"S,L" enumTitles:"Small,Large"`
		Tags   []string  `json:"tags" enum:"new,used" minItems:"1" maxItems:"2" default:"new"`
		Colors []string  `json:"colors" title:"Colors"`
		When   time.Time `json:"when"`
		Hidden string    `json:"-"`
	}
	outcome := handlertest.Run(t, serverWith(func(ctx *handler.Context, _ none) (string, error) {
		answer, err := handler.Elicit[form](ctx, "Fill in", handler.Key("form"),
			handler.Choices("colors", handler.Choice{Value: "#f00", Title: "Red"}, handler.Choice{Value: "#0f0"}))
		return string(answer.Action), err
	}), handlertest.CallTool("tool", nil), handlertest.Answers{"form": handlertest.Decline()})
	got := string(outcome.Rounds[0][0].GetElicitForm().GetRequestedSchema())
	want := `{"type":"object","properties":{` +
		`"name":{"type":"string","title":"Your name","description":"As in your passport.","minLength":1,"maxLength":50},` +
		`"mail":{"type":"string","format":"email"},` +
		`"age":{"type":"integer","default":30,"minimum":18,"maximum":120},` +
		`"score":{"type":"number","default":95.5},` +
		`"agree":{"type":"boolean","default":true},` +
		`"status":{"type":"string","default":"active","enum":["active","inactive"]},` +
		`"size":{"type":"string","oneOf":[{"const":"S","title":"Small"},{"const":"L","title":"Large"}]},` +
		`"tags":{"type":"array","default":["new"],"minItems":1,"maxItems":2,"items":{"type":"string","enum":["new","used"]}},` +
		`"colors":{"type":"array","title":"Colors","items":{"anyOf":[{"const":"#f00","title":"Red"},{"const":"#0f0","title":"#0f0"}]}},` +
		`"when":{"type":"string","format":"date-time"}},` +
		`"required":["name","age","score","status","size","tags","colors","when"]}`
	if !sameJSON(t, got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if strings.Index(got, `"name"`) > strings.Index(got, `"age"`) {
		t.Error("the fields are not in the struct's order")
	}
}

func sameJSON(t *testing.T, one, two string) bool {
	t.Helper()
	var values [2]any
	for i, text := range []string{one, two} {
		if err := json.Unmarshal([]byte(text), &values[i]); err != nil {
			t.Fatal(err)
		}
	}
	return fmt.Sprint(values[0]) == fmt.Sprint(values[1])
}

// askForm is what a run says of asking for a form of T.
func askForm[T any](t *testing.T, options ...handler.FormOption) string {
	t.Helper()
	return usageErrorOf(t, serverWith(func(ctx *handler.Context, _ none) (string, error) {
		_, err := handler.Elicit[T](ctx, "Fill in", append(options, handler.Key("form"))...)
		return "asked", err
	}), handlertest.Always(handlertest.Decline()))
}

func TestAFormThatMCPDoesNotAllowIsAnErrorThatSaysWhy(t *testing.T) {
	for problem, got := range map[string]string{
		"must be a struct":             askForm[string](t),
		"needs an enum tag or Choices": askForm[struct{ A []string }](t),
		"not map[string]string":        askForm[struct{ A map[string]string }](t),
		"not struct { B int }":         askForm[struct{ A struct{ B int } }](t),
		"not []int":                    askForm[struct{ A []int }](t),
		"only strings and lists of strings": askForm[struct {
			A int `enum:"1,2"`
		}](t),
		"2 choices and 1 titles": askForm[struct {
			A string `enum:"1,2" enumTitles:"One"`
		}](t),
		`format "password"`: askForm[struct {
			A string `format:"password"`
		}](t),
		"minimum does not apply": askForm[struct {
			A string `minimum:"1"`
		}](t),
		`maxLength "-1": not a count`: askForm[struct {
			A string `maxLength:"-1"`
		}](t),
		`minimum "x": not a number`: askForm[struct {
			A int `minimum:"x"`
		}](t),
		`default "x": not a value`: askForm[struct {
			A int `default:"x"`
		}](t),
		`default "c": not a value that`: askForm[struct {
			A string `enum:"a,b" default:"c"`
		}](t),
		"has no field to fill in": askForm[struct{ hidden int }](t),
		"the lower bound is above": askForm[struct {
			A int `minimum:"2" maximum:"1"`
		}](t),
		"A cannot be in a form: the lower bound is above": askForm[struct {
			A string `minLength:"2" maxLength:"1"`
		}](t),
		"Unsigned cannot be in a form: the lower bound is above": askForm[struct {
			Unsigned uint `maximum:"-1"`
		}](t),
		"List cannot be in a form: the lower bound is above": askForm[struct {
			List []string `enum:"a,b" minItems:"2" maxItems:"1"`
		}](t),
		`minimum "NaN": not a number`: askForm[struct {
			A float64 `minimum:"NaN"`
		}](t),
		"enumTitles without enum": askForm[struct {
			A string `enumTitles:"One"`
		}](t),
		`the tag "minLenght" does nothing: is it "minLength"?`: askForm[struct {
			A string `json:"a" minLenght:"2"`
		}](t),
		"has no such field":     askForm[none](t, handler.Choices("a", handler.Choice{Value: "b"})),
		"has no choices":        askForm[none](t, handler.Choices("a")),
		"must be a JSON object": askForm[none](t, handler.FormSchema(json.RawMessage(`1`))),
		"both FormSchema and Choices": askForm[none](t, handler.FormSchema(json.RawMessage(`{}`)),
			handler.Choices("a", handler.Choice{Value: "b"})),
	} {
		if !strings.Contains(got, problem) {
			t.Errorf("got %q, want %q", got, problem)
		}
	}
}
