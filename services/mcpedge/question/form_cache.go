package question

import (
	"sync"

	"github.com/countersign-mcp/countersign/services/mcpedge/schema"
)

// What is kept of forms that were compiled: so many, each with a text no longer than
// that. When there is no room, all are forgotten: a handler whose forms differ from
// call to call must not push memory up.
const (
	maxForms     = 256
	maxFormBytes = 4096
)

// forms are the forms that were compiled lately. A handler asks with the same few, and
// each of them at least twice: in the round that puts the question and in the one that
// takes the answer. To compile a form costs more than all else that a question needs.
var forms = formCache{compiled: map[string]*schema.Schema{}}

type formCache struct {
	mu       sync.RWMutex
	compiled map[string]*schema.Schema
}

// compile returns the compiled form of a text. An error is not kept.
func (c *formCache) compile(text []byte) (*schema.Schema, error) {
	c.mu.RLock()
	form := c.compiled[string(text)]
	c.mu.RUnlock()
	if form != nil {
		return form, nil
	}
	form, err := compileForm(text)
	if err != nil || len(text) > maxFormBytes {
		return form, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.compiled) >= maxForms {
		clear(c.compiled)
	}
	c.compiled[string(text)] = form
	return form, nil
}
