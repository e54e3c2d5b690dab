package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	handler "github.com/countersign-mcp/countersign/services/handlers/go"
)

func newServer(shop *shop) *handler.Server {
	server := handler.NewServer("refunds",
		handler.WithInstructions("Look up an order with list_orders before refunding it. "+
			"The user chooses the items and confirms the amount; do not ask for either yourself."),
		handler.WithCacheHint(handler.CacheHint{TimeToLive: time.Minute}))
	handler.Tool(server, "refund", shop.refund,
		handler.Title("Refund an order"),
		handler.Description("Refunds items of an order. The user is asked which items and to confirm the amount."),
		handler.Destructive())
	handler.Tool(server, "list_orders", shop.listOrders,
		handler.Title("List orders"),
		handler.Description("Lists all orders with their items and prices."),
		handler.ReadOnly(), handler.ClosedWorld())
	handler.Prompt(server, "refund_letter", shop.refundLetter,
		handler.Title("Write a refund letter"),
		handler.Description("Asks the model for a short, friendly letter about the refund of an order."),
		handler.Complete("order_id", shop.completeOrder))
	handler.Resource(server, "orders://all", "all_orders", shop.readAll,
		handler.Description("All orders of the shop."), handler.MIMEType("application/json"))
	handler.ResourceTemplate(server, "orders://{id}", "order", shop.readOrder,
		handler.Description("One order by its number."), handler.MIMEType("application/json"),
		handler.Complete("id", shop.completeOrder))
	return server
}

//nolint:tagliatelle // the example's arguments and results are snake case, as tools commonly are
type refundInput struct {
	OrderID string `json:"order_id" jsonschema:"The number of the order, for example A-1001."`
}

//nolint:tagliatelle // the example's arguments and results are snake case, as tools commonly are
type refundOutput struct {
	RefundID    string   `json:"refund_id" jsonschema:"The number of the refund; empty when nothing was refunded."`
	AmountCents int64    `json:"amount_cents" jsonschema:"What was refunded, in cents."`
	Currency    string   `json:"currency"`
	Items       []string `json:"items" jsonschema:"The article numbers that were refunded."`
	Message     string   `json:"message" jsonschema:"What happened, in a sentence."`
}

// itemsForm is the form of the first question. What there is to choose from is known
// only when the order is.
type itemsForm struct {
	Items []string `json:"items" title:"Items to refund" minItems:"1"`
}

// refund is safe to repeat up to each question: it only looks things up. The refund
// itself comes after the last one, under a key that all attempts share.
func (s *shop) refund(ctx *handler.Context, in refundInput) (refundOutput, error) {
	order, found := s.orders[in.OrderID]
	if !found {
		return refundOutput{}, fmt.Errorf("there is no order %q; list_orders shows the orders there are", in.OrderID)
	}
	var choices []handler.Choice
	for _, item := range order.Items {
		choices = append(choices, handler.Choice{
			Value: item.SKU, Title: item.Name + ", " + money(item.PriceCents, order.Currency),
		})
	}
	chosen, err := handler.Elicit[itemsForm](ctx, "Which items of order "+order.ID+" shall be refunded?",
		handler.Key("items"), handler.Choices("items", choices...))
	if err != nil {
		return refundOutput{}, err
	}
	items, total := order.pick(chosen.Content.Items)
	if !chosen.Accepted() || len(items) == 0 {
		return nothingRefunded(order), nil
	}
	action, err := ctx.Confirm(fmt.Sprintf("Refund %s for %s of order %s?",
		money(total, order.Currency), names(items), order.ID), handler.Key("confirm"))
	if err != nil {
		return refundOutput{}, err
	}
	if action != handler.Accept {
		return nothingRefunded(order), nil
	}
	refundID := s.ledger.refund(ctx, ctx.ChainID(), total)
	output := refundOutput{RefundID: refundID, AmountCents: total, Currency: order.Currency}
	for _, item := range items {
		output.Items = append(output.Items, item.SKU)
	}
	output.Message = fmt.Sprintf("Refunded %s for %s.", money(total, order.Currency), names(items))
	return output, nil
}

func nothingRefunded(order order) refundOutput {
	return refundOutput{
		Currency: order.Currency, Items: []string{},
		Message: "Nothing was refunded for order " + order.ID + ": the user did not want it.",
	}
}

func names(items []item) string {
	list := make([]string, 0, len(items))
	for _, item := range items {
		list = append(list, item.Name)
	}
	return strings.Join(list, " and ")
}

type ordersOutput struct {
	Orders []order `json:"orders"`
}

func (s *shop) listOrders(*handler.Context, struct{}) (ordersOutput, error) {
	return ordersOutput{Orders: s.list()}, nil
}

//nolint:tagliatelle // the example's arguments and results are snake case, as tools commonly are
type letterInput struct {
	OrderID string `json:"order_id" title:"Order" jsonschema:"The number of the order."`
	Tone    string `json:"tone,omitempty" title:"Tone" jsonschema:"How it should sound, for example formal."`
}

func (s *shop) refundLetter(_ *handler.Context, in letterInput) ([]handler.Message, error) {
	order, found := s.orders[in.OrderID]
	if !found {
		return nil, handler.InvalidParams("there is no such order")
	}
	tone := in.Tone
	if tone == "" {
		tone = "friendly"
	}
	return []handler.Message{handler.User(handler.Text(fmt.Sprintf(
		"Write a short, %s letter to %s that their order %s is being refunded.",
		tone, order.Customer, order.ID)))}, nil
}

func (s *shop) readAll(*handler.Context) (*handler.ReadResult, error) {
	return jsonResource(s.list())
}

type orderVariables struct {
	ID string `json:"id"`
}

func (s *shop) readOrder(_ *handler.Context, variables orderVariables) (*handler.ReadResult, error) {
	order, found := s.orders[variables.ID]
	if !found {
		return nil, handler.NotFound()
	}
	return jsonResource(order)
}

func jsonResource(value any) (*handler.ReadResult, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode an order: %w", err)
	}
	return handler.Read(handler.TextContents("application/json", string(text))), nil
}

func (s *shop) completeOrder(_ context.Context, request handler.CompletionRequest) (handler.Suggestions, error) {
	var suggestions handler.Suggestions
	for _, order := range s.list() {
		if strings.HasPrefix(order.ID, request.Value) {
			suggestions.Values = append(suggestions.Values, order.ID)
		}
	}
	return suggestions, nil
}
