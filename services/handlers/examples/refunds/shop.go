package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// order is one order of the shop. Amounts are integers of the currency's smallest
// unit: money is never a floating-point number.
type order struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	Currency string `json:"currency"`
	Items    []item `json:"items"`
}

type item struct {
	SKU        string `json:"sku"`
	Name       string `json:"name"`
	PriceCents int64  `json:"price_cents"` //nolint:tagliatelle // the example's arguments and results are snake case, as tools commonly are
}

// shop holds orders and the ledger of refunds.
type shop struct {
	orders map[string]order
	// ledger is what the shop performs refunds with; a test looks over its shoulder.
	ledger ledger
}

// ledger performs refunds. Like a payment API it takes an idempotency key: a refund
// with the same key is the same refund.
type ledger interface {
	refund(ctx context.Context, idempotencyKey string, amountCents int64) (refundID string)
}

func newShop() *shop {
	all := []order{
		{ID: "A-1001", Customer: "Ada", Currency: "EUR", Items: []item{
			{SKU: "TEA-250", Name: "Green tea, 250 g", PriceCents: 1250},
			{SKU: "POT-1", Name: "Cast-iron teapot", PriceCents: 5900},
			{SKU: "CUP-2", Name: "Two porcelain cups", PriceCents: 2400},
		}},
		{ID: "A-1002", Customer: "Grace", Currency: "USD", Items: []item{
			{SKU: "BOOK-9", Name: "Handbook of knots", PriceCents: 1899},
			{SKU: "ROPE-20", Name: "Hemp rope, 20 m", PriceCents: 3450},
		}},
		{ID: "A-1003", Customer: "Edsger", Currency: "EUR", Items: []item{
			{SKU: "PEN-1", Name: "Fountain pen", PriceCents: 12900},
		}},
	}
	orders := make(map[string]order, len(all))
	for _, order := range all {
		orders[order.ID] = order
	}
	return &shop{orders: orders, ledger: &memoryLedger{refunds: make(map[string]string)}}
}

// list returns the orders by their numbers.
func (s *shop) list() []order {
	var all []order
	for _, id := range slices.Sorted(maps.Keys(s.orders)) {
		all = append(all, s.orders[id])
	}
	return all
}

// pick returns the items of the order with these numbers, in the order's order, and
// what they cost together.
func (o order) pick(skus []string) (items []item, totalCents int64) {
	for _, item := range o.Items {
		if slices.Contains(skus, item.SKU) {
			items = append(items, item)
			totalCents += item.PriceCents
		}
	}
	return items, totalCents
}

// money prints an amount for a person.
func money(cents int64, currency string) string {
	return fmt.Sprintf("%d.%02d %s", cents/100, cents%100, currency)
}

// memoryLedger forgets its refunds when the process ends. A real one is a payment
// API or a table with a unique column.
type memoryLedger struct {
	mutex   sync.Mutex
	refunds map[string]string
}

func (l *memoryLedger) refund(_ context.Context, idempotencyKey string, _ int64) string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if id, done := l.refunds[idempotencyKey]; done {
		return id
	}
	hash := sha256.Sum256([]byte(idempotencyKey))
	id := "R-" + hex.EncodeToString(hash[:6])
	l.refunds[idempotencyKey] = id
	return id
}
