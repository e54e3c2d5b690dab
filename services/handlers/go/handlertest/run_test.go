package handlertest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	handler "github.com/countersign-mcp/countersign/services/handlers/go"
	"github.com/countersign-mcp/countersign/services/handlers/go/handlertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type function = func(*handler.Context, struct{}) (string, error)

func server(call function) *handler.Server {
	server := handler.NewServer("test", handler.WithLogger(slog.New(slog.DiscardHandler)))
	handler.Tool(server, "tool", call, handler.Description("A tool."))
	return server
}

// check runs a function that a test makes anew for each semantics.
func check(t *testing.T, newFunction func() function, answers handlertest.Answerer, options ...handlertest.Option) error {
	t.Helper()
	_, err := handlertest.Check(t.Context(), func() *handler.Server { return server(newFunction()) },
		handlertest.CallTool("tool", nil), answers, options...)
	return err
}

// always makes the same function for both semantics.
func always(call function) func() function { return func() function { return call } }

// yes confirms whatever is asked.
var yes = handlertest.Always(handlertest.Confirm())

func TestHandlersThatAreWrongAreFound(t *testing.T) {
	for problem, newFunction := range map[string]func() function{
		"attempt 2 asks another question": func() function {
			attempts := 0
			return func(ctx *handler.Context, _ struct{}) (string, error) {
				attempts++
				_, err := ctx.Confirm(fmt.Sprintf("Attempt %d?", attempts))
				return "", err
			}
		},
		`now:     "name", the form "Attempt 2?"`: func() function { // the same key, another question
			attempts := 0
			return func(ctx *handler.Context, _ struct{}) (string, error) {
				attempts++
				_, err := ctx.Confirm(fmt.Sprintf("Attempt %d?", attempts), handler.Key("name"))
				return "", err
			}
		},
		`finishes without asking "sure", which the attempt before asked`: always(func(ctx *handler.Context, _ struct{}) (string, error) {
			if ctx.Attempt() > 1 {
				return "done", nil
			}
			_, err := ctx.Confirm("Sure?", handler.Key("sure"))
			return "done", err
		}),
		`the effect "charge" happened on attempt 1 and again on attempt 2`: always(func(ctx *handler.Context, _ struct{}) (string, error) {
			handlertest.Effect(ctx, "charge")
			_, err := ctx.Confirm("Sure?")
			return "done", err
		}),
		`the effect "mail" happened on attempt 2 and again on attempt 3`: always(func(ctx *handler.Context, _ struct{}) (string, error) {
			if _, err := ctx.Confirm("Sure?"); err != nil {
				return "", err
			}
			handlertest.Effect(ctx, "mail")
			_, err := ctx.Confirm("Really?")
			return "done", err
		}),
		"returned a result on attempt 1 although an ask had ended it": always(func(ctx *handler.Context, _ struct{}) (string, error) {
			if action, err := ctx.Confirm("Sure?"); err != nil || action != handler.Accept {
				return "not confirmed", nil //nolint:nilerr // the mistake to find
			}
			return "confirmed", nil
		}),
		`the effect "charge" happened after its attempt had ended`: always(func(ctx *handler.Context, _ struct{}) (string, error) {
			_, err := ctx.Confirm("Sure?")
			handlertest.Effect(ctx, "charge")
			return "done", err
		}),
		"await and replay end differently": always(func(ctx *handler.Context, _ struct{}) (string, error) {
			_, err := ctx.Confirm("Sure?")
			return fmt.Sprintf("attempt %d", ctx.Attempt()), err
		}),
		"there is no end after 32 attempts": always(func(ctx *handler.Context, _ struct{}) (string, error) {
			for i := 0; ; i++ {
				if _, err := ctx.Confirm(fmt.Sprintf("Again %d?", i)); err != nil || i == 100 {
					return "", err
				}
			}
		}),
	} {
		t.Run(problem, func(t *testing.T) {
			if err := check(t, newFunction, yes); err == nil || !strings.Contains(err.Error(), problem) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAHandlerThatIsRightPasses(t *testing.T) {
	effects := always(func(ctx *handler.Context, _ struct{}) (string, error) {
		handlertest.Effect(t.Context(), "not of this run")
		reserved, err := handler.Once(ctx, "reserve", func() (int, error) {
			handlertest.Effect(ctx, "reserve")
			return 7, nil
		})
		if err != nil {
			return "", err
		}
		for i := range 2 {
			if _, err := ctx.Confirm(fmt.Sprintf("Sure %d?", i)); err != nil {
				return "", fmt.Errorf("ask: %w", err)
			}
		}
		handlertest.Effect(ctx, "charge")
		handlertest.Effect(ctx, "charge")
		return strconv.Itoa(reserved), nil
	})
	if err := check(t, effects, yes); err != nil {
		t.Error(err)
	}
}

func TestAnswersOfTheTestAreChecked(t *testing.T) {
	confirm := always(func(ctx *handler.Context, _ struct{}) (string, error) {
		_, err := ctx.Confirm("Sure?", handler.Key("sure"))
		return "", err
	})
	url := always(func(ctx *handler.Context, _ struct{}) (string, error) {
		_, err := ctx.ElicitURL("Go", "https://example.com", handler.Key("go"))
		return "", err
	})
	sample := always(func(ctx *handler.Context, _ struct{}) (string, error) {
		_, err := ctx.Sample(handler.SampleRequest{}, handler.Key("sample"))
		return "", err
	})
	roots := always(func(ctx *handler.Context, _ struct{}) (string, error) {
		_, err := ctx.ListRoots(handler.Key("roots"))
		return "", err
	})
	nothing := handlertest.WithCapabilities(new(handlerv1.ClientCapabilities))
	failure := errors.New("the answerer failed")
	for problem, got := range map[string]error{
		`no answer to the question "sure" is given, only to ["other"]`: check(t, confirm, handlertest.Answers{"other": handlertest.Confirm()}),
		`no answer to the question "sure" is given`:                    check(t, confirm, nil),
		`the answer to "sure" does not fit the form`:                   check(t, confirm, handlertest.Answers{"sure": handlertest.Accept(map[string]int{"confirm": 1})}),
		`"sure" does not fit the form: it is not a JSON object`:        check(t, confirm, handlertest.Answers{"sure": handlertest.Accept(nil)}),
		`the answer to "sure" is of another kind`:                      check(t, confirm, handlertest.Answers{"sure": handlertest.Roots()}),
		`the answer to "sample" is of another kind`:                    check(t, sample, handlertest.Answers{"sample": handlertest.Confirm()}),
		`the answer to "roots" is of another kind`:                     check(t, roots, handlertest.Answers{"roots": handlertest.Sampled("x")}),
		"the answerer failed": check(t, confirm, handlertest.AnswerFunc(
			func(*handlerv1.Question) (handlertest.Answer, error) { return handlertest.Answer{}, failure })),
		`"sure" needs the capability elicitation.form`: check(t, confirm, yes, nothing),
		`"go" needs the capability elicitation.url`:    check(t, url, yes, nothing),
		`"sample" needs the capability sampling`:       check(t, sample, yes, nothing),
		`"roots" needs the capability roots`:           check(t, roots, yes, nothing),
	} {
		if got == nil || !strings.Contains(got.Error(), problem) {
			t.Errorf("got %v, want %s", got, problem)
		}
	}
}

func TestAFunctionThatDoesNotReturnEndsTheRunAndIsNamed(t *testing.T) {
	goOn := make(chan struct{})
	var returned []chan struct{}
	err := check(t, func() function {
		done := make(chan struct{})
		returned = append(returned, done)
		return func(ctx *handler.Context, _ struct{}) (string, error) {
			defer close(done)
			if _, err := ctx.Confirm("Sure?"); err != nil {
				<-goOn
				return "", err
			}
			return "done", nil
		}
	}, yes, handlertest.WithTimeout(300*time.Millisecond))
	if err == nil || !strings.Contains(err.Error(), "the function does not return") || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	close(goOn)
	for _, done := range returned {
		<-done
	}
}

func TestRunFailsTheTest(t *testing.T) {
	failed := &failing{TB: t}
	func() {
		defer func() { _ = recover() }()
		handlertest.Run(failed, func() *handler.Server {
			return server(func(ctx *handler.Context, _ struct{}) (string, error) {
				_, err := ctx.Confirm("Sure?")
				return "", err
			})
		}, handlertest.CallTool("tool", nil), nil)
	}()
	if !strings.Contains(failed.message, "no answer to the question") {
		t.Errorf("the test fails with %q", failed.message)
	}
}

// failing is a test that may fail.
type failing struct {
	testing.TB

	message string
}

func (f *failing) Fatal(arguments ...any) {
	f.message = fmt.Sprint(arguments...)
	panic(f)
}

func TestAHandlerWithAFaultFailsTheRun(t *testing.T) {
	for problem, call := range map[string]function{
		"the function panicked: out of paper": func(*handler.Context, struct{}) (string, error) { panic("out of paper") },
		"Sub cannot be in a form": func(ctx *handler.Context, _ struct{}) (string, error) {
			_, err := handler.Elicit[struct{ Sub struct{} }](ctx, "Fill in")
			return "", err
		},
		`the key "sure" was asked before`: func(ctx *handler.Context, _ struct{}) (string, error) {
			_, first := ctx.Confirm("Sure?", handler.Key("sure"))
			if first != nil {
				return "", first
			}
			_, _ = ctx.Confirm("Sure?", handler.Key("sure"))
			return "done", nil // the mistake is found all the same
		},
	} {
		err := check(t, always(call), yes)
		if err == nil || !strings.Contains(err.Error(), "the handler has a fault") || !strings.Contains(err.Error(), problem) {
			t.Errorf("got %v, want %s", err, problem)
		}
		if err := check(t, always(call), yes, handlertest.AllowFaults()); err != nil {
			t.Errorf("%s: got %v where faults are allowed", problem, err)
		}
	}
}

func TestAPromptThatFailsIsAFaultAndARefusalIsNot(t *testing.T) {
	run := func(failure error) (*handlertest.Outcome, error) {
		return handlertest.Check(t.Context(), func() *handler.Server {
			server := server(nil)
			handler.Prompt(server, "prompt", func(*handler.Context, struct{}) ([]handler.Message, error) {
				return nil, failure
			}, handler.Description("A prompt."))
			return server
		}, handlertest.GetPrompt("prompt", nil), nil)
	}
	if _, err := run(errors.New("the printer is on fire")); err == nil || !strings.Contains(err.Error(), "printer is on fire") {
		t.Errorf("got %v", err)
	}
	outcome, err := run(handler.InvalidParams("no such thing"))
	if err != nil {
		t.Fatal(err)
	}
	if !outcome.IsError() || outcome.Err().Error() != "invalid params: no such thing" {
		t.Errorf("got %v", outcome.Err())
	}
}

func TestAnOutcomeSaysWhetherItIsAFailure(t *testing.T) {
	failure := errors.New("the printer is on fire")
	for _, want := range []error{nil, failure} {
		outcome := handlertest.Run(t, func() *handler.Server {
			return server(func(*handler.Context, struct{}) (string, error) { return "printed", want })
		}, handlertest.CallTool("tool", nil), nil)
		got := outcome.Err()
		if outcome.IsError() != (want != nil) || (want != nil && got.Error() != want.Error()) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}
