package modern_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	sealv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/seal/v1"
	"github.com/countersign-mcp/countersign/services/mcpedge/handlerfake"
	"github.com/countersign-mcp/countersign/services/mcpedge/identity"
)

const nameForm = `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`

// askName asks for a name and finishes with the answer.
func askName(_ *handlerv1.Begin, stream handlerfake.Stream) error {
	answers, refused, err := handlerfake.Ask(stream, &handlerv1.Ask{Questions: []*handlerv1.Question{handlerfake.Form("user_name", "Your name?", nameForm)}})
	if err != nil || refused != nil {
		return err
	}
	return handlerfake.FinishText(stream, answers[0].GetElicited().GetAction().String()+string(answers[0].GetElicited().GetContent()))
}

func accept(content string) string { return `{"action":"accept","content":` + content + `}` }

// requestState is the state of an input_required reply, as a JSON string.
func requestState(t *testing.T, p parsed) string {
	t.Helper()
	if string(p.Result["resultType"]) != `"input_required"` || len(p.Result["requestState"]) < 3 {
		t.Fatalf("got %s, %+v; want input_required", p.Result, p.Error)
	}
	return string(p.Result["requestState"])
}

// text is the text of a complete result.
func text(t *testing.T, p parsed) string {
	t.Helper()
	var content []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(p.Result["content"], &content); err != nil || string(p.Result["resultType"]) != `"complete"` || len(content) != 1 {
		t.Fatalf("got %s, %+v; want a complete result", p.Result, p.Error)
	}
	return content[0].Text
}

// keys are the keys of the questions of an input_required reply.
func keys(t *testing.T, p parsed) map[string]json.RawMessage {
	t.Helper()
	requestState(t, p)
	var requests map[string]json.RawMessage
	if err := json.Unmarshal(p.Result["inputRequests"], &requests); err != nil {
		t.Fatal(err)
	}
	return requests
}

func TestAQuestionIsAnsweredInASecondRound(t *testing.T) {
	for name, encrypt := range map[string]bool{"HMAC": false, "AES-GCM": true} {
		t.Run(name, func(t *testing.T) {
			var begins []*handlerv1.Begin
			s := newSuite(t, func(begin *handlerv1.Begin, stream handlerfake.Stream) error {
				begins = append(begins, begin)
				answers, _, err := handlerfake.Ask(stream, &handlerv1.Ask{
					Questions: []*handlerv1.Question{handlerfake.Form("user_name", "Your name?", nameForm)},
					State:     map[string]string{"order": "A-1001", "": "empty key"},
				})
				if err != nil {
					return err
				}
				return handlerfake.FinishText(stream, string(answers[0].GetElicited().GetContent()))
			}, func(o *options) { o.encrypt = encrypt })

			first := s.call()
			if got := string(first.Result["inputRequests"]); got != `{"user_name":{"method":"elicitation/create","params":{"mode":"form","message":"Your name?","requestedSchema":`+nameForm+`}}}` {
				t.Fatalf("got %s, %+v", got, first.Error)
			}
			state := requestState(t, first)
			decoded, err := base64.RawURLEncoding.DecodeString(strings.Trim(state, `"`))
			if err != nil || strings.Contains(string(decoded), "A-1001") == encrypt {
				t.Errorf("encrypted %t, and the state reads %q, %v", encrypt, decoded, err)
			}
			second := s.call(`"inputResponses":{"user_name":`+accept(`{"name":"Ann","n":9007199254740993}`)+`}`, `"requestState":`+state)
			if got := text(t, second); got != `{"name":"Ann","n":9007199254740993}` {
				t.Errorf("got %s", got)
			}
			if len(begins) != 2 || begins[0].GetChainId() == "" || begins[0].GetChainId() != begins[1].GetChainId() || begins[0].GetInvocationId() == begins[1].GetInvocationId() ||
				begins[0].GetAttempt() != 1 || begins[1].GetAttempt() != 2 || len(begins[0].GetState()) != 0 || begins[1].GetState()["order"] != "A-1001" || begins[1].GetState()[""] != "empty key" {
				t.Errorf("the attempts began with %v", begins)
			}
			if s.metric("countersign_edge_requests_total", "method=tools/call", "outcome=input_required") != 1 || s.metric("countersign_edge_questions_total", "kind=elicit_form") != 1 {
				t.Error("the round was not counted")
			}
		})
	}
}

