package handler_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	handler "github.com/countersign-mcp/countersign/services/handlers/go"
	"github.com/countersign-mcp/countersign/services/handlers/go/handlertest"
)

// serverWith is a server with one tool, `tool`.
func serverWith[In, Out any](
	call func(*handler.Context, In) (Out, error), options ...handler.ToolOption,
) func() *handler.Server {
	return func() *handler.Server {
		server := handler.NewServer("test", handler.WithLogger(slog.New(slog.DiscardHandler)))
		handler.Tool(server, "tool", call, append([]handler.ToolOption{handler.Description("A tool.")}, options...)...)
		return server
	}
}

func callTool(
	t *testing.T, newServer func() *handler.Server, arguments any, options ...handlertest.Option,
) *handlertest.Outcome {
	t.Helper()
	return handlertest.Run(t, newServer, handlertest.CallTool("tool", arguments), nil, options...)
}

func describe(t *testing.T, server *handler.Server) *handlerv1.Catalog {
	t.Helper()
	response, err := handlertest.Serve(t, server).Describe(t.Context(), new(handlerv1.DescribeRequest))
	if err != nil {
		t.Fatal(err)
	}
	return response.GetCatalog()
}

type measure struct {
	Count   int64           `json:"count" jsonschema:"How many."`
	Ratio   json.Number     `json:"ratio,omitempty"`
	Any     any             `json:"any,omitempty"`
	Raw     json.RawMessage `json:"raw,omitempty"`
	Names   []string        `json:"names"`
	Address *struct {
		City string `json:"city"`
	} `json:"address,omitempty"`
}

func echoMeasure(_ *handler.Context, in measure) (measure, error) { return in, nil }

func TestNumbersKeepTheirDigits(t *testing.T) {
	arguments := `{"count":9007199254740993,"ratio":1.10,"any":[9007199254740993,{"x":0.10}],"raw":{"y":1e400},"names":["a"]}`
	outcome := callTool(t, serverWith(echoMeasure), json.RawMessage(arguments))
	if outcome.Structured() != arguments {
		t.Errorf("got  %s\nwant %s", outcome.Structured(), arguments)
	}
	if outcome.Text() != arguments {
		t.Errorf("the text is %s", outcome.Text())
	}
}

