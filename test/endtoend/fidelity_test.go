package endtoend_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	handler "github.com/countersign-mcp/countersign/services/handlers/go"
)

// delicate holds what parsers like to change: integers beyond a double, numbers
// beyond any, digits that say how exact a number is, escapes, and names that fold
// into one another. `requeſtState` has a long s (U+017F).
const delicate = `{"a":9007199254740993,"b":-9223372036854775808,"c":1e400,"d":1.0,"e":0.1000,"f":-0,"g":1E+2,` +
	`"h":18446744073709551616,"i":0.1000000000000000055511151231257827,"j":-1.7976931348623157e309,` +
	`"k":"\u00e9 é \ud83d\ude00 😀 \/ / \u0000 \u2028 <&> \u003c","l":[[],{},null,true,false,""],"requestState":"x",` +
	`"requeſtState":"y","RequestState":"z","":{"\u0061":1,"A":2},"__proto__":{"constructor":1}}`

// nobody is a request state that would be refused.
const nobody = `"AQ"`

func TestValuesPassAsTheTextTheyCameIn(t *testing.T) {
	m := startMirror(t)
	for name, text := range map[string]string{
		"delicate":    delicate,
		"deep":        `{"a":` + strings.Repeat(`[{"b":`, 20) + `1.10` + strings.Repeat(`}]`, 20) + `}`,
		"empty":       `{}`,
		"many digits": `{"n":` + strings.Repeat("9", 1000) + `.` + strings.Repeat("0", 1000) + `}`,
	} {
		t.Run(name, func(t *testing.T) { m.mirrors(t, text) })
	}
}

// mirrors checks that a text passes as arguments and vendor `_meta` to the handler,
// and back as structured content, inside a content block, as `_meta` and as the data
// of an error.
func (m *mirror) mirrors(t checker, text string) {
	t.Helper()
	reply := m.completed(t, "echo", `,"arguments":`+text, `,"com.example/x":`+text+`,"vendor":1.0`)
	if _, seen := m.seen(); seen != text {
		t.Fatalf("the handler saw\n%s\nwant\n%s", seen, text)
	}
	for where, want := range map[string]string{
		"structured content": `,"structuredContent":` + text + `}`,
		"content block":      `{"type":"text","text":"","future":` + text + `}`,
		"_meta":              `,"com.example/x":` + text + `,"vendor":1.0}`,
	} {
		if !bytes.Contains(reply.Message, []byte(want)) {
			t.Fatalf("%s: the reply is\n%s\nwant it to contain\n%s", where, reply.Message, want)
		}
	}
	failed := m.call(t, "fail", `,"arguments":`+text, "")
	if failed.Error == nil || string(failed.Error.Data) != text {
		t.Fatalf("data of an error: the reply is\n%s\nwant\n%s", failed.Body, text)
	}
}

func TestWhiteSpaceReachesTheHandler(t *testing.T) {
	m := startMirror(t)
	text := "{ \"n\" :\t1.0 ,\r\n \"x\": [ ] }"
	reply := m.completed(t, "echo", `,"arguments":`+text, "")
	if _, seen := m.seen(); seen != text {
		t.Errorf("the handler saw %q, want %q", seen, text)
	}
	if want := `{"n":1.0,"x":[]}`; string(reply.Result.StructuredContent) != want && string(reply.Result.StructuredContent) != text {
		t.Errorf("the structured content is %s, want %q with or without its white space", reply.Result.StructuredContent, text)
	}
}

func TestAnswersPassAsTheTextTheyCameIn(t *testing.T) {
	m := startMirror(t)
	for _, content := range []string{
		`{"number":9007199254740993}`, `{"number":-9223372036854775808}`, `{"number":1e400}`, `{"number":1.0}`, `{"number":0.1000}`,
		`{"text":"\u00e9 é \ud83d\ude00 \/ \u0000 \u2028 <&>"}`, delicate,
	} {
		m.mirrorsAnswer(t, content)
	}
}

