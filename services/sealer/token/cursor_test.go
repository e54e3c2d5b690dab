package token_test

import (
	"slices"
	"testing"

	"github.com/countersign-mcp/countersign/services/sealer/token"
	"github.com/countersign-mcp/countersign/services/sealer/token/tokentest"
)

func cursorVector(name string, root []byte, principal tokentest.Principal, after string) tokentest.Token {
	return tokentest.Token{
		Name: name, Purpose: tokentest.Cursor, Suite: int(token.HMACSHA256), Root: root, Random: sequence(0x40, 32),
		Context:       tokentest.Context{Audience: "https://tools.example/mcp", Tenant: "acme", Environment: "production"},
		Principal:     principal,
		DecodedCursor: tokentest.CursorClaims{IssuedAt: vectorNow, ExpiresAt: vectorNow + 60*minute, Method: "tools/list", After: after},
	}
}

// buildRefusedCursors makes tokens that are refused as cursors, and a cursor that is
// refused as everything else. How tokens are refused before their keys come in is
// the same for all purposes and stands in the other vectors.
func buildRefusedCursors(t *testing.T, vector tokentest.Token, requestStates []tokentest.Token) []tokentest.Refused {
	t.Helper()

	list := refusals{vector: vector}
	refuse := list.add
	withClaims := func(claims []byte) string {
		changed := vector
		changed.Claims = claims

		return sealClaims(t, changed).Token
	}

	// The purpose is in the keys alone: nothing in a token of suite 1 says what it is
	// for.
	refuse("request state in place of a cursor", "NOT_AUTHENTIC", requestStates[0].Token, nil)
	refuse("encrypted request state in place of a cursor", "WRONG_SUITE", requestStates[1].Token, nil)

	for position, reason := range []string{"NOT_AUTHENTIC", "WRONG_SUITE"} {
		opening := requestStates[position].Opening()
		list.built = append(list.built, tokentest.Refused{
			Name: requestStates[position].Name + ": a cursor in place of request state", Opening: opening, Token: vector.Token, Reason: reason,
		})
	}

	refuse("empty", "MALFORMED", "", nil)
	refuse("a page number", "MALFORMED", "Mg", nil)
	refuse("longer than allowed", "TOO_LARGE", vector.Token, func(o *tokentest.Opening) { o.MaxLength = len(vector.Token) - 1 })
	refuse("retired key", "RETIRED_KEY", vector.Token, func(o *tokentest.Opening) { o.RetiredRoots, o.Roots = o.Roots, []tokentest.Hex{} })
	refuse("another audience", "NOT_AUTHENTIC", vector.Token, func(o *tokentest.Opening) { o.Context.Audience += "/" })

	refuse("no claims", "UNREADABLE_CLAIMS", withClaims(nil), nil)
	refuse("claims of request state", "UNREADABLE_CLAIMS", withClaims(requestStates[0].Claims), nil)
	refuse("an unknown field", "UNREADABLE_CLAIMS", withClaims(slices.Concat(vector.Claims, []byte{0x30, 0x01})), nil)
	refuse("no tag", "UNREADABLE_CLAIMS", withClaims(vector.ClaimsBeforeTags), nil)
	refuse("a tag one byte short", "UNREADABLE_CLAIMS", withClaims(slices.Concat(vector.Claims, []byte{0x22, 31}, vector.PrincipalTag[:31])), nil)
	refuse("no cursor", "UNREADABLE_CLAIMS", withClaims(vector.Claims[:len(vector.Claims)-len(vector.DecodedCursor.After)-4]), nil)

	refuse("sealed a minute and a millisecond from now", "NOT_YET_VALID", vector.Token,
		func(o *tokentest.Opening) { o.Now -= minute + 1 })
	refuse("at the end of its time", "EXPIRED", vector.Token, func(o *tokentest.Opening) { o.Now = vector.DecodedCursor.ExpiresAt })
	refuse("expired and of another list", "EXPIRED", vector.Token,
		func(o *tokentest.Opening) { o.Now, o.Method = vector.DecodedCursor.ExpiresAt, "prompts/list" })
	refuse("another list", "OTHER_METHOD", vector.Token, func(o *tokentest.Opening) { o.Method = "prompts/list" })
	refuse("another list for another subject", "OTHER_METHOD", vector.Token,
		func(o *tokentest.Opening) { o.Method, o.Principal.Subject = "prompts/list", "user-2" })
	refuse("another subject", "OTHER_PRINCIPAL", vector.Token, func(o *tokentest.Opening) { o.Principal.Subject = "user-2" })
	refuse("another issuer", "OTHER_PRINCIPAL", vector.Token, func(o *tokentest.Opening) { o.Principal.Issuer += "/" })
	refuse("nobody", "OTHER_PRINCIPAL", vector.Token, func(o *tokentest.Opening) { o.Principal = tokentest.Principal{} })

	return list.built
}