func TestPromptsAndResourcesAskToo(t *testing.T) {
	s := newSuite(t, func(begin *handlerv1.Begin, stream handlerfake.Stream) error {
		if _, _, err := handlerfake.Ask(stream, &handlerv1.Ask{Questions: []*handlerv1.Question{handlerfake.Form("user_name", "Your name?", nameForm)}}); err != nil {
			return err
		}
		if begin.GetGetPrompt() != nil {
			return handlerfake.Finish(stream, &handlerv1.Finish{Outcome: &handlerv1.Finish_GetPrompt{GetPrompt: &handlerv1.GetPromptResult{
				Messages: []*handlerv1.PromptMessage{{Role: handlerv1.Role_ROLE_USER, Content: handlerfake.Text("hello")}},
			}}})
		}
		return handlerfake.Finish(stream, &handlerv1.Finish{Outcome: &handlerv1.Finish_ReadResource{ReadResource: &handlerv1.ReadResourceResult{
			Contents: []*handlerv1.ResourceContents{{Uri: begin.GetReadResource().GetUri(), Body: &handlerv1.ResourceContents_Text{Text: begin.GetReadResource().GetUriTemplate()}}},
		}}})
	})
	for method, test := range map[string]struct{ params, member, want string }{
		"prompts/get":    {`"name":"greet","arguments":{"who":"Ann"}`, "messages", `[{"role":"user","content":{"type":"text","text":"hello"}}]`},
		"resources/read": {`"uri":"orders://7"`, "contents", `[{"uri":"orders://7","text":"orders://{id}"}]`},
	} {
		first := s.do(request{method: method, params: test.params + `,` + meta(allCapabilities)}).parse(t)
		second := s.do(request{method: method, params: test.params + `,` + meta(allCapabilities) + `,"inputResponses":{"user_name":` + accept(`{"name":"Ann"}`) + `},"requestState":` + requestState(t, first)}).parse(t)
		if got := string(second.Result[test.member]); got != test.want {
			t.Errorf("%s: got %s, %+v", method, got, second.Error)
		}
	}
}

func TestAnswersWithoutAStateCountByKey(t *testing.T) {
	s := newSuite(t, askName)
	if got := text(t, s.call(`"inputResponses":{"extra":{"x":1},"user_name":`+accept(`{"name":"Ann"}`)+`}`)); !strings.HasSuffix(got, `{"name":"Ann"}`) {
		t.Errorf("got %s", got)
	}
	for _, more := range []string{`"inputResponses":{"wrong":` + accept(`{"name":"Ann"}`) + `}`, `"inputResponses":{}`, `"inputResponses":null`, `"requestState":null`} {
		requestState(t, s.call(more))
	}
}

func TestADestructiveToolIgnoresAnswersToQuestionsItHasNotShown(t *testing.T) {
	s := newSuite(t, askName)
	params := `"name":"destroy",` + meta(allCapabilities) + `,"inputResponses":{"user_name":` + accept(`{"name":"Ann"}`) + `}`
	first := s.do(request{method: "tools/call", params: params}).parse(t)
	second := s.do(request{method: "tools/call", params: params + `,"requestState":` + requestState(t, first)}).parse(t)
	if got := text(t, second); !strings.HasSuffix(got, `{"name":"Ann"}`) {
		t.Errorf("got %s", got)
	}
}

