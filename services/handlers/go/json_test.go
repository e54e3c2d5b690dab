package handler

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
)

// FuzzDecodeArguments compares the strict decoder with encoding/json: what it takes
// encoding/json takes as well and reads the same, and no number loses its value.
func FuzzDecodeArguments(f *testing.F) {
	for _, seed := range []string{
		`{"n":9007199254740993,"any":[1.10,{"a":1e400}],"text":"é\u0000"}`,
		`{"N":1}`, `{"n":1,"n":2}`, `{"any":{"a":1,"a":2}}`, `{"n":1.0}`, `{"other":1}`, `{"raw":[ 1 ]}`,
		"{\"text\":\"\xff\"}", `{"text":"\ud800"}`, ``, `null`, `[]`, `{"n":1}{}`, `{"number":-0.0}`,
	} {
		f.Add([]byte(seed))
	}
	type arguments struct {
		N      int64           `json:"n"`
		Number json.Number     `json:"number,omitempty"`
		Text   string          `json:"text"`
		Any    any             `json:"any"`
		Raw    json.RawMessage `json:"raw,omitempty"`
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		strict, err := decodeArguments[arguments](data, nil)
		if err != nil {
			if len(err.Error()) > 200+len(data) {
				t.Errorf("the error is longer than what it is about: %v", err)
			}
			return
		}
		if len(data) == 0 {
			return
		}
		var loose arguments
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.UseNumber()
		if err := decoder.Decode(&loose); err != nil {
			t.Fatalf("encoding/json refuses what the strict decoder takes: %v", err)
		}
		one, oneErr := encodeJSON(strict)
		two, twoErr := encodeJSON(loose)
		if oneErr != nil || twoErr != nil {
			t.Fatal(errors.Join(oneErr, twoErr))
		}
		if !bytes.Equal(one, two) {
			t.Errorf("strict: %s\nloose:  %s", one, two)
		}
		if number, isNumber := strict.Any.(json.Number); isNumber && !strings.ContainsAny(string(number), "eE.") {
			if _, ok := new(big.Int).SetString(string(number), 10); !ok {
				t.Errorf("the integer %q has lost its digits", number)
			}
		}
	})
}

func TestASampleIsReadByExactNames(t *testing.T) {
	sample := `{"role":"assistant","content":[{"type":"text","text":"yes","Text":"no","future":{"x":1}}],"model":"one",` +
		`"Model":"two","MODEL":3,"ſtopReason":4,"future":1e400}`
	question := SampleQuestion(SampleRequest{})
	err := question.accept(&handlerv1.Answer{Kind: &handlerv1.Answer_Sampled{Sampled: &handlerv1.Sampled{Result: []byte(sample)}}})
	if err != nil {
		t.Fatal(err)
	}
	got := question.Answer()
	if got.Role != RoleAssistant || got.Model != "one" || got.StopReason != "" || got.Text() != "yes" || string(got.Raw) != sample {
		t.Errorf("got %+v, text %q", got, got.Text())
	}
}

func TestAnErrorAboutTextThatIsNotJSONDoesNotQuoteIt(t *testing.T) {
	for _, text := range []string{`{"x":"secret \ud800"}`, "\"secret\xff\"", `secret`, `{"x":secret}`, `{} secret`, `{"x":"secret`} {
		_, err := encodeJSON(map[string]any{"in": json.RawMessage(text)})
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: got %v", text, err)
		}
		if err != nil && !strings.Contains(err.Error(), "malformed JSON at byte") {
			t.Errorf("%q: got %v, want it to say where", text, err)
		}
	}
}
