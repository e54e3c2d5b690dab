package question

import (
	"strings"
	"testing"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
)

const nameForm = `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`

func form(message, schema string) *handlerv1.Question {
	return &handlerv1.Question{Key: "k", Kind: &handlerv1.Question_ElicitForm{ElicitForm: &handlerv1.ElicitForm{Message: message, RequestedSchema: []byte(schema)}}}
}

func elicitURL(url string) *handlerv1.Question {
	return &handlerv1.Question{Key: "k", Kind: &handlerv1.Question_ElicitUrl{ElicitUrl: &handlerv1.ElicitUrl{Message: "Go there", Url: url}}}
}

func sample(params string) *handlerv1.Question {
	return &handlerv1.Question{Key: "k", Kind: &handlerv1.Question_Sample{Sample: &handlerv1.Sample{Params: []byte(params)}}}
}

func roots() *handlerv1.Question {
	return &handlerv1.Question{Key: "k", Kind: &handlerv1.Question_ListRoots{ListRoots: &handlerv1.ListRoots{}}}
}

func TestQuestionsAreWrittenAsMCPReadsThem(t *testing.T) {
	for _, test := range []struct {
		question *handlerv1.Question
		want     string
	}{
		{form("Your \"name\"?", nameForm), `{"method":"elicitation/create","params":{"mode":"form","message":"Your \"name\"?","requestedSchema":` + nameForm + `}}`},
		{elicitURL("https://pay.example/3"), `{"method":"elicitation/create","params":{"mode":"url","message":"Go there","url":"https://pay.example/3"}}`},
		{sample(`{"messages":[], "maxTokens": 100}`), `{"method":"sampling/createMessage","params":{"messages":[], "maxTokens": 100}}`},
		{roots(), `{"method":"roots/list"}`},
	} {
		if got := mustNew(t, test.question); string(got.Request) != test.want {
			t.Errorf("got  %s\nwant %s", got.Request, test.want)
		}
	}
}

func TestFormsThatAClientCanShow(t *testing.T) {
	for _, field := range []string{
		`{"type":"string","minLength":1,"maxLength":9,"format":"email","default":"a@b.example"}`,
		`{"type":"integer","minimum":0,"default":30}`,
		`{"type":"number","default":95.5}`,
		`{"type":"boolean","default":true}`,
		`{"type":"string","enum":["a","b"]}`,
		`{"type":"string","enum":["a","b"],"enumNames":["A","B"]}`,
		`{"type":"string","oneOf":[{"const":"a","title":"A"}]}`,
		`{"type":"array","items":{"type":"string","enum":["a","b"]}}`,
		`{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}`,
	} {
		mustNew(t, form("m", `{"type":"object","properties":{"f":`+field+`}}`))
	}
}

func TestQuestionsThatCannotBePutAreRefused(t *testing.T) {
	for name, question := range map[string]*handlerv1.Question{
		"no key":                {Kind: roots().GetKind()},
		"long key":              {Key: strings.Repeat("k", maxKeyBytes+1), Kind: roots().GetKind()},
		"no kind":               {Key: "k"},
		"no message":            form("", nameForm),
		"schema is not JSON":    form("m", `{`),
		"schema is an array":    form("m", `[]`),
		"schema with duplicate": form("m", `{"type":"object","type":"object","properties":{}}`),
		"no properties":         form("m", `{"type":"object"}`),
		"type is missing":       form("m", `{"properties":{}}`),
		"nested object":         form("m", `{"type":"object","properties":{"a":{"type":"object","properties":{}}}}`),
		"array of anything":     form("m", `{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}}}`),
		"array without items":   form("m", `{"type":"object","properties":{"a":{"type":"array"}}}`),
		"null type":             form("m", `{"type":"object","properties":{"a":{"type":"null"}}}`),
		"reference":             form("m", `{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{}}}`),
		"conditional":           form("m", `{"type":"object","properties":{},"if":{}}`),
		"field is a boolean":    form("m", `{"type":"object","properties":{"a":true}}`),
		"not a schema":          form("m", `{"type":"object","properties":{"a":{"type":"string","minLength":"x"}}}`),
		"relative URL":          elicitURL("/pay"),
		"URL without host":      elicitURL("mailto:a@b.example"),
		"URL with a password":   elicitURL("https://user:secret@pay.example/"),
		"sample without tokens": sample(`{"messages":[]}`),
		"sample is not JSON":    sample(``),
	} {
		if q, err := New(question); err == nil {
			t.Errorf("%s: accepted as %s", name, q.Request)
		}
	}
}

func TestADigestPinsWhatTheUserRead(t *testing.T) {
	first := mustNew(t, form("Refund 10?", nameForm))
	same := mustNew(t, form("Refund 10?", `{"required":["name"], "properties":{"name":{"type":"string"}},"type":"object"}`))
	if first.Digest != same.Digest {
		t.Error("the order of members changes the digest")
	}
	for _, other := range []*handlerv1.Question{form("Refund 1000?", nameForm), form("Refund 10?", strings.Replace(nameForm, "string", "integer", 1)), elicitURL("https://pay.example/")} {
		if mustNew(t, other).Digest == first.Digest {
			t.Errorf("%v has the digest of another question", other)
		}
	}
}

