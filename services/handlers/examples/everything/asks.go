package main

import (
	"errors"
	"fmt"
	"strings"

	handler "github.com/countersign-mcp/countersign/services/handlers/go"
)

// registerAsks adds the tools and the prompt that ask. The name of a tool says what
// it asks for.
func registerAsks(server *handler.Server) {
	handler.Tool(server, "test_input_required_result_elicitation", greet,
		handler.Description("Asks for a name with a form and greets."))
	handler.Tool(server, "test_input_required_result_sampling", sample,
		handler.Description("Asks the client's model for the capital of France."))
	handler.Tool(server, "test_input_required_result_list_roots", listRoots,
		handler.Description("Asks for the client's roots and counts them."))
	handler.Tool(server, "test_input_required_result_request_state", confirmWithState,
		handler.Description("Keeps something in the state over a confirmation."))
	handler.Tool(server, "test_input_required_result_multiple_inputs", askThreeThings,
		handler.Description("Asks for a name, a greeting and the roots in one round."))
	handler.Tool(server, "test_input_required_result_multi_round", askTwice,
		handler.Description("Asks for a name and then for a color, in two rounds."))
	handler.Tool(server, "test_input_required_result_tampered_state", confirmWithState,
		handler.Description("Asks for a confirmation whose state must come back as it was."))
	handler.Tool(server, "test_input_required_result_capabilities", askWhatIsPossible,
		handler.Description("Asks in a way that the client declared it can answer."))
	handler.Tool(server, "test_sampling", samplePrompt,
		handler.Description("Has the client's model continue the prompt it is given."))
	handler.Tool(server, "test_missing_capability", sample,
		handler.Description("Asks the client's model, whether or not the client has one."))
	handler.Prompt(server, "test_input_required_result_prompt", promptWithContext,
		handler.Description("A prompt that asks for its context."))
}

type nameForm struct {
	Name string `json:"name" title:"Name" jsonschema:"Your name."`
}

type colorForm struct {
	Color string `json:"color" title:"Color" jsonschema:"Your favorite color."`
}

type okForm struct {
	OK bool `json:"ok" title:"OK"`
}

type contextForm struct {
	Context string `json:"context" title:"Context" jsonschema:"What the prompt is about."`
}

func greet(ctx *handler.Context, _ none) (string, error) {
	answer, err := handler.Elicit[nameForm](ctx, "What is your name?", handler.Key("user_name"))
	if err != nil {
		return "", err
	}
	if !answer.Accepted() {
		return "Hello, whoever you are!", nil
	}
	return "Hello, " + answer.Content.Name + "!", nil
}

// capitalQuestion is the sampling that several tools ask for.
var capitalQuestion = handler.SampleRequest{
	Messages:  []handler.SampleMessage{handler.SampleText(handler.RoleUser, "What is the capital of France?")},
	MaxTokens: 100,
}

func sample(ctx *handler.Context, _ none) (string, error) {
	sampled, err := ctx.Sample(capitalQuestion, handler.Key("capital_question"))
	if err != nil {
		return "", err
	}
	return "The model says: " + sampled.Text(), nil
}

type promptInput struct {
	Prompt string `json:"prompt" jsonschema:"What to say to the model."`
}

func samplePrompt(ctx *handler.Context, in promptInput) (string, error) {
	sampled, err := ctx.Sample(handler.SampleRequest{
		Messages:  []handler.SampleMessage{handler.SampleText(handler.RoleUser, in.Prompt)},
		MaxTokens: 100,
	}, handler.Key("prompt"))
	if err != nil {
		return "", err
	}
	return "LLM response: " + sampled.Text(), nil
}

func listRoots(ctx *handler.Context, _ none) (string, error) {
	roots, err := ctx.ListRoots(handler.Key("client_roots"))
	if err != nil {
		return "", err
	}
	return describeRoots(roots), nil
}

func describeRoots(roots []handler.Root) string {
	uris := make([]string, 0, len(roots))
	for _, root := range roots {
		uris = append(uris, root.URI)
	}
	return fmt.Sprintf("The client has %d roots: %s", len(roots), strings.Join(uris, ", "))
}

func confirmWithState(ctx *handler.Context, _ none) (string, error) {
	if err := ctx.State().Set("word", "state-ok"); err != nil {
		return "", err
	}
	answer, err := handler.Elicit[okForm](ctx, "Is everything all right?", handler.Key("confirm"))
	if err != nil {
		return "", err
	}
	word, found := ctx.State().Get("word")
	if !found {
		return "", errors.New("the state was lost")
	}
	if !answer.Accepted() || !answer.Content.OK {
		return word + ": not confirmed", nil
	}
	return word + ": confirmed", nil
}

func askThreeThings(ctx *handler.Context, _ none) (string, error) {
	name := handler.FormQuestion[nameForm]("What is your name?", handler.Key("user_name"))
	greeting := handler.SampleQuestion(handler.SampleRequest{
		Messages:  []handler.SampleMessage{handler.SampleText(handler.RoleUser, "Say hello in one sentence.")},
		MaxTokens: 100,
	}, handler.Key("greeting"))
	roots := handler.RootsQuestion(handler.Key("client_roots"))
	if err := ctx.AskAll(name, greeting, roots); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %s. %s",
		greeting.Answer().Text(), name.Answer().Content.Name, describeRoots(roots.Answer())), nil
}

func askTwice(ctx *handler.Context, _ none) (string, error) {
	name, err := handler.Elicit[nameForm](ctx, "Step 1: what is your name?", handler.Key("step1"))
	if err != nil {
		return "", err
	}
	color, err := handler.Elicit[colorForm](ctx, "Step 2: what is your favorite color?", handler.Key("step2"))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s likes %s.", name.Content.Name, color.Content.Color), nil
}

func askWhatIsPossible(ctx *handler.Context, input none) (string, error) {
	if ctx.Capabilities().ElicitForm {
		return greet(ctx, input)
	}
	return sample(ctx, input)
}

func promptWithContext(ctx *handler.Context, _ none) ([]handler.Message, error) {
	answer, err := handler.Elicit[contextForm](ctx, "What is the prompt about?", handler.Key("user_context"))
	if err != nil {
		return nil, err
	}
	return []handler.Message{handler.User(handler.Text("Consider this context: " + answer.Content.Context))}, nil
}
