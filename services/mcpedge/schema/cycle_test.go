package schema

import (
	"strings"
	"testing"
)

func TestASchemaThatLeadsToItselfIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"the root":               `{"$ref":"#"}`,
		"with a type":            `{"type":"object","$ref":"#"}`,
		"a definition":           `{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"$ref":"#/$defs/a"}}}`,
		"two of each other":      `{"items":{"$ref":"#/$defs/a"},"$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}}}`,
		"an alternative":         `{"anyOf":[{"type":"string"},{"$ref":"#"}]}`,
		"a condition":            `{"if":{"type":"string"},"else":{"$ref":"#"}}`,
		"a dependent":            `{"dependentSchemas":{"a":{"$ref":"#"}}}`,
		"a dynamic reference":    `{"additionalProperties":{"$dynamicAnchor":"x","$dynamicRef":"#x"}}`,
		"draft-07 dependencies":  `{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":{"$ref":"#"}}}`,
		"draft-07 items":         `{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"$ref":"#/items/0"}]}`,
		"behind another pattern": `{"patternProperties":{"^a":{"oneOf":[{"$ref":"#/patternProperties/%5Ea"}]}}}`,
	} {
		if _, err := Compile([]byte(text)); err == nil || !strings.Contains(err.Error(), "leads to itself") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestRecursionIntoTheValueIsFine(t *testing.T) {
	for name, text := range map[string]string{
		"a tree":                  `{"$defs":{"node":{"properties":{"children":{"items":{"$ref":"#/$defs/node"}},"next":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/node"}]}}}},"$ref":"#/$defs/node"}`,
		"the same one twice":      `{"$defs":{"a":{"maxProperties":9}},"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}]}`,
		"an extensible tree":      `{"$dynamicAnchor":"node","additionalProperties":{"$dynamicRef":"#node"}}`,
		"the dialect's own":       `{"properties":{"a":{"$ref":"https://json-schema.org/draft/2020-12/schema"}}}`,
		"draft-07's own":          `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"$ref":"http://json-schema.org/draft-07/schema#"}}}`,
		"a definition never used": `{"$defs":{"a":{"$ref":"#/$defs/a"}}}`,
	} {
		schema, err := Compile([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := schema.Validate([]byte(`{"a":{"type":"object"}}`)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
