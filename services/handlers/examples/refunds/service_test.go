package main

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	handler "github.com/countersign-mcp/countersign/services/handlers/go"
	"github.com/countersign-mcp/countersign/services/handlers/go/handlertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// watchedLedger reports each refund as an effect, and is not idempotent: a refund
// that happens twice is found.
type watchedLedger struct{ ledger }

func (l watchedLedger) refund(ctx context.Context, idempotencyKey string, amountCents int64) string {
	handlertest.Effect(ctx, "refund")
	return l.ledger.refund(ctx, idempotencyKey, amountCents)
}

func newWatchedServer() *handler.Server {
	shop := newShop()
	shop.ledger = watchedLedger{shop.ledger}
	return newServer(shop)
}

func refund(t *testing.T, answers handlertest.Answers) (*handlertest.Outcome, refundOutput) {
	t.Helper()
	outcome := handlertest.Run(t, newWatchedServer,
		handlertest.CallTool("refund", map[string]string{"order_id": "A-1001"}), answers)
	var output refundOutput
	if err := json.Unmarshal([]byte(outcome.Structured()), &output); err != nil {
		t.Fatal(err)
	}
	return outcome, output
}

func TestRefundsTheChosenItemsOnce(t *testing.T) {
	outcome, output := refund(t, handlertest.Answers{
		"items":   handlertest.Accept(map[string][]string{"items": {"CUP-2", "TEA-250"}}),
		"confirm": handlertest.Confirm(),
	})
	if output.AmountCents != 3650 || output.Currency != "EUR" || !strings.HasPrefix(output.RefundID, "R-") {
		t.Errorf("refunded %+v", output)
	}
	if !slices.Equal(output.Items, []string{"TEA-250", "CUP-2"}) {
		t.Errorf("refunded the items %q", output.Items)
	}
	if !slices.Equal(outcome.Keys(), []string{"items", "confirm"}) || outcome.Attempts != 3 {
		t.Errorf("asked %q in %d attempts", outcome.Keys(), outcome.Attempts)
	}
	if message := outcome.Rounds[1][0].GetElicitForm().GetMessage(); !strings.Contains(message, "36.50 EUR") {
		t.Errorf("confirmed %q", message)
	}
}

func TestRefundsNothingWhenTheUserDeclines(t *testing.T) {
	chosen := handlertest.Accept(map[string][]string{"items": {"POT-1"}})
	for name, answers := range map[string]handlertest.Answers{
		"the items":           {"items": handlertest.Decline()},
		"by closing the form": {"items": handlertest.Cancel()},
		"the confirmation":    {"items": chosen, "confirm": handlertest.Decline()},
		"by not ticking":      {"items": chosen, "confirm": handlertest.Accept(map[string]bool{"confirm": false})},
	} {
		t.Run(name, func(t *testing.T) {
			outcome, output := refund(t, answers)
			if output.RefundID != "" || output.AmountCents != 0 || len(output.Items) != 0 {
				t.Errorf("refunded %+v", output)
			}
			if outcome.IsError() || !strings.HasPrefix(output.Message, "Nothing was refunded") {
				t.Errorf("said %q", output.Message)
			}
		})
	}
}

func TestAnUnknownOrderIsAFailureThatAModelReads(t *testing.T) {
	outcome := handlertest.Run(t, newWatchedServer,
		handlertest.CallTool("refund", map[string]string{"order_id": "Z-1"}), nil)
	if !outcome.IsError() || !strings.Contains(outcome.Text(), "list_orders") {
		t.Errorf("got %v", outcome.Finish)
	}
}

func TestOneIdempotencyKeyIsOneRefund(t *testing.T) {
	ledger := newShop().ledger
	first := ledger.refund(t.Context(), "chain-1", 100)
	if again := ledger.refund(t.Context(), "chain-1", 100); again != first {
		t.Errorf("refunded %q and %q", first, again)
	}
	if other := ledger.refund(t.Context(), "chain-2", 100); other == first {
		t.Errorf("two chains share the refund %q", first)
	}
}

func TestTheCatalogSaysThatARefundIsDestructive(t *testing.T) {
	client := handlertest.Serve(t, newServer(newShop()))
	response, err := client.Describe(t.Context(), new(handlerv1.DescribeRequest))
	if err != nil {
		t.Fatal(err)
	}
	tools := response.GetCatalog().GetTools()
	if len(tools) != 2 || tools[0].GetName() != "list_orders" || tools[1].GetName() != "refund" {
		t.Fatalf("the tools are %v", tools)
	}
	if !tools[0].GetAnnotations().GetReadOnlyHint() || !tools[1].GetAnnotations().GetDestructiveHint() {
		t.Errorf("the annotations are %v and %v", tools[0].GetAnnotations(), tools[1].GetAnnotations())
	}
}

func TestOrdersAreListedReadAndCompleted(t *testing.T) {
	listed := handlertest.Run(t, newWatchedServer, handlertest.CallTool("list_orders", nil), nil)
	if !strings.Contains(listed.Structured(), `"price_cents":12900`) {
		t.Errorf("listed %s", listed.Structured())
	}
	read := handlertest.Run(t, newWatchedServer, handlertest.ReadTemplated("orders://A-1002", "orders://{id}"), nil)
	contents := read.Finish.GetReadResource().GetContents()
	if len(contents) != 1 || contents[0].GetUri() != "orders://A-1002" || !strings.Contains(contents[0].GetText(), "Grace") {
		t.Errorf("read %v", contents)
	}
	missing := handlertest.Run(t, newWatchedServer, handlertest.ReadTemplated("orders://A-9", "orders://{id}"), nil)
	if kind := missing.Finish.GetError().GetKind(); kind != handlerv1.ErrorKind_ERROR_KIND_RESOURCE_NOT_FOUND {
		t.Errorf("reading a missing order is %v", kind)
	}
	all := handlertest.Run(t, newWatchedServer, handlertest.ReadResource("orders://all"), nil)
	if !strings.Contains(all.Finish.GetReadResource().GetContents()[0].GetText(), "Edsger") {
		t.Errorf("read %v", all.Finish)
	}
	completed, err := handlertest.Serve(t, newServer(newShop())).Complete(t.Context(), &handlerv1.CompleteRequest{
		Reference:    &handlerv1.CompleteRequest_UriTemplate{UriTemplate: "orders://{id}"},
		ArgumentName: "id", ArgumentValue: "A-100",
	})
	if err != nil || !slices.Equal(completed.GetValues(), []string{"A-1001", "A-1002", "A-1003"}) {
		t.Errorf("completed %v, %v", completed, err)
	}
}

func TestThePromptNamesTheCustomerAndTheTone(t *testing.T) {
	for tone, want := range map[string]string{"": "friendly", "formal": "formal"} {
		outcome := handlertest.Run(t, newWatchedServer,
			handlertest.GetPrompt("refund_letter", map[string]string{"order_id": "A-1001", "tone": tone}), nil)
		if text := outcome.Text(); !strings.Contains(text, "Ada") || !strings.Contains(text, want) {
			t.Errorf("with the tone %q the prompt is %q", tone, text)
		}
	}
	unknown := handlertest.Run(t, newWatchedServer,
		handlertest.GetPrompt("refund_letter", map[string]string{"order_id": "Z-1"}), nil)
	if kind := unknown.Finish.GetError().GetKind(); kind != handlerv1.ErrorKind_ERROR_KIND_INVALID_PARAMS {
		t.Errorf("an unknown order is %v", kind)
	}
}
