package ask_test

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign-mcp/countersign/client/ask"
)

// FuzzForm has any schema read and any text typed: what a field takes must be valid
// JSON that its schema allows.
func FuzzForm(f *testing.F) {
	f.Add(everyKind, "1")
	f.Add(everyKind, "a@example.com")
	f.Add(`{"type":"object","properties":{"a":{"enum":[1,"x"],"default":null}}}`, "x, x")
	f.Fuzz(func(t *testing.T, schema, typed string) {
		asks, err := ask.Parse(jsontext.Value(`{"k":{"method":"elicitation/create","params":{"message":"m","requestedSchema":` + schema + `}}}`))
		if err != nil {
			return
		}
		for i := range asks {
			if asks[i].Form == nil {
				continue
			}
			for _, field := range asks[i].Form.Fields {
				value, err := field.Parse(typed)
				if err != nil {
					continue
				}
				if !value.IsValid() || field.Check(value) != nil {
					t.Fatalf("the field %q took %s for %q", field.Name, value, typed)
				}
			}
			if !asks[i].Form.Defaults().IsValid() {
				t.Fatalf("the defaults %s are not JSON", asks[i].Form.Defaults())
			}
		}
	})
}