// mirrorsAnswer checks that the content of a form passes to the handler, both from
// the request and out of the request state, and that members nobody knows are passed
// over.
func (m *mirror) mirrorsAnswer(t checker, content string) {
	t.Helper()
	answer := func(key string) string {
		return `,"inputResponses":{"` + key + `":{"future":1e400,"action":"accept","requeſtState":1,"content":` + content + `,"Action":"decline"},"other":{}}`
	}
	state := m.asked(t, "ask_twice", "")
	state = m.asked(t, "ask_twice", state+answer("first"))
	reply := m.completed(t, "ask_twice", state+answer("second"), "")
	if got, want := string(reply.Result.StructuredContent), `{"first":`+content+`,"second":`+content+`}`; got != want {
		t.Fatalf("the answers are\n%s\nwant\n%s", got, want)
	}
}

func TestSamplesPassAsTheTextTheyCameInAndNamesAreNotFolded(t *testing.T) {
	m := startMirror(t)
	sample := `{"role":"assistant","content":{"type":"text","text":"yes","Text":"no","future":1e400},"model":"one","Model":"two",` +
		`"MODEL":3,"ſtopReason":4,"future":` + delicate + `}`
	state := m.asked(t, "sample", "")
	reply := m.completed(t, "sample", state+`,"inputResponses":{"sample":`+sample+`}`, "")
	var got struct {
		Raw   json.RawMessage `json:"raw"`
		Model string          `json:"model"`
		Text  string          `json:"text"`
	}
	if err := json.Unmarshal(reply.Result.StructuredContent, &got); err != nil {
		t.Fatal(err)
	}
	if string(got.Raw) != sample || got.Model != "one" || got.Text != "yes" {
		t.Errorf("the handler got model %q, text %q and\n%s\nwant\n%s", got.Model, got.Text, got.Raw, sample)
	}
}

func TestMembersThatNobodyKnowsArePassedOver(t *testing.T) {
	m := startMirror(t)
	for name, members := range map[string]string{
		"a future member":        `,"future":` + delicate,
		"a long s":               `,"requeſtState":` + nobody,
		"upper case":             `,"RequestState":` + nobody + `,"REQUESTSTATE":` + nobody,
		"a responses look-alike": `,"inputReſponses":1,"InputResponses":2`,
		"a name look-alike":      `,"Name":"none","NAME":1,"Arguments":[]`,
		"a meta look-alike":      `,"_META":1,"_Meta":{}`,
		"a null state":           `,"requestState":null,"inputResponses":null`,
	} {
		t.Run(name, func(t *testing.T) {
			m.completed(t, "echo", members+`,"arguments":{"n":1.0}`, "")
			if _, seen := m.seen(); seen != `{"n":1.0}` {
				t.Errorf("the handler saw %s", seen)
			}
		})
	}
	t.Run("a good state under a look-alike is none", func(t *testing.T) {
		state := m.asked(t, "ask_twice", "")
		m.asked(t, "ask_twice", strings.Replace(state, "requestState", "requeſtState", 1))
	})
	t.Run("reserved and look-alike metadata", func(t *testing.T) {
		reply := m.completed(t, "echo", `,"arguments":{}`,
			`,"io.modelcontextprotocol/future":1,"IO.modelcontextprotocol/protocolVersion":"1999-01-01","io.modelcontextprotocol/protocolVerſion":1.0`)
		if want := `,"IO.modelcontextprotocol/protocolVersion":"1999-01-01"}`; !bytes.Contains(reply.Message, []byte(want)) {
			t.Errorf("the reply is %s, want it to contain %s", reply.Message, want)
		}
	})
}

