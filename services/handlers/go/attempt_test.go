package handler_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	handler "github.com/countersign-mcp/countersign/services/handlers/go"
	"github.com/countersign-mcp/countersign/services/handlers/go/handlertest"
)

type invokeStream = grpc.BidiStreamingClient[handlerv1.InvokeRequest, handlerv1.InvokeResponse]

// invoke opens a stream as an edge does.
func invoke(ctx context.Context, t *testing.T, client handlerv1.HandlerServiceClient, begin *handlerv1.Begin) invokeStream {
	t.Helper()
	stream, err := client.Invoke(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if begin.GetRequest() == nil {
		handlertest.CallTool("tool", nil)(begin)
	}
	if err := stream.Send(&handlerv1.InvokeRequest{Message: &handlerv1.InvokeRequest_Begin{Begin: begin}}); err != nil {
		t.Fatal(err)
	}
	return stream
}

func receive(t *testing.T, stream invokeStream) *handlerv1.InvokeResponse {
	t.Helper()
	response, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// late is what a function could still do after an ask had ended its attempt.
type late struct {
	ask, progress, log, set, remove, once, again error
	onceRan                                      bool
	context                                      error
}

func afterTheEnd(seen chan<- late) func(*handler.Context, none) (string, error) {
	return func(ctx *handler.Context, _ none) (string, error) {
		var got late
		_, got.ask = ctx.Confirm("Sure?")
		got.progress = ctx.Progress(1, 2, "")
		got.log = ctx.Log(handler.LevelError, "", "late")
		got.set = ctx.State().Set("a", "b")
		got.remove = ctx.State().Delete("a")
		_, got.once = handler.Once(ctx, "k", func() (int, error) { got.onceRan = true; return 1, nil })
		_, got.again = ctx.ListRoots()
		got.context = ctx.Err()
		seen <- got
		return "too late", nil
	}
}

func TestNothingCountsAfterAnAskEndedTheAttempt(t *testing.T) {
	for name, end := range map[string]func(cancel func(), stream invokeStream) error{
		"the edge cuts the stream": func(cancel func(), _ invokeStream) error { cancel(); return nil },
		"the edge closes its side": func(_ func(), stream invokeStream) error { return stream.CloseSend() },
	} {
		t.Run(name, func(t *testing.T) {
			seen := make(chan late, 1)
			client := handlertest.Serve(t, serverWith(afterTheEnd(seen))())
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stream := invoke(ctx, t, client, &handlerv1.Begin{
				WantsProgress: true, LogLevel: handlerv1.LogLevel_LOG_LEVEL_DEBUG,
			})
			if receive(t, stream).GetAsk() == nil {
				t.Fatal("nothing was asked")
			}
			if err := end(cancel, stream); err != nil {
				t.Fatal(err)
			}
			got := <-seen
			for name, err := range map[string]error{
				"ask": got.ask, "progress": got.progress, "log": got.log, "set": got.set, "delete": got.remove,
				"once": got.once, "another ask": got.again,
			} {
				if !errors.Is(err, handler.ErrAttemptEnded) {
					t.Errorf("%s: got %v", name, err)
				}
			}
			if !errors.Is(got.context, context.Canceled) {
				t.Errorf("the context is not cancelled: %v", got.context)
			}
			if got.onceRan {
				t.Error("Once ran its function")
			}
			if response, err := stream.Recv(); err == nil {
				t.Errorf("the edge received %v", response)
			}
		})
	}
}

func TestAFunctionThatGoesOnIsToldApartFromOneThatReturns(t *testing.T) {
	for want, call := range map[codes.Code]func(*handler.Context, none) (string, error){
		codes.FailedPrecondition: func(ctx *handler.Context, _ none) (string, error) {
			_, _ = ctx.Confirm("Sure?")
			return "went on", nil
		},
		codes.Canceled: func(ctx *handler.Context, _ none) (string, error) {
			_, err := ctx.Confirm("Sure?")
			return "", err
		},
	} {
		stream := invoke(t.Context(), t, handlertest.Serve(t, serverWith(call)()), new(handlerv1.Begin))
		receive(t, stream)
		if err := stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); status.Code(err) != want {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}

func TestTheContextEndsWhenTheClientIsGone(t *testing.T) {
	started, ended := make(chan struct{}), make(chan error, 1)
	client := handlertest.Serve(t, serverWith(func(ctx *handler.Context, _ none) (string, error) {
		close(started)
		<-ctx.Done()
		ended <- ctx.Err()
		return "", ctx.Err()
	})())
	ctx, cancel := context.WithCancel(t.Context())
	invoke(ctx, t, client, new(handlerv1.Begin))
	<-started
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the context ended with %v", err)
	}
}

func TestAStreamBeginsWithBegin(t *testing.T) {
	stream, err := handlertest.Serve(t, handler.NewServer("test")).Invoke(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(new(handlerv1.InvokeRequest)); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.InvalidArgument {
		t.Errorf("got %v", err)
	}
}

func TestAnswersThatDoNotFitTheQuestionsAreAnError(t *testing.T) {
	elicited := &handlerv1.Answer_Elicited{Elicited: new(handlerv1.Elicited)}
	for want, answers := range map[string][]*handlerv1.Answer{
		"the edge sent 0 answers to 1 questions":                               {},
		`the edge sent an answer to "other" where "sure" was asked`:            {{Key: "other"}},
		`read the answer to "sure": the edge sent an answer without an action`: {{Key: "sure", Kind: elicited}},
	} {
		client := handlertest.Serve(t, serverWith(func(ctx *handler.Context, _ none) (string, error) {
			_, err := ctx.Confirm("Sure?", handler.Key("sure"))
			return "", err
		})())
		stream := invoke(t.Context(), t, client, new(handlerv1.Begin))
		receive(t, stream)
		err := stream.Send(&handlerv1.InvokeRequest{Message: &handlerv1.InvokeRequest_Answers{
			Answers: &handlerv1.Answers{Answers: answers},
		}})
		if err != nil {
			t.Fatal(err)
		}
		got := receive(t, stream).GetFinish().GetCallTool()
		if text := got.GetContent()[0].GetText().GetText(); !got.GetIsError() || text != want {
			t.Errorf("got %q, want %q", text, want)
		}
	}
}

func TestProgressAndLogsAreSentOnlyWhereTheyAreWanted(t *testing.T) {
	newServer := serverWith(func(ctx *handler.Context, _ none) (string, error) {
		return "", errors.Join(
			ctx.Progress(1, 0, "some"), ctx.Progress(2, 4, ""),
			ctx.Log(handler.LevelDebug, "part", "low"), ctx.Log(handler.LevelError, "part", map[string]int{"n": 1}))
	})
	outcome := handlertest.Run(t, newServer, handlertest.CallTool("tool", nil), nil)
	if len(outcome.Progress) != 2 || outcome.Progress[0].Total != nil || outcome.Progress[1].GetTotal() != 4 {
		t.Errorf("the progress is %v", outcome.Progress)
	}
	if len(outcome.Logs) != 2 || string(outcome.Logs[1].GetData()) != `{"n":1}` || outcome.Logs[1].GetLogger() != "part" {
		t.Errorf("the logs are %v", outcome.Logs)
	}
	client := handlertest.Serve(t, newServer())
	if receive(t, invoke(t.Context(), t, client, new(handlerv1.Begin))).GetFinish() == nil {
		t.Error("something is sent that was not wanted")
	}
	stream := invoke(t.Context(), t, client, &handlerv1.Begin{LogLevel: handlerv1.LogLevel_LOG_LEVEL_WARNING})
	if log := receive(t, stream).GetLog(); log.GetLevel() != handlerv1.LogLevel_LOG_LEVEL_ERROR {
		t.Errorf("the first log is %v", log)
	}
}

func TestTheContextSaysWhoAsksForWhat(t *testing.T) {
	var got *handler.Context
	outcome := handlertest.Run(t, serverWith(func(ctx *handler.Context, _ none) (string, error) {
		got = ctx
		return "", nil
	}), handlertest.CallTool("tool", nil), nil, handlertest.WithPrincipal("https://issuer", "ada"),
		handlertest.WithMeta([]byte(`{"vendor":1}`)),
		handlertest.WithCapabilities(&handlerv1.ClientCapabilities{Roots: true, Raw: []byte(`{"roots":{}}`)}))
	if got.ChainID() == "" || got.InvocationID() == "" || got.Attempt() != 1 || outcome.Attempts != 1 {
		t.Errorf("chain %q, invocation %q, attempt %d", got.ChainID(), got.InvocationID(), got.Attempt())
	}
	if got.Principal() != (handler.Principal{Issuer: "https://issuer", Subject: "ada"}) {
		t.Errorf("the principal is %v", got.Principal())
	}
	if got.Client().Name != "handlertest" || string(got.Meta()) != `{"vendor":1}` {
		t.Errorf("the client is %v, the meta %s", got.Client(), got.Meta())
	}
	if declared := got.Capabilities(); !declared.Roots || declared.Sample || string(declared.Raw) != `{"roots":{}}` {
		t.Errorf("the capabilities are %+v", declared)
	}
}

func TestStateAndOnceAreThereOnTheNextAttempt(t *testing.T) {
	type drawn struct {
		Number int64 `json:"number"`
	}
	newServer := func() *handler.Server {
		draws := 0
		return serverWith(func(ctx *handler.Context, _ none) (string, error) {
			seen, _ := ctx.State().Get("seen")
			gone, found := ctx.State().Get("gone")
			if ctx.Attempt() == 1 {
				if err := errors.Join(ctx.State().Set("seen", "yes"), ctx.State().Set("gone", "x"), ctx.State().Delete("gone")); err != nil {
					return "", err
				}
				seen = "yes"
			}
			number, err := handler.Once(ctx, "number", func() (drawn, error) {
				draws++
				handlertest.Effect(ctx, "draw")
				return drawn{9007199254740993}, nil
			})
			if err != nil {
				return "", err
			}
			again, err := handler.Once(ctx, "number", func() (drawn, error) { return drawn{1}, nil })
			if err != nil || again != number || found || gone != "" {
				return "", errors.Join(err, errors.New("the state is not what it was"))
			}
			if _, err := ctx.Confirm("Sure?", handler.Key("sure")); err != nil {
				return "", err
			}
			if draws != 1 || number.Number != 9007199254740993 {
				return "", errors.New("the number was drawn again")
			}
			return seen, nil
		})()
	}
	outcome := handlertest.Run(t, newServer, handlertest.CallTool("tool", nil), handlertest.Answers{"sure": handlertest.Confirm()})
	if outcome.Text() != "yes" || outcome.Attempts != 2 {
		t.Errorf("got %v in %d attempts", outcome.Finish, outcome.Attempts)
	}
}

func TestOnceDoesNotRecordAFailure(t *testing.T) {
	failure := errors.New("not now")
	var results []error
	handlertest.Run(t, serverWith(func(ctx *handler.Context, _ none) (string, error) {
		results = nil
		for _, result := range []error{failure, nil} {
			_, err := handler.Once(ctx, "k", func() (int, error) { return 1, result })
			results = append(results, err)
		}
		return "", nil
	}), handlertest.CallTool("tool", nil), nil)
	if !slices.Equal(results, []error{failure, nil}) {
		t.Errorf("got %v", results)
	}
}

func TestAMisuseOfTheStateIsAUsageError(t *testing.T) {
	got := usageErrorOf(t, serverWith(func(ctx *handler.Context, _ none) (string, error) {
		_, recorded := handler.Once(ctx, "k", func() (string, error) { return "text", nil })
		_, unreadable := handler.Once(ctx, "k", func() (int, error) { return 1, nil })
		_, unrecordable := handler.Once(ctx, "f", func() (func(), error) { return nil, nil })
		for _, err := range []error{unreadable, unrecordable, ctx.State().Set("once:k", "x"), ctx.State().Delete("once:l")} {
			if _, isUsage := errors.AsType[*handler.UsageError](err); !isUsage {
				t.Errorf("%v is not a usage error", err)
			}
		}
		return "done", recorded
	}), nil)
	for _, want := range []string{
		`read what Once recorded under "k"`, `record the result of Once under "f"`, `"once:k" belongs to Once`, `"once:l" belongs to Once`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s in it", got, want)
		}
	}
}

func TestOnceRunsOnceForGoroutinesThatReachItTogether(t *testing.T) {
	var runs atomic.Int32
	handlertest.Run(t, serverWith(func(ctx *handler.Context, _ none) (string, error) {
		runs.Store(0)
		results := make(chan error)
		for range 8 {
			go func() {
				_, err := handler.Once(ctx, "k", func() (int32, error) { return runs.Add(1), nil })
				results <- err
			}()
		}
		var failures []error
		for range 8 {
			failures = append(failures, <-results)
		}
		return "", errors.Join(failures...)
	}), handlertest.CallTool("tool", nil), nil)
	if runs.Load() != 1 {
		t.Errorf("it ran %d times", runs.Load())
	}
}

func TestAskingNothingIsAnError(t *testing.T) {
	got := usageErrorOf(t, serverWith(func(ctx *handler.Context, _ none) (string, error) {
		return "", ctx.AskAll()
	}), nil)
	if !strings.Contains(got, "there is no question to ask") {
		t.Errorf("got %s", got)
	}
}
