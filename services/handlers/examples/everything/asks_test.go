package main

import (
	"slices"
	"strings"
	"testing"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	"github.com/countersign-mcp/countersign/services/handlers/go/handlertest"
)

func TestToolsAskAndAnswerUnderBothSemantics(t *testing.T) {
	alice := handlertest.Accept(map[string]string{"name": "Alice"})
	ok := handlertest.Accept(map[string]bool{"ok": true})
	for _, test := range []struct {
		tool    string
		answers handlertest.Answers
		keys    []string // in order
		rounds  int
		text    string
	}{
		{
			"test_input_required_result_elicitation",
			handlertest.Answers{"user_name": alice},
			[]string{"user_name"},
			1, "Hello, Alice!",
		},
		{
			"test_input_required_result_elicitation",
			handlertest.Answers{"user_name": handlertest.Cancel()},
			[]string{"user_name"},
			1, "Hello, whoever you are!",
		},
		{
			"test_input_required_result_sampling",
			handlertest.Answers{"capital_question": handlertest.Sampled("Paris")},
			[]string{"capital_question"},
			1, "The model says: Paris",
		},
		{
			"test_missing_capability",
			handlertest.Answers{"capital_question": handlertest.Sampled("Paris")},
			[]string{"capital_question"},
			1, "The model says: Paris",
		},
		{
			"test_input_required_result_list_roots",
			handlertest.Answers{"client_roots": handlertest.Roots("file:///a", "file:///b")},
			[]string{"client_roots"},
			1, "The client has 2 roots: file:///a, file:///b",
		},
		{
			"test_input_required_result_request_state",
			handlertest.Answers{"confirm": ok},
			[]string{"confirm"},
			1, "state-ok: confirmed",
		},
		{
			"test_input_required_result_tampered_state",
			handlertest.Answers{"confirm": handlertest.Decline()},
			[]string{"confirm"},
			1, "state-ok: not confirmed",
		},
		{
			"test_input_required_result_multiple_inputs",
			handlertest.Answers{
				"user_name": alice, "greeting": handlertest.Sampled("Hello,"), "client_roots": handlertest.Roots("file:///a"),
			},
			[]string{"user_name", "greeting", "client_roots"},
			1, "Hello, Alice. The client has 1 roots: file:///a",
		},
		{
			"test_input_required_result_multi_round",
			handlertest.Answers{"step1": alice, "step2": handlertest.Accept(map[string]string{"color": "green"})},
			[]string{"step1", "step2"},
			2, "Alice likes green.",
		},
	} {
		t.Run(test.tool, func(t *testing.T) {
			outcome := handlertest.Run(t, newServer, handlertest.CallTool(test.tool, nil), test.answers)
			if outcome.Text() != test.text {
				t.Errorf("the text is %q, want %q", outcome.Text(), test.text)
			}
			if !slices.Equal(outcome.Keys(), test.keys) || len(outcome.Rounds) != test.rounds {
				t.Errorf("asked %q in %d rounds, want %q in %d", outcome.Keys(), len(outcome.Rounds), test.keys, test.rounds)
			}
		})
	}
}

func TestSamplesThePromptItIsGiven(t *testing.T) {
	outcome := handlertest.Run(t, newServer,
		handlertest.CallTool("test_sampling", map[string]string{"prompt": "Say hello."}),
		handlertest.Answers{"prompt": handlertest.Sampled("Hello.")})
	if outcome.Text() != "LLM response: Hello." {
		t.Errorf("the text is %q", outcome.Text())
	}
	if params := string(outcome.Rounds[0][0].GetSample().GetParams()); !strings.Contains(params, "Say hello.") {
		t.Errorf("sampled with %s, want the prompt in it", params)
	}
}

func TestRendersAPromptWithWhatTheUserSaid(t *testing.T) {
	outcome := handlertest.Run(t, newServer, handlertest.GetPrompt("test_input_required_result_prompt", nil),
		handlertest.Answers{"user_context": handlertest.Accept(map[string]string{"context": "tea"})})
	if outcome.Text() != "Consider this context: tea" || !slices.Equal(outcome.Keys(), []string{"user_context"}) {
		t.Errorf("asked %q and got %q", outcome.Keys(), outcome.Text())
	}
}

func TestAsksOnlyWhatTheClientCanAnswer(t *testing.T) {
	outcome := handlertest.Run(t, newServer, handlertest.CallTool("test_input_required_result_capabilities", nil),
		handlertest.Answers{"capital_question": handlertest.Sampled("Paris")},
		handlertest.WithCapabilities(&handlerv1.ClientCapabilities{Sampling: true}))
	if !slices.Equal(outcome.Keys(), []string{"capital_question"}) {
		t.Errorf("asked %q", outcome.Keys())
	}
	outcome = handlertest.Run(t, newServer, handlertest.CallTool("test_input_required_result_capabilities", nil),
		handlertest.Answers{"user_name": handlertest.Decline()})
	if !slices.Equal(outcome.Keys(), []string{"user_name"}) {
		t.Errorf("asked %q", outcome.Keys())
	}
}