func TestWhatTwoParsersCouldReadInTwoWaysIsRefused(t *testing.T) {
	m := startMirror(t)
	for name, members := range map[string]string{
		"a lone high surrogate":           `,"arguments":{"x":"\ud800"}`,
		"a lone low surrogate":            `,"arguments":{"x":"\udc00 "}`,
		"surrogates in the wrong order":   `,"arguments":{"x":"\ude00\ud83d"}`,
		"a lone surrogate as a name":      `,"arguments":{"\ud800":1}`,
		"a lone surrogate in the state":   `,"requestState":"\ud800"`,
		"a lone surrogate in an answer":   `,"inputResponses":{"x":{"action":"accept","content":{"text":"\ud800"}}}`,
		"invalid UTF-8":                   ",\"arguments\":{\"x\":\"\xff\"}",
		"a surrogate in UTF-8":            ",\"arguments\":{\"x\":\"\xed\xa0\x80\"}",
		"a name twice":                    `,"arguments":{"x":1,"x":1}`,
		"a name twice, once as escape":    `,"arguments":{"x":1,"\u0078":1}`,
		"the arguments twice":             `,"arguments":{},"arguments":{}`,
		"a leading zero":                  `,"arguments":{"x":01}`,
		"a plus":                          `,"arguments":{"x":+1}`,
		"not a number":                    `,"arguments":{"x":NaN}`,
		"a hexadecimal number":            `,"arguments":{"x":0x1}`,
		"a trailing comma":                `,"arguments":{"x":1,}`,
		"a comment":                       `,"arguments":{"x":1/**/}`,
		"an apostrophe":                   `,"arguments":{'x':1}`,
		"a control character in a string": ",\"arguments\":{\"x\":\"\x01\"}",
	} {
		t.Run(name, func(t *testing.T) {
			before, _ := m.seen()
			reply := m.call(t, "echo", members, "")
			if reply.Error == nil || reply.Error.Code != -32700 || reply.Status != http.StatusBadRequest {
				t.Errorf("the reply is %s with status %d, want a parse error", reply.Body, reply.Status)
			}
			if after, _ := m.seen(); after != before {
				t.Error("the handler ran")
			}
		})
	}
	t.Run("an exponent without end", func(t *testing.T) {
		before, _ := m.seen()
		reply := m.call(t, "echo", `,"arguments":{"x":1e999999999}`, "")
		if reply.Error != nil || !reply.Result.IsError || !strings.Contains(reply.Result.Content[0].Text, "exponent") {
			t.Errorf("the reply is %s, want it to name the exponent", reply.Body)
		}
		if after, _ := m.seen(); after != before {
			t.Error("the handler ran")
		}
	})
}

func TestAnAnswerThatDoesNotFitIsRefused(t *testing.T) {
	m := startMirror(t)
	state := m.asked(t, "ask_twice", "")
	for _, content := range []string{`{"number":"9007199254740993"}`, `{"text":1.0}`, `{"number":1e999999999}`, `[]`, `1e400`} {
		reply := m.call(t, "ask_twice", state+`,"inputResponses":{"first":{"action":"accept","content":`+content+`}}`, "")
		if reply.Error == nil || reply.Error.Code != codeInvalidParams {
			t.Errorf("%s was answered with %s, want it refused", content, reply.Body)
		}
	}
}

func TestAHandlersTextThatIsNotStrictIsRefusedAndNotMended(t *testing.T) {
	m := startMirror(t)
	for _, text := range []string{`{"x":"\ud800"}`, "{\"x\":\"\xff\"}", `{"x":1,"x":2}`, `{"x":01}`, `{"x":1`, `{} {}`} {
		raw := json.RawMessage(text)
		for where, said := range map[string]*handler.Result{
			"structured": {Structured: raw},
			"meta":       {Meta: raw},
			"content":    {Content: []handler.Content{handler.RawContent(raw)}},
		} {
			m.sayNext(said)
			reply := m.call(t, "say", "", "")
			if reply.Error == nil || reply.Error.Code != codeInternal || bytes.Contains(reply.Body, []byte("\ufffd")) {
				t.Errorf("%s of %q was answered with %s, want an internal error", where, text, reply.Body)
			}
		}
	}
}

func TestAnyValuePassesAsTheTextItCameIn(t *testing.T) {
	m := startMirror(t)
	rapid.Check(t, func(t *rapid.T) {
		text := drawObject(t).spell(t)
		m.mirrors(t, text)
		m.mirrorsAnswer(t, `{"number":`+drawNumber(t).spell(t)+`,"text":`+drawString(t).spell(t)+`,"future":`+text+`}`)
	})
}

func TestAnyRequestIsTheSameHoweverItIsSpelledAndAnotherWithAnotherNumber(t *testing.T) {
	m := startMirror(t)
	rapid.Check(t, func(t *rapid.T) {
		arguments, number, extra := drawObject(t), drawNumber(t), drawObject(t)
		params := func(number value) string {
			return `,"arguments":` + object{{drawnName, number}, {text("other"), arguments}}.spell(t) + `,"future":` + extra.spell(t)
		}
		state := m.asked(t, "ask_twice", params(number))
		m.asked(t, "ask_twice", params(number)+state)

		reply := m.call(t, "ask_twice", params(number.next())+state, "")
		if reply.Error == nil || reply.Error.Message != invalidState {
			t.Fatalf("another number was answered with %s, want the state refused", reply.Body)
		}
	})
}