func TestAnswersAreCheckedAgainstTheirQuestion(t *testing.T) {
	for name, test := range map[string]struct {
		question *handlerv1.Question
		response string
		ok       bool
	}{
		"accepted":                  {form("m", nameForm), `{"action":"accept","content":{"name":"Ann"}}`, true},
		"declined":                  {form("m", nameForm), `{"action":"decline"}`, true},
		"cancelled":                 {form("m", nameForm), `{"action":"cancel","content":null}`, true},
		"field missing":             {form("m", nameForm), `{"action":"accept","content":{}}`, false},
		"field of another type":     {form("m", nameForm), `{"action":"accept","content":{"name":1}}`, false},
		"accepted without content":  {form("m", nameForm), `{"action":"accept"}`, false},
		"content is an array":       {form("m", nameForm), `{"action":"accept","content":[]}`, false},
		"unknown action":            {form("m", nameForm), `{"action":"ACCEPT","content":{"name":"Ann"}}`, false},
		"no action":                 {form("m", nameForm), `{"content":{"name":"Ann"}}`, false},
		"a number":                  {form("m", nameForm), `12345`, false},
		"null":                      {form("m", nameForm), `null`, false},
		"result of another kind":    {form("m", nameForm), `{"roots":[]}`, false},
		"wrong format":              {form("m", `{"type":"object","properties":{"mail":{"type":"string","format":"email"}}}`), `{"action":"accept","content":{"mail":"nobody"}}`, false},
		"not one of the choices":    {form("m", `{"type":"object","properties":{"c":{"type":"string","enum":["a"]}}}`), `{"action":"accept","content":{"c":"b"}}`, false},
		"URL accepted":              {elicitURL("https://pay.example/"), `{"action":"accept"}`, true},
		"URL answered with a form":  {elicitURL("https://pay.example/"), `{"name":"Ann"}`, false},
		"sampled":                   {sample(`{"messages":[],"maxTokens":1}`), `{"role":"assistant","content":{"type":"text","text":"x"},"model":"m"}`, true},
		"sampled blocks":            {sample(`{"messages":[],"maxTokens":1}`), `{"role":"assistant","content":[],"model":"m"}`, true},
		"sampled without model":     {sample(`{"messages":[],"maxTokens":1}`), `{"role":"assistant","content":{}}`, false},
		"sampled by nobody":         {sample(`{"messages":[],"maxTokens":1}`), `{"role":"system","content":{},"model":"m"}`, false},
		"roots":                     {roots(), `{"roots":[{"uri":"file:///a","name":"a","_meta":{"n":1e400}}]}`, true},
		"no roots":                  {roots(), `{"roots":[]}`, true},
		"roots are an object":       {roots(), `{"roots":{}}`, false},
		"root without URI":          {roots(), `{"roots":[{"name":"a"}]}`, false},
		"root is a string":          {roots(), `{"roots":["file:///a"]}`, false},
		"elicitation as the result": {roots(), `{"action":"accept"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := mustNew(t, test.question).Answer([]byte(test.response))
			if (err == nil) != test.ok {
				t.Errorf("got %v, %v", answer, err)
			}
		})
	}
}

func TestContentKeepsItsText(t *testing.T) {
	q := mustNew(t, form("m", `{"type":"object","properties":{"n":{"type":"integer"}}}`))
	answer, err := q.Answer([]byte(`{"action":"accept","content":{ "n": 9007199254740993 , "future":1.0}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(answer.GetElicited().GetContent()); got != `{ "n": 9007199254740993 , "future":1.0}` {
		t.Errorf("got %s", got)
	}
}

func TestMissingCapabilitiesAreNamed(t *testing.T) {
	var needs Capabilities
	for _, question := range []*handlerv1.Question{
		form("m", nameForm), elicitURL("https://pay.example/"), roots(),
		sample(`{"messages":[],"maxTokens":1,"tools":[],"includeContext":"thisServer"}`),
	} {
		needs = needs.And(mustNew(t, question).Needs)
	}
	for _, test := range []struct {
		declared *handlerv1.ClientCapabilities
		want     string
	}{
		{&handlerv1.ClientCapabilities{}, `{"elicitation":{"form":{},"url":{}},"roots":{},"sampling":{"context":{},"tools":{}}}`},
		{&handlerv1.ClientCapabilities{ElicitationForm: true, Roots: true, Sampling: true, SamplingContext: true}, `{"elicitation":{"url":{}},"sampling":{"tools":{}}}`},
		{&handlerv1.ClientCapabilities{ElicitationForm: true, ElicitationUrl: true, Roots: true, Sampling: true, SamplingContext: true, SamplingTools: true}, `{}`},
	} {
		if got := string(needs.Missing(test.declared).JSON()); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}

func mustNew(t *testing.T, question *handlerv1.Question) *Question {
	t.Helper()
	q, err := New(question)
	if err != nil {
		t.Fatal(err)
	}
	return q
}
