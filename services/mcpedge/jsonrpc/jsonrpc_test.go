package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func TestRequestKeepsTheTextOfForeignValues(t *testing.T) {
	body := `{"jsonrpc":"2.0","id":9007199254740993,"method":"tools\/call","params":{ "n": 1.0e400 , "x":"\u00e9" },"future":[1]}`
	message, err := Decode([]byte(body), 8)
	if err != nil {
		t.Fatal(err)
	}
	if string(message.ID) != "9007199254740993" || message.Method != "tools/call" || string(message.Params) != `{ "n": 1.0e400 , "x":"\u00e9" }` {
		t.Errorf("got id %s, method %s, params %s", message.ID, message.Method, message.Params)
	}
}

func TestIDsKeepTheirType(t *testing.T) {
	for _, id := range []string{`1`, `"1"`, `-7`, `""`, `"\u0031"`, `0`} {
		message, err := Decode([]byte(`{"jsonrpc":"2.0","method":"m","id":`+id+`}`), 8)
		if err != nil || string(message.ID) != id || message.IsNotification() {
			t.Errorf("id %s: got %s, %v", id, message.ID, err)
		}
	}
}

func TestMessageWithoutIDIsANotification(t *testing.T) {
	message, err := Decode([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","ID":1}`), 8)
	if err != nil || !message.IsNotification() {
		t.Errorf("got %+v, %v", message, err)
	}
}

func TestAmbiguousOrForeignBodiesAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		want error
		id   string
	}{
		"duplicate method":         {`{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}`, ErrSyntax, ""},
		"duplicate by escape":      {`{"jsonrpc":"2.0","id":1,"method":"a","m\u0065thod":"b"}`, ErrSyntax, ""},
		"duplicate in arguments":   {`{"jsonrpc":"2.0","id":1,"method":"a","params":{"arguments":{"x":1,"x":2}}}`, ErrSyntax, ""},
		"lone surrogate":           {`{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":"\udfff"}}`, ErrSyntax, ""},
		"invalid UTF-8":            {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", ErrSyntax, ""},
		"two values":               {`{"jsonrpc":"2.0","id":1,"method":"a"}{}`, ErrSyntax, ""},
		"empty":                    {``, ErrSyntax, ""},
		"unclosed":                 {`{"jsonrpc":"2.0","id":1,"method":"a"`, ErrSyntax, ""},
		"broken array":             {`[{]`, ErrSyntax, ""},
		"batch":                    {`[{"jsonrpc":"2.0","id":1,"method":"a"}]`, ErrInvalid, ""},
		"string":                   {`"x"`, ErrInvalid, ""},
		"null id":                  {`{"jsonrpc":"2.0","id":null,"method":"a"}`, ErrInvalid, ""},
		"fractional id":            {`{"jsonrpc":"2.0","id":1.5,"method":"a"}`, ErrInvalid, ""},
		"object id":                {`{"jsonrpc":"2.0","id":{},"method":"a"}`, ErrInvalid, ""},
		"long id":                  {`{"jsonrpc":"2.0","id":"` + strings.Repeat("x", MaxTokenBytes) + `","method":"a"}`, ErrInvalid, ""},
		"other version":            {`{"jsonrpc":"1.0","id":1,"method":"a"}`, ErrInvalid, "1"},
		"no version":               {`{"id":1,"method":"a"}`, ErrInvalid, "1"},
		"version in another case":  {`{"JSONRPC":"2.0","id":1,"method":"a"}`, ErrInvalid, "1"},
		"no method":                {`{"jsonrpc":"2.0","id":"x"}`, ErrInvalid, `"x"`},
		"method of another type":   {`{"jsonrpc":"2.0","id":1,"method":7}`, ErrInvalid, "1"},
		"params is an array":       {`{"jsonrpc":"2.0","id":1,"method":"a","params":[]}`, ErrInvalid, "1"},
		"params is null":           {`{"jsonrpc":"2.0","id":1,"method":"a","params":null}`, ErrInvalid, "1"},
		"a response":               {`{"jsonrpc":"2.0","id":1,"result":{}}`, ErrInvalid, "1"},
		"an error response":        {`{"jsonrpc":"2.0","id":1,"error":{}}`, ErrInvalid, "1"},
		"nested too deeply":        {`{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":` + strings.Repeat("[", 7) + strings.Repeat("]", 7) + `}}`, ErrDepth, ""},
		"deep and never closed":    {strings.Repeat(`{"a":`, 100), ErrDepth, ""},
		"brackets after a string":  {`{"a":"\\"` + strings.Repeat("[", 9), ErrDepth, ""},
		"U+017F is not an s in id": {`{"j\u017fonrpc":"2.0","id":1,"method":"a"}`, ErrInvalid, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			message, err := Decode([]byte(test.body), 8)
			if !errors.Is(err, test.want) || string(message.ID) != test.id {
				t.Errorf("got id %q, error %v; want id %q, error %v", message.ID, err, test.id, test.want)
			}
		})
	}
}

