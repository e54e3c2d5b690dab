package canon

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestEqualTextsHaveOneForm(t *testing.T) {
	for name, texts := range map[string][]string{
		"member order":    {`{"a":1,"b":2}`, `{"b":2,"a":1}`, " {\n\"b\" : 2 , \"a\":1}\t"},
		"nested order":    {`[{"x":{"b":[],"a":{}}}]`, `[{"x":{"a":{},"b":[]}}]`},
		"escapes":         {`"é\/\n"`, `"\u00e9/\u000a"`, `"\u00E9/\n"`},
		"astral":          {`"😀"`, `"\ud83d\ude00"`},
		"integers":        {`1`, `1.0`, `1e0`, `10e-1`, `0.1E+1`, `1.000`},
		"zeros":           {`0`, `-0`, `0.0`, `-0.00e5`, `0e999999999999999999999`},
		"large integers":  {`9007199254740993`, `9007199254740993.0`, `9.007199254740993e15`},
		"trailing zeros":  {`100`, `1e2`, `1.0e+02`},
		"negative":        {`-0.1000`, `-1e-1`, `-0.1`},
		"huge but finite": {`1e400`, `10e399`, `1E+400`},
	} {
		t.Run(name, func(t *testing.T) {
			first := form(t, texts[0])
			for _, text := range texts[1:] {
				if got := form(t, text); got != first {
					t.Errorf("%s has the form %s, want %s as of %s", text, got, first, texts[0])
				}
			}
		})
	}
}

func TestDifferentTextsHaveDifferentForms(t *testing.T) {
	seen := map[string]string{}
	for _, text := range []string{
		`9007199254740992`, `9007199254740993`, `-9007199254740993`, `1`, `"1"`, `[1]`, `{"1":1}`, `true`, `"true"`, `null`, `0`, `""`,
		`1e400`, `1e401`, `0.1`, `0.10000000000000000000000000000001`, `[1,2]`, `[2,1]`, `[[1],2]`, `{"a":{"b":1}}`, `{"a.b":1}`,
		`{"requestState":1}`, `{"requeſtState":1}`, `{}`, `[]`, `"a"`, `"A"`, `"\u00e9"`, `"e\u0301"`,
	} {
		got := form(t, text)
		if other, ok := seen[got]; ok {
			t.Errorf("%s and %s have one form %s", text, other, got)
		}
		seen[got] = text
	}
}

func TestAmbiguousTextIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want error
	}{
		"duplicate name":         {`{"a":1,"a":1}`, ErrSyntax},
		"duplicate by escape":    {`{"a":1,"\u0061":1}`, ErrSyntax},
		"nested duplicate":       {`[{"x":{"a":1,"a":2}}]`, ErrSyntax},
		"invalid UTF-8":          {"\"\xff\"", ErrSyntax},
		"lone high surrogate":    {`"\ud800"`, ErrSyntax},
		"lone low surrogate":     {`"\udc00x"`, ErrSyntax},
		"trailing value":         {`1 2`, ErrSyntax},
		"trailing text":          {`{}x`, ErrSyntax},
		"empty":                  {``, ErrSyntax},
		"leading zero":           {`01`, ErrSyntax},
		"plus":                   {`+1`, ErrSyntax},
		"NaN":                    {`NaN`, ErrSyntax},
		"unclosed":               {`{"a":[1`, ErrSyntax},
		"too deep":               {strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1), ErrDepth},
		"exponent":               {`1e4097`, ErrExponent},
		"negative exponent":      {`1e-4097`, ErrExponent},
		"exponent beyond an int": {`1e99999999999999999999`, ErrExponent},
		"exponent at an int":     {`0.01e-9223372036854775808`, ErrExponent},
		"exponent by zeros":      {"1" + strings.Repeat("0", 5000), ErrExponent},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Append(nil, []byte(test.text)); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

func TestDepthAtTheBoundIsAccepted(t *testing.T) {
	form(t, strings.Repeat("[", MaxDepth)+strings.Repeat("]", MaxDepth))
}

func TestParamsDigestLeavesOutWhatChangesBetweenRounds(t *testing.T) {
	first := paramsDigest(t, `{"name":"refund","arguments":{"n":1}}`)
	retry := paramsDigest(t, `{"requestState":"s","_meta":{"x":1},"arguments":{"n":1.0},"inputResponses":{"k":{}},"name":"refund"}`)
	if first != retry {
		t.Error("the retry's digest differs from the first call's")
	}
	for _, other := range []string{
		`{"name":"refund","arguments":{"n":2}}`,
		`{"name":"refund","arguments":{"n":1,"_meta":{}}}`,
		`{"name":"refund","arguments":{"n":1,"requestState":"s"}}`,
		`{"name":"refund","arguments":{"n":1},"requeſtState":"s"}`,
	} {
		if paramsDigest(t, other) == first {
			t.Errorf("%s has the digest of another request", other)
		}
	}
	if paramsDigest(t, "") != paramsDigest(t, `{"_meta":{}}`) {
		t.Error("absent parameters are not an empty object")
	}
}

func TestNumbersAreComparedByExactValue(t *testing.T) {
	number := rapid.StringMatching(`-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := number.Draw(t, "a"), number.Draw(t, "b")
		if rapid.Bool().Draw(t, "same value") {
			b = respell(t, a)
		}
		equalForms := mustForm(t, a) == mustForm(t, b)
		x, _ := new(big.Rat).SetString(a)
		y, _ := new(big.Rat).SetString(b)
		if equalValues := x.Cmp(y) == 0; equalForms != equalValues {
			t.Fatalf("%s and %s: equal forms %t, equal values %t", a, b, equalForms, equalValues)
		}
	})
}

// respell writes a number's value with another exponent.
func respell(t *rapid.T, text string) string {
	value, _ := new(big.Rat).SetString(text)
	shift := rapid.IntRange(0, 20).Draw(t, "shift")
	scaled := new(big.Rat).Mul(value, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(shift)), nil)))
	return scaled.FloatString(1200) + "e-" + big.NewInt(int64(shift)).String()
}

func FuzzAppend(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.50,"x\u00e9"]}`, `1e400`, `{"a":1,"a":2}`, `"\ud800"`, `-0.0e-0`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		once, err := Append(nil, text)
		if err != nil {
			return
		}
		if !json.Valid(text) || !json.Valid(once) {
			t.Fatalf("%q was accepted as %q and is not JSON", text, once)
		}
		twice, err := Append(nil, once)
		if err != nil || !bytes.Equal(twice, once) {
			t.Fatalf("the form %q of %q has the form %q, %v", once, text, twice, err)
		}
	})
}

func form(t *testing.T, text string) string {
	t.Helper()
	got, err := Append(nil, []byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return string(got)
}

func mustForm(t *rapid.T, text string) string {
	got, err := Append(nil, []byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return string(got)
}

func paramsDigest(t *testing.T, params string) [32]byte {
	t.Helper()
	digest, err := ParamsDigest([]byte(params))
	if err != nil {
		t.Fatalf("%s: %v", params, err)
	}
	return digest
}