func TestDeclineAndCancelReachTheHandlerAsThemselves(t *testing.T) {
	s := newSuite(t, askName)
	for action, want := range map[string]string{"decline": "ELICIT_ACTION_DECLINE", "cancel": "ELICIT_ACTION_CANCEL"} {
		state := requestState(t, s.call())
		if got := text(t, s.call(`"inputResponses":{"user_name":{"action":"`+action+`","content":{"name":"ignored"}}}`, `"requestState":`+state)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestAnInvalidAnswerIsAnErrorAndNothingIsLost(t *testing.T) {
	s := newSuite(t, askName)
	state := requestState(t, s.call())
	for _, response := range []string{`12345`, `null`, `"Ann"`, `{}`, `{"action":"maybe"}`, accept(`{}`), accept(`{"name":7}`), `{"action":"accept"}`} {
		got := s.call(`"inputResponses":{"user_name":`+response+`}`, `"requestState":`+state)
		if got.Error == nil || got.Error.Code != -32602 || !strings.Contains(got.Error.Message, "user_name") {
			t.Errorf("%s: got %s, %+v", response, got.Result, got.Error)
		}
	}
	if got := s.call(`"inputResponses":[1]`, `"requestState":`+state); got.Error == nil || got.Error.Code != -32602 {
		t.Errorf("an array: got %s, %+v", got.Result, got.Error)
	}
	text(t, s.call(`"inputResponses":{"user_name":`+accept(`{"name":"Ann"}`)+`}`, `"requestState":`+state))
}

// askThree asks for two things at once and then for a third.
func askThree(_ *handlerv1.Begin, stream handlerfake.Stream) error {
	both, _, err := handlerfake.Ask(stream, &handlerv1.Ask{Questions: []*handlerv1.Question{
		handlerfake.Form("a", "A?", nameForm), {Key: "b", Kind: &handlerv1.Question_ListRoots{ListRoots: &handlerv1.ListRoots{}}},
	}})
	if err != nil {
		return err
	}
	third, _, err := handlerfake.Ask(stream, &handlerv1.Ask{Questions: []*handlerv1.Question{{Key: "c", Kind: &handlerv1.Question_Sample{Sample: &handlerv1.Sample{Params: []byte(`{"messages":[],"maxTokens":9}`)}}}}})
	if err != nil {
		return err
	}
	return handlerfake.FinishText(stream, string(both[0].GetElicited().GetContent())+both[1].GetRoots().GetRoots()[0].GetUri()+string(third[0].GetSampled().GetResult()))
}

func TestParallelQuestionsShareARoundAndEarlierAnswersRideAlong(t *testing.T) {
	s := newSuite(t, askThree)
	first := s.call()
	if got := keys(t, first); len(got) != 2 || string(got["b"]) != `{"method":"roots/list"}` {
		t.Fatalf("the first round asks %s", got)
	}
	partly := s.call(`"inputResponses":{"a":`+accept(`{"name":"Ann"}`)+`}`, `"requestState":`+requestState(t, first))
	if got := keys(t, partly); len(got) != 1 || got["b"] == nil {
		t.Fatalf("what is missing is not asked again alone: %s", got)
	}
	second := s.call(`"inputResponses":{"b":{"roots":[{"uri":"file:///x"}]}}`, `"requestState":`+requestState(t, partly))
	if got := keys(t, second); len(got) != 1 || got["c"] == nil || requestState(t, second) == requestState(t, first) {
		t.Fatalf("the second round asks %s", got)
	}
	sampled := `{"role":"assistant","content":{"type":"text","text":"x"},"model":"m"}`
	last := s.call(`"inputResponses":{"c":`+sampled+`}`, `"requestState":`+requestState(t, second))
	if got := text(t, last); got != `{"name":"Ann"}file:///x`+sampled {
		t.Errorf("got %s", got)
	}
}

func TestAnAnswerToAQuestionThatChangedIsDropped(t *testing.T) {
	var message atomic.Value
	message.Store("Refund 10?")
	s := newSuite(t, func(_ *handlerv1.Begin, stream handlerfake.Stream) error {
		for _, key := range []string{"amount", "sure"} {
			if _, _, err := handlerfake.Ask(stream, &handlerv1.Ask{Questions: []*handlerv1.Question{handlerfake.Form(key, message.Load().(string), nameForm)}}); err != nil {
				return err
			}
		}
		return handlerfake.FinishText(stream, "done")
	})
	yes := accept(`{"name":"Ann"}`)
	first := requestState(t, s.call())
	second := requestState(t, s.call(`"inputResponses":{"amount":`+yes+`}`, `"requestState":`+first))

	message.Store("Refund 1000?")
	// The answer comes with the request.
	again := s.call(`"inputResponses":{"amount":`+yes+`}`, `"requestState":`+first)
	if got := keys(t, again); !strings.Contains(string(got["amount"]), "Refund 1000?") {
		t.Errorf("got %s", got)
	}
	// The answer rides in the state.
	again = s.call(`"inputResponses":{"sure":`+yes+`}`, `"requestState":`+second)
	if got := keys(t, again); got["amount"] == nil {
		t.Errorf("got %s", got)
	}
	if dropped := s.metric("countersign_edge_dropped_answers_total", "reason=question_changed"); dropped != 2 {
		t.Errorf("dropped answers counted: %v", dropped)
	}
	// An answer to a question that this state has not asked.
	again = s.call(`"inputResponses":{"amount":`+yes+`,"sure":`+yes+`}`, `"requestState":`+requestState(t, again))
	if got := keys(t, again); len(got) != 1 || got["sure"] == nil {
		t.Errorf("got %s", got)
	}
	if dropped := s.metric("countersign_edge_dropped_answers_total", "reason=question_not_shown"); dropped != 1 {
		t.Errorf("dropped answers counted: %v", dropped)
	}
}

func TestAHandlerThatAsksSomethingElseEachTimeIsNamed(t *testing.T) {
	runs := 0
	s := newSuite(t, func(_ *handlerv1.Begin, stream handlerfake.Stream) error {
		runs++
		_, _, err := handlerfake.Ask(stream, &handlerv1.Ask{Questions: []*handlerv1.Question{handlerfake.Form(fmt.Sprint("at-", runs), "Now?", nameForm)}})
		return err
	})
	first := s.call()
	requestState(t, s.call(`"inputResponses":{"at-1":`+accept(`{"name":"Ann"}`)+`}`, `"requestState":`+requestState(t, first)))
	if s.metric("countersign_edge_dropped_answers_total", "reason=question_not_asked_again") != 1 {
		t.Error("it was not counted")
	}
	if logs := s.logs.String(); !strings.Contains(logs, "not asked again") || !strings.Contains(logs, "tool=ask") || !strings.Contains(logs, "handler=fake") || strings.Contains(logs, "Ann") {
		t.Errorf("the log must name the tool and no answer: %s", logs)
	}
}

func TestAMissingCapabilityIsNamedAndTheQuestionIsNotPut(t *testing.T) {
	s := newSuite(t, askThree)
	for capabilities, want := range map[string]string{
		`{}`:                                    `{"requiredCapabilities":{"elicitation":{"form":{}},"roots":{}}}`,
		`{"elicitation":{}}`:                    `{"requiredCapabilities":{"roots":{}}}`,
		`{"elicitation":{"url":{}}}`:            `{"requiredCapabilities":{"elicitation":{"form":{}},"roots":{}}}`,
		`{"roots":{"listChanged":true}}`:        `{"requiredCapabilities":{"elicitation":{"form":{}}}}`,
		`{"sampling":{},"elicitation":{"x":1}}`: `{"requiredCapabilities":{"roots":{}}}`,
	} {
		reply := s.do(request{method: "tools/call", params: `"name":"ask",` + meta(capabilities)})
		if got := reply.parse(t); got.Error == nil || got.Error.Code != -32021 || string(got.Error.Data) != want || reply.status != http.StatusBadRequest {
			t.Errorf("%s: got status %d, %s", capabilities, reply.status, reply.body)
		}
	}
}

func TestEveryRefusedStateGetsTheSameAnswerAndItsOwnReason(t *testing.T) {
	ran := make(chan struct{}, 1000)
	s := newSuite(t, func(begin *handlerv1.Begin, stream handlerfake.Stream) error {
		ran <- struct{}{}
		return askName(begin, stream)
	}, func(o *options) {
		o.principals = identity.TrustedHeader{Header: "X-User", Issuer: "proxy", Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	})
	ask := request{method: "tools/call", params: `"name":"ask","arguments":{"n":9007199254740993},` + meta(allCapabilities), header: map[string]string{"X-User": "ann"}}
	state := requestState(t, s.do(ask).parse(t))
	<-ran
	with := func(state string, change func(*request)) request {
		r := ask
		r.params += `,"inputResponses":{"user_name":` + accept(`{"name":"Ann"}`) + `},"requestState":` + state
		if change != nil {
			change(&r)
		}
		return r
	}
	replace := func(old, with string) func(*request) {
		return func(r *request) { r.params = strings.Replace(r.params, old, with, 1) }
	}
	want := `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"the requestState is not valid"}}`
	for name, test := range map[string]struct {
		request request
		reason  string
	}{
		"tampered":         {with(state[:len(state)-1]+`-TAMPERED"`, nil), "malformed"},
		"invented":         {with(`"invented"`, nil), "malformed"},
		"empty":            {with(`""`, nil), "malformed"},
		"a number":         {with(`7`, nil), "malformed"},
		"an object":        {with(`{}`, nil), "malformed"},
		"with a line feed": {with(state[:9]+`\n`+state[9:], nil), "malformed"},
		"with padding":     {with(state[:len(state)-1]+`="`, nil), "malformed"},
		"too large":        {with(`"`+strings.Repeat("A", 17<<10)+`"`, nil), "too_large"},
		"other arguments":  {with(state, replace("9007199254740993", "9007199254740992")), "other_params"},
		"more arguments":   {with(state, replace(`"n":`, `"x":1,"n":`)), "other_params"},
		"other tool":       {with(state, replace(`"name":"ask"`, `"name":"destroy"`)), "other_target"},
		"other principal":  {with(state, func(r *request) { r.header = map[string]string{"X-User": "bob"} }), "other_principal"},
		"other method": {with(state, func(r *request) {
			r.method = "resources/read"
			r.params = strings.Replace(r.params, `"name":"ask"`, `"uri":"orders://all"`, 1)
		}), "other_method"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &suite{t: t, url: s.url, client: s.client, registry: s.registry}
			before := s.metric("countersign_edge_request_state_refusals_total", "reason="+test.reason)
			if got := s.do(test.request); got.body != want || got.status != http.StatusOK {
				t.Errorf("got status %d, %s", got.status, got.body)
			}
			if s.metric("countersign_edge_request_state_refusals_total", "reason="+test.reason) != before+1 {
				t.Errorf("the reason %s was not counted", test.reason)
			}
			select {
			case <-ran:
				t.Error("the handler ran")
			default:
			}
		})
	}
	for name, r := range map[string]request{
		"an equal number":   with(state, replace("9007199254740993", "9007199254740993.0")),
		"another id":        with(state, func(r *request) { r.id = `"x"` }),
		"other vendor meta": with(state, replace(`"_meta":{`, `"_meta":{"com.example/x":1,`)),
	} {
		if got := s.do(r).parse(t); got.Error != nil {
			t.Errorf("%s: got %+v", name, got.Error)
		}
	}
	logs := s.logs.String()
	for _, secret := range []string{strings.Trim(state, `"`), "Ann", "ann", "bob", "9007199254740993"} {
		if strings.Contains(logs, secret) {
			t.Errorf("the logs hold %q:\n%s", secret, logs)
		}
	}
}

func TestTimeEndsAStateAndAChain(t *testing.T) {
	s := newSuite(t, askThree, func(o *options) { o.lifetime, o.chainLifetime = 10*time.Minute, 15*time.Minute })
	first := requestState(t, s.call())
	s.clock.Add(int64(9 * time.Minute))
	second := requestState(t, s.call(`"inputResponses":{"a":`+accept(`{"name":"Ann"}`)+`}`, `"requestState":`+first))
	s.clock.Add(int64(2 * time.Minute))
	for _, test := range []struct {
		state, reason string
		advance       time.Duration
	}{{first, "expired", 0}, {second, "chain_expired", 5 * time.Minute}} {
		s.clock.Add(int64(test.advance))
		if got := s.call(`"requestState":` + test.state); got.Error == nil || got.Error.Message != "the requestState is not valid" {
			t.Errorf("%s: got %s, %+v", test.reason, got.Result, got.Error)
		}
	}
	for _, reason := range []string{"expired", "chain_expired"} {
		if refused := s.metric("countersign_edge_request_state_refusals_total", "reason="+reason); refused != 1 {
			t.Errorf("refusals counted as %s: %v", reason, refused)
		}
	}
}

// report finishes with why an ask was refused.
func report(ask *handlerv1.Ask) func(*handlerv1.Begin, handlerfake.Stream) error {
	return func(_ *handlerv1.Begin, stream handlerfake.Stream) error {
		_, refused, err := handlerfake.Ask(stream, ask)
		if err != nil {
			return err
		}
		return handlerfake.FinishText(stream, refused.GetReason().String()+": "+refused.GetMessage())
	}
}

func TestAStateThatDoesNotFitIsRefusedAtTheAsk(t *testing.T) {
	s := newSuite(t, report(&handlerv1.Ask{
		Questions: []*handlerv1.Question{handlerfake.Form("k", "K?", nameForm)}, State: map[string]string{"basket": strings.Repeat("x", 2000)},
	}), func(o *options) { o.maxTokenBytes = 2048 })
	if got := text(t, s.call()); !strings.Contains(got, "STATE_TOO_LARGE") || !strings.Contains(got, "2006 bytes") || !strings.Contains(got, "2048 characters") {
		t.Errorf("got %s", got)
	}
	if s.metric("countersign_edge_ask_refusals_total", "reason=state_too_large") != 1 {
		t.Error("it was not counted")
	}
}

func TestAskingForeverIsRefusedAtTheAsk(t *testing.T) {
	s := newSuite(t, report(&handlerv1.Ask{Questions: []*handlerv1.Question{handlerfake.Form("k", "K?", nameForm)}}), func(o *options) { o.maxRound = 3 })
	got := s.call()
	for range 2 {
		got = s.call(`"requestState":` + requestState(t, got))
	}
	if got := text(t, s.call(`"requestState":`+requestState(t, got))); !strings.Contains(got, "TOO_MANY_ROUNDS") {
		t.Errorf("got %s", got)
	}
}

func TestQuestionsThatCannotBePutAreRefusedAtTheAsk(t *testing.T) {
	for name, questions := range map[string][]*handlerv1.Question{
		"none":      nil,
		"same key":  {handlerfake.Form("k", "A?", nameForm), handlerfake.Form("k", "B?", nameForm)},
		"bad form":  {handlerfake.Form("k", "A?", `{"type":"object","properties":{"x":{"type":"object"}}}`)},
		"no schema": {handlerfake.Form("k", "A?", ``)},
	} {
		s := newSuite(t, report(&handlerv1.Ask{Questions: questions}))
		if got := text(t, s.call()); !strings.Contains(got, "INVALID_QUESTION") {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

// Seal is refused while the sealer is gone.
func (s *switchable) Seal(ctx context.Context, request *sealv1.SealRequest, options ...grpc.CallOption) (*sealv1.SealResponse, error) {
	if gone := s.gone.Load(); gone != nil {
		return nil, *gone
	}
	return s.SealerServiceClient.Seal(ctx, request, options...)
}

// Open is refused while the sealer is gone.
func (s *switchable) Open(ctx context.Context, request *sealv1.OpenRequest, options ...grpc.CallOption) (*sealv1.OpenResponse, error) {
	if gone := s.gone.Load(); gone != nil {
		return nil, *gone
	}
	return s.SealerServiceClient.Open(ctx, request, options...)
}

func TestAnUnavailableSealerIsNeverAnInvalidState(t *testing.T) {
	s := newSuite(t, askName)
	state := requestState(t, s.call())
	retry := request{method: "tools/call", params: `"name":"ask",` + meta(allCapabilities) + `,"inputResponses":{"user_name":` + accept(`{"name":"Ann"}`) + `},"requestState":` + state}
	for _, code := range []codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Internal, codes.Unknown, codes.PermissionDenied, codes.Unimplemented} {
		gone := status.Error(code, "no keys")
		s.sealer.gone.Store(&gone)
		for name, r := range map[string]request{"open": retry, "seal": {method: "tools/call", params: `"name":"ask",` + meta(allCapabilities)}} {
			got := s.do(r)
			if p := got.parse(t); got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" || p.Error == nil || p.Error.Code != -32603 {
				t.Errorf("%s, %v: got status %d, %s", name, code, got.status, got.body)
			}
		}
		if got := s.do(request{method: "tools/list", params: meta(`{}`)}); got.status != http.StatusOK {
			t.Errorf("a request that needs no seal: got status %d", got.status)
		}
	}
	s.sealer.gone.Store(nil)
	text(t, s.do(retry).parse(t))
	if got := s.metric("countersign_edge_request_state_refusals_total"); got != 0 {
		t.Errorf("refusals counted: %v", got)
	}
}

func TestClosingTheResponseCancelsTheHandler(t *testing.T) {
	began, ended := make(chan struct{}), make(chan error, 1)
	s := newSuite(t, func(_ *handlerv1.Begin, stream handlerfake.Stream) error {
		close(began)
		<-stream.Context().Done()
		ended <- stream.Context().Err()
		return stream.Context().Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask",`+meta(`{}`)+`}}`))
		for name, value := range map[string]string{"Content-Type": "application/json", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "ask"} {
			r.Header.Set(name, value)
		}
		if response, err := s.client.Do(r); err == nil {
			response.Body.Close()
			t.Error("there was a response")
		}
	}()
	<-began
	cancel()
	<-done
	if err := <-ended; err == nil {
		t.Error("the handler's stream was not cancelled")
	}
}

func TestAClientThatDoesNotReadEndsItsRequest(t *testing.T) {
	ended := make(chan struct{})
	s := newSuite(t, func(_ *handlerv1.Begin, stream handlerfake.Stream) error {
		defer close(ended)
		for done := 1.0; ; done++ {
			err := stream.Send(&handlerv1.InvokeResponse{Message: &handlerv1.InvokeResponse_Progress{
				Progress: &handlerv1.Progress{Progress: done, Message: strings.Repeat("x", 1<<16)},
			}})
			if err != nil {
				return err
			}
		}
	}, func(o *options) { o.timeout, o.writeTimeout = time.Hour, 100*time.Millisecond })
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask",` + meta(`{}`, `"progressToken":1`) + `}}`
	_, err = fmt.Fprintf(connection, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: ask\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	if err != nil {
		t.Fatal(err)
	}
	<-ended
}

func TestAHandlerThatTakesTooLongIsCutOff(t *testing.T) {
	s := newSuite(t, func(_ *handlerv1.Begin, stream handlerfake.Stream) error {
		<-stream.Context().Done()
		return stream.Context().Err()
	}, func(o *options) { o.timeout = 50 * time.Millisecond })
	if got := s.call(); got.Error == nil || got.Error.Code != -32603 || got.Error.Message != "the request took too long" {
		t.Errorf("got %s, %+v", got.Result, got.Error)
	}
}