func TestANilListIsAnEmptyListAsTheSchemaSays(t *testing.T) {
	newServer := serverWith(func(*handler.Context, struct{}) (measure, error) { return measure{}, nil })
	outcome := callTool(t, newServer, nil)
	if want := `{"count":0,"names":[]}`; outcome.Structured() != want {
		t.Errorf("got %s, want %s", outcome.Structured(), want)
	}
	tool := describe(t, newServer()).GetTools()[0]
	if want := `{"type":"object","additionalProperties":false}`; string(tool.GetInputSchema()) != want {
		t.Errorf("the input schema is %s", tool.GetInputSchema())
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(tool.GetOutputSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	var instance map[string]any
	if err := json.Unmarshal([]byte(outcome.Structured()), &instance); err != nil {
		t.Fatal(err)
	}
	if err := resolved.Validate(instance); err != nil {
		t.Errorf("the result does not fit its own schema: %v", err)
	}
	if count := schema.Properties["count"]; count.Type != "integer" || count.Description != "How many." {
		t.Errorf("the schema of count is %v", count)
	}
	if !slices.Equal(schema.Required, []string{"count", "names"}) {
		t.Errorf("required are %q", schema.Required)
	}
}

func TestArgumentsAreReadStrictlyAndNeverQuoted(t *testing.T) {
	for name, test := range map[string]struct{ arguments, problem string }{
		"an unknown member":   {`{"count":1,"names":[],"secret":"s3cret"}`, "no such member"},
		"another case":        {`{"Count":1,"names":[]}`, "no such member"},
		"a name twice":        {`{"count":1,"count":2,"names":[]}`, "occurs twice"},
		"a string for a list": {`{"count":1,"names":"s3cret"}`, "a string is not an array"},
		"a fraction":          {`{"count":1.5,"names":[]}`, "the number is not an integer of 64 bits"},
		"beyond an int64":     {`{"count":9223372036854775808,"names":[]}`, "the number is not an integer of 64 bits"},
		"a string for digits": {`{"count":1,"ratio":"s3cret","names":[]}`, "a string is not a number"},
		"an array":            {`["s3cret"]`, "an array is not an object"},
	} {
		t.Run(name, func(t *testing.T) {
			outcome := callTool(t, serverWith(echoMeasure), json.RawMessage(test.arguments), handlertest.AllowFaults())
			if !outcome.Finish.GetCallTool().GetIsError() || !strings.Contains(outcome.Text(), test.problem) {
				t.Errorf("got %q, want %q", outcome.Text(), test.problem)
			}
			if strings.Contains(outcome.Text(), "s3cret") {
				t.Errorf("the value is quoted in %q", outcome.Text())
			}
		})
	}
}

func TestRawArgumentsAndResultsPassUnaltered(t *testing.T) {
	newServer := serverWith(
		func(_ *handler.Context, in json.RawMessage) (json.RawMessage, error) { return in, nil },
		handler.InputSchema(json.RawMessage(`{"type":"object"}`)),
		handler.OutputSchema(json.RawMessage(`{ "type":"object" }`)))
	outcome := callTool(t, newServer, json.RawMessage(`{"b":1.0,"a":9007199254740993}`))
	if want := `{"b":1.0,"a":9007199254740993}`; outcome.Structured() != want {
		t.Errorf("got %s", outcome.Structured())
	}
	tool := describe(t, newServer()).GetTools()[0]
	if string(tool.GetInputSchema()) != `{"type":"object"}` || string(tool.GetOutputSchema()) != `{ "type":"object" }` {
		t.Errorf("the schemas are %s and %s", tool.GetInputSchema(), tool.GetOutputSchema())
	}
}

func TestAResultPutTogetherByHandArrivesWhole(t *testing.T) {
	newServer := serverWith(func(*handler.Context, struct{}) (*handler.Result, error) {
		priority := 0.5
		return &handler.Result{
			Content: []handler.Content{
				handler.Text("words").Annotate(handler.Annotations{Audience: []handler.Role{handler.RoleAssistant}, Priority: &priority}),
				handler.Image("image/png", []byte{1}),
				handler.Audio("audio/wav", []byte{2}),
				handler.ResourceLink(handler.Link{URI: "test://a", Name: "a", Size: 3}),
				handler.Embed(handler.TextContents("text/plain", "inside").At("test://b")),
				handler.RawContent(json.RawMessage(`{"type":"other"}`)),
			},
			Structured: map[string]int{"n": 1},
			Meta:       json.RawMessage(`{"m":1}`),
		}, nil
	})
	result := callTool(t, newServer, nil).Finish.GetCallTool()
	content := result.GetContent()
	if len(content) != 6 || string(result.GetStructuredContent()) != `{"n":1}` || string(result.GetMeta()) != `{"m":1}` {
		t.Fatalf("got %v", result)
	}
	if content[0].GetAnnotations().GetPriority() != 0.5 ||
		content[0].GetAnnotations().GetAudience()[0] != handlerv1.Role_ROLE_ASSISTANT {
		t.Errorf("the annotations are %v", content[0].GetAnnotations())
	}
	if content[1].GetImage().GetMimeType() != "image/png" || content[2].GetAudio().GetData()[0] != 2 ||
		content[3].GetResourceLink().GetSize() != 3 || string(content[5].GetRaw()) != `{"type":"other"}` {
		t.Errorf("got %v", content)
	}
	if embedded := content[4].GetResource().GetContents(); embedded.GetUri() != "test://b" || embedded.GetText() != "inside" {
		t.Errorf("embedded %v", embedded)
	}
	if tool := describe(t, newServer()).GetTools()[0]; tool.GetOutputSchema() != nil {
		t.Errorf("the output schema is %s", tool.GetOutputSchema())
	}
}

func TestErrorsReachTheClientAsWhatTheyAre(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		kind handlerv1.ErrorKind
		text string
	}{
		"a tool's failure": {errors.New("the printer is on fire"), 0, "the printer is on fire"},
		"invalid params": {
			fmt.Errorf("wrapped: %w", handler.InvalidParams("no %s", "sense")),
			handlerv1.ErrorKind_ERROR_KIND_INVALID_PARAMS, "no sense",
		},
		"not found":   {handler.NotFound(), handlerv1.ErrorKind_ERROR_KIND_RESOURCE_NOT_FOUND, "resource not found"},
		"unavailable": {handler.Unavailable("later"), handlerv1.ErrorKind_ERROR_KIND_UNAVAILABLE, "later"},
		"the application's own": {
			handler.ApplicationError(7, "seven").WithData(json.RawMessage(`{"d":1}`)),
			handlerv1.ErrorKind_ERROR_KIND_APPLICATION, "seven",
		},
	} {
		t.Run(name, func(t *testing.T) {
			outcome := callTool(t, serverWith(func(*handler.Context, struct{}) (string, error) { return "", test.err }), nil)
			if test.kind == 0 {
				if !outcome.Finish.GetCallTool().GetIsError() || outcome.Text() != test.text {
					t.Errorf("got %v", outcome.Finish)
				}
				return
			}
			got := outcome.Finish.GetError()
			if got.GetKind() != test.kind || got.GetMessage() != test.text {
				t.Errorf("got %v", outcome.Finish)
			}
			if test.kind == handlerv1.ErrorKind_ERROR_KIND_APPLICATION &&
				(got.GetApplicationCode() != 7 || string(got.GetData()) != `{"d":1}`) {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestAPanicIsAnInternalErrorAndALineInTheLogWithoutItsValue(t *testing.T) {
	var log strings.Builder
	newServer := func() *handler.Server {
		server := handler.NewServer("test", handler.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		handler.Tool(server, "tool", func(_ *handler.Context, in struct {
			Card string `json:"card"`
		},
		) (string, error) {
			panic("cannot charge " + in.Card)
		}, handler.Description("Panics."))
		return server
	}
	outcome := callTool(t, newServer, map[string]string{"card": "4111"}, handlertest.AllowFaults())
	if got := outcome.Finish.GetError(); got.GetKind() != handlerv1.ErrorKind_ERROR_KIND_INTERNAL || strings.Contains(got.GetMessage(), "4111") {
		t.Errorf("got %v", outcome.Finish)
	}
	if !strings.Contains(log.String(), "a function panicked") || strings.Contains(log.String(), "4111") {
		t.Errorf("logged %s", log.String())
	}
}

func TestAnUnknownTargetIsRefused(t *testing.T) {
	newServer := serverWith(echoMeasure)
	for name, test := range map[string]struct {
		request handlertest.Request
		kind    handlerv1.ErrorKind
	}{
		"tool":     {handlertest.CallTool("other", nil), handlerv1.ErrorKind_ERROR_KIND_INVALID_PARAMS},
		"prompt":   {handlertest.GetPrompt("other", nil), handlerv1.ErrorKind_ERROR_KIND_INVALID_PARAMS},
		"resource": {handlertest.ReadResource("test://other"), handlerv1.ErrorKind_ERROR_KIND_RESOURCE_NOT_FOUND},
		"template": {handlertest.ReadTemplated("test://o", "test://{x}"), handlerv1.ErrorKind_ERROR_KIND_RESOURCE_NOT_FOUND},
		"nothing":  {func(*handlerv1.Begin) {}, handlerv1.ErrorKind_ERROR_KIND_INVALID_PARAMS},
	} {
		if got := handlertest.Run(t, newServer, test.request, nil).Finish.GetError(); got.GetKind() != test.kind {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestARegistrationThatMakesNoSensePanicsAndSaysWhy(t *testing.T) {
	text := func(*handler.Context, struct{}) (string, error) { return "", nil }
	described := handler.Description("A tool.")
	for problem, register := range map[string]func(*handler.Server){
		"is not 1 to 128 of": func(s *handler.Server) { handler.Tool(s, "no spaces", text, described) },
		"has no description": func(s *handler.Server) { handler.Tool(s, "tool", text) },
		"is already registered": func(s *handler.Server) {
			handler.Tool(s, "tool", text, described)
			handler.Tool(s, "tool", text, described)
		},
		"must be a JSON object": func(s *handler.Server) {
			handler.Tool(s, "tool", text, described, handler.InputSchema(json.RawMessage(`[]`)))
		},
		"give an InputSchema": func(s *handler.Server) {
			handler.Tool(s, "tool", func(*handler.Context, json.RawMessage) (string, error) { return "", nil }, described)
		},
		"infer the output schema": func(s *handler.Server) {
			handler.Tool(s, "tool", func(*handler.Context, struct{}) ([]string, error) { return nil, nil }, described)
		},
		"is not an absolute URI": func(s *handler.Server) { handler.Resource(s, "relative", "name", nil) },
		"is not an RFC 6570 template": func(s *handler.Server) {
			handler.ResourceTemplate[struct{}](s, "test://{", "name", nil)
		},
		`no field for the variable "id"`: func(s *handler.Server) {
			handler.ResourceTemplate[struct{}](s, "test://{id}", "name", nil)
		},
		`no argument "x" to complete`: func(s *handler.Server) {
			handler.Prompt[struct{}](s, "prompt", nil, described, handler.Complete("x", nil))
		},
		"is not a string, number or boolean": func(s *handler.Server) {
			handler.Prompt[struct{ List []string }](s, "prompt", nil, described)
		},
	} {
		t.Run(problem, func(t *testing.T) {
			defer func() {
				if message := fmt.Sprint(recover()); !strings.Contains(message, problem) {
					t.Errorf("the panic is %q", message)
				}
			}()
			register(handler.NewServer("test"))
		})
	}
}

func TestAnnotationsSayWhatAToolDoes(t *testing.T) {
	text := func(*handler.Context, struct{}) (string, error) { return "", nil }
	tool := describe(t, serverWith(text, handler.Title("T"), handler.ReadOnly(), handler.Idempotent(), handler.ClosedWorld(),
		handler.AsksMustBeShown(), handler.Icons(handler.Icon{Source: "https://example.com/i.png"}),
		handler.Meta(json.RawMessage(`{"k":1}`)))()).GetTools()[0]
	annotations := tool.GetAnnotations()
	if !annotations.GetReadOnlyHint() || annotations.DestructiveHint == nil || annotations.GetDestructiveHint() ||
		!annotations.GetIdempotentHint() || annotations.OpenWorldHint == nil || annotations.GetOpenWorldHint() {
		t.Errorf("the annotations are %v", annotations)
	}
	if !tool.GetAsksMustBeShown() || tool.GetTitle() != "T" || string(tool.GetMeta()) != `{"k":1}` || len(tool.GetIcons()) != 1 {
		t.Errorf("the tool is %v", tool)
	}
	destructive := describe(t, serverWith(text, handler.Destructive())()).GetTools()[0].GetAnnotations()
	if !destructive.GetDestructiveHint() || destructive.ReadOnlyHint != nil {
		t.Errorf("the annotations are %v", destructive)
	}
	plain := describe(t, serverWith(text)()).GetTools()[0]
	if plain.GetAnnotations() != nil {
		t.Errorf("the annotations are %v", plain.GetAnnotations())
	}
}

func TestAResultThatCannotBeSentIsAnInternalErrorWithoutItsText(t *testing.T) {
	for name, newServer := range map[string]func() *handler.Server{
		"a number that JSON lacks": serverWith(func(*handler.Context, struct{}) (map[string]float64, error) {
			return map[string]float64{"n": math.NaN()}, nil
		}),
		"malformed JSON": serverWith(func(*handler.Context, struct{}) (json.RawMessage, error) {
			return json.RawMessage(`{"n":`), nil
		}),
	} {
		got := callTool(t, newServer, nil, handlertest.AllowFaults()).Finish.GetError()
		if got.GetKind() != handlerv1.ErrorKind_ERROR_KIND_INTERNAL || got.GetMessage() != "the handler failed" {
			t.Errorf("%s: got %v", name, got)
		}
	}
	newServer := serverWith(func(*handler.Context, struct{}) (string, error) { return "\xff", nil })
	stream := invoke(t.Context(), t, handlertest.Serve(t, newServer()), new(handlerv1.Begin))
	if _, err := stream.Recv(); status.Code(err) != codes.Internal {
		t.Errorf("text that is not UTF-8: got %v", err)
	}
}