func TestBracketsInStringsDoNotCountAsDepth(t *testing.T) {
	body := `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat(`[{\"\\`, 100) + `"}`
	if _, err := Decode([]byte(body), 1); err != nil {
		t.Error(err)
	}
}

func TestMessagesAreWritten(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{string(AppendResult(nil, ID(`"1"`), []byte(`{"n":1e400}`))), `{"jsonrpc":"2.0","id":"1","result":{"n":1e400}}`},
		{string(AppendError(nil, ID(`1`), CodeInvalidParams, "a \"b\"\n", []byte(`{}`))), `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"a \"b\"\n","data":{}}}`},
		{string(AppendError(nil, nil, CodeParseError, "x", nil)), `{"jsonrpc":"2.0","error":{"code":-32700,"message":"x"}}`},
		{string(AppendNotification(nil, "notifications/progress", []byte(`{}`))), `{"jsonrpc":"2.0","method":"notifications/progress","params":{}}`},
	} {
		if test.got != test.want {
			t.Errorf("got  %s\nwant %s", test.got, test.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"a":[1,"\u00e9"]}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":null,"method":"x"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		message, err := Decode(body, 16)
		if err != nil {
			return
		}
		if !json.Valid(body) {
			t.Fatalf("%q was accepted and is not JSON", body)
		}
		for _, part := range [][]byte{message.ID, message.Params} {
			if len(part) > 0 && (!json.Valid(part) || !bytes.Contains(body, part)) {
				t.Fatalf("%q is not a JSON value of %q", part, body)
			}
		}
	})
}

// FuzzEach compares the members and elements of a text with those that a parser finds.
func FuzzEach(f *testing.F) {
	f.Add([]byte(` { "a" : [ 1 , -2.5e3, {"b\u0041\\":"]}"}, [ ] ] ,"c":{}, "":null,"d\"":"\\" } `))
	f.Add([]byte(`[true,false , "\"",{"x":[{}]}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if !Valid(text, 0) {
			return
		}
		decoder := jsontext.NewDecoder(bytes.NewBuffer(text))
		opening, err := decoder.ReadToken()
		if err != nil {
			t.Fatal(err)
		}
		compare := func(value []byte) {
			want, err := decoder.ReadValue()
			if err != nil || !bytes.Equal(value, want) {
				t.Fatalf("%q has the value %q (%v), and %q was found", text, want, err, value)
			}
		}
		switch opening.Kind() {
		case '{':
			err = EachMember(text, func(name string, value []byte) error {
				token, err := decoder.ReadToken()
				if err != nil || token.String() != name {
					t.Fatalf("%q has the name %q (%v), and %q was found", text, token, err, name)
				}
				compare(value)
				return nil
			})
		case '[':
			err = EachElement(text, func(value []byte) error {
				compare(value)
				return nil
			})
		default:
			if EachMember(text, nil) == nil || EachElement(text, nil) == nil {
				t.Fatalf("%q was taken for an object or array", text)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decoder.ReadToken(); err != nil {
			t.Fatal(err)
		}
		if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
			t.Fatalf("%q has more than was found", text)
		}
	})
}
