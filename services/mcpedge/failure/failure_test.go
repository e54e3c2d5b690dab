package failure

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-mcp/countersign/services/mcpedge/jsonrpc"
)

// secret stands for what a cause may hold and a client must never read.
const secret = "dial tcp 10.0.0.7:9101: key 0f3a"

func TestEveryReasonHasAnAnswerWithoutItsCause(t *testing.T) {
	for _, reason := range Reasons() {
		t.Run(string(reason), func(t *testing.T) {
			answer := AnswerTo(fmt.Errorf("call: %w", New(reason, errors.New(secret))))
			if answer.Message == "" || answer.Code == 0 || answer.HTTPStatus < 200 {
				t.Errorf("incomplete: %+v", answer)
			}
			text := string(jsonrpc.AppendError(nil, nil, answer.Code, answer.Message, answer.Data))
			if strings.Contains(text, secret) {
				t.Errorf("the client reads the cause: %s", text)
			}
			later := answer.HTTPStatus == http.StatusServiceUnavailable || answer.HTTPStatus == http.StatusTooManyRequests
			if later != (answer.RetryAfter > 0) {
				t.Errorf("status %d with Retry-After %v", answer.HTTPStatus, answer.RetryAfter)
			}
		})
	}
}

func TestARefusedRequestStateIsFrozen(t *testing.T) {
	want := `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"the requestState is not valid"}}`
	for _, e := range []*Error{
		New(RequestStateRefused, errors.New(secret)),
		{Reason: RequestStateRefused, Message: "expired", Data: []byte(`{"reason":"expired"}`), Code: -1, Detail: "EXPIRED"},
	} {
		answer := AnswerTo(e)
		if got := string(jsonrpc.AppendError(nil, jsonrpc.ID("1"), answer.Code, answer.Message, answer.Data)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestUnavailableIsNeverAnsweredAsInvalid(t *testing.T) {
	for _, reason := range []Reason{SealerUnavailable, HandlerUnavailable} {
		answer := AnswerTo(New(reason, nil))
		if answer.Code != jsonrpc.CodeInternalError || answer.HTTPStatus != http.StatusServiceUnavailable || answer.RetryAfter == 0 {
			t.Errorf("%s: %+v", reason, answer)
		}
	}
}

func TestAForeignErrorIsInternal(t *testing.T) {
	for _, err := range []error{errors.New(secret), &Error{Reason: "invented"}} {
		if answer := AnswerTo(err); answer.Code != jsonrpc.CodeInternalError || answer.Message != "internal error" {
			t.Errorf("%v: %+v", err, answer)
		}
	}
}
