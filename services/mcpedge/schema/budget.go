package schema

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	maxSchemaBytes    = 256 << 10
	maxSchemaDepth    = 64
	maxSchemaKeywords = 20_000
	// maxCostlyDepth is how deeply a value may be nested that is checked against a
	// costly schema: each level can multiply the work.
	maxCostlyDepth = 24
)

// keywords counts what makes a schema costly.
type keywords struct {
	all, compositions, references int
}

// count counts the keywords of a schema, whether they stand where they mean
// something or not.
func (k *keywords) count(value any, depth int) error {
	if depth > maxSchemaDepth {
		return fmt.Errorf("the schema is nested deeper than %d", maxSchemaDepth)
	}
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			if err := k.count(element, depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		if k.all += len(value); k.all > maxSchemaKeywords {
			return fmt.Errorf("the schema has more than %d keywords", maxSchemaKeywords)
		}
		for keyword, member := range value {
			switch {
			case slices.Contains([]string{"allOf", "anyOf", "oneOf", "not", "if", "dependentSchemas"}, keyword):
				k.compositions++
			case slices.Contains([]string{"$ref", "$dynamicRef"}, keyword):
				k.references++
			}
			if err := k.count(member, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// ErrBudget means that a value was too costly to check. It says nothing about the value.
var ErrBudget = errors.New("the value takes too long to check against its schema")

// budget bounds validations that can take exponential time. The library cannot be
// stopped, so one that is over its time goes on in the background until it is done;
// there are at most as many of these as there are places, and while all places are
// taken nothing costly is begun.
type budget struct {
	time   time.Duration
	places chan struct{}
}

// costly is the budget of the process: what it protects is the processor.
var costly = newBudget(500*time.Millisecond, 16)

func newBudget(limit time.Duration, places int) *budget {
	return &budget{time: limit, places: make(chan struct{}, places)}
}

func (b *budget) run(validate func() error) error {
	timer := time.NewTimer(b.time)
	defer timer.Stop()
	select {
	case b.places <- struct{}{}:
	case <-timer.C:
		return ErrBudget
	}
	done := make(chan error, 1)
	go func() {
		defer func() { <-b.places }()
		done <- validate()
	}()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return ErrBudget
	}
}
