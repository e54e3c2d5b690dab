package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// checkCycles fails for a schema that leads to itself without going into the value,
// as by a `$ref` to where it stands. No value can be checked against it (JSON Schema
// 2020-12 core, section 9.4.1), which would otherwise come out in a client's call.
// Recursion that goes into the value ends with the value, and is fine.
func checkCycles(root *jsonschema.Schema) error {
	w := cycleWalk{entered: map[*jsonschema.Schema]bool{}, done: map[*jsonschema.Schema]bool{}, left: []*jsonschema.Schema{root}}
	for len(w.left) > 0 {
		next := w.left[len(w.left)-1]
		w.left = w.left[:len(w.left)-1]
		if err := w.visit(next); err != nil {
			return err
		}
	}
	return nil
}

// cycleWalk walks through what a schema uses: at once what applies to the same value,
// and later what applies to a part of it.
type cycleWalk struct {
	// entered are the schemas that apply to the value at hand.
	entered map[*jsonschema.Schema]bool
	// done are those that have been walked through.
	done map[*jsonschema.Schema]bool
	left []*jsonschema.Schema
}

func (w *cycleWalk) visit(s *jsonschema.Schema) error {
	if w.entered[s] {
		return fmt.Errorf("the schema at %q leads to itself without going into the value, so that no value can be checked", strings.TrimPrefix(s.Location, location))
	}
	if w.done[s] {
		return nil
	}
	w.entered[s] = true
	for _, other := range sameValue(s) {
		if other == nil {
			continue
		}
		if err := w.visit(other); err != nil {
			return err
		}
	}
	delete(w.entered, s)
	w.done[s] = true
	for _, part := range parts(s) {
		if part != nil {
			w.left = append(w.left, part)
		}
	}
	return nil
}

// sameValue returns the schemas that a schema applies to the value itself, nil among
// them.
func sameValue(s *jsonschema.Schema) []*jsonschema.Schema {
	list := slices.Concat([]*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else}, s.AllOf, s.AnyOf, s.OneOf)
	if s.DynamicRef != nil {
		list = append(list, s.DynamicRef.Ref)
	}
	for _, dependent := range s.DependentSchemas {
		list = append(list, dependent)
	}
	for _, dependent := range s.Dependencies {
		list = append(list, in(dependent)...)
	}
	return list
}

// parts returns the schemas that a schema applies to parts of the value, nil among
// them.
func parts(s *jsonschema.Schema) []*jsonschema.Schema {
	list := slices.Concat(
		[]*jsonschema.Schema{s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems, s.ContentSchema},
		s.PrefixItems, in(s.AdditionalProperties), in(s.Items), in(s.AdditionalItems),
	)
	for _, property := range s.Properties {
		list = append(list, property)
	}
	for _, property := range s.PatternProperties {
		list = append(list, property)
	}
	return list
}

// in returns the schemas in a keyword that takes other things too.
func in(keyword any) []*jsonschema.Schema {
	switch keyword := keyword.(type) {
	case *jsonschema.Schema:
		return []*jsonschema.Schema{keyword}
	case []*jsonschema.Schema:
		return keyword
	default:
		return nil
	}
}
