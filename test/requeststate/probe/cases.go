package probe

// The sentences of the specification that the cases go back to: 2026-07-28,
// basic/patterns/mrtr, "Server Requirements (Basic Workflow)" unless another page is
// named.
const (
	mustVerify     = "servers MUST treat requestState as an attacker-controlled input … and MUST reject state that fails verification"
	shouldBeHis    = "the authenticated principal, rejecting state presented by a different principal (SHOULD)"
	shouldExpire   = "a short expiry (TTL), rejecting state presented after it lapses (SHOULD)"
	shouldMatch    = "an identifier for the originating request … rejecting state presented on a request that does not match (SHOULD)"
	notSingleUse   = "these measures … do not by themselves guarantee single-use"
	mustEcho       = "the client MUST echo back the exact value … when retrying the original request (Client Requirements)"
	inputRequests  = "servers MAY choose to return an InputRequiredResult on multiple attempts at the same request"
	schemaOptional = "requestState?: string (schema, InputResponseRequestParams)"
	rfc8259        = "the names within an object SHOULD be unique … behavior … is unpredictable (RFC 8259, section 4)"
)

// altered are Countersign's names for a request state that is not one of its own any
// more. Which it is depends on the place that was changed.
var altered = []string{"malformed", "unknown_version", "wrong_suite", "unknown_key", "wrong_commitment", "not_authentic"}

// cases are all cases, in their order. The first refusal sets how a refusal looks;
// retiring a key comes last, because nothing sealed before is good afterwards.
var cases = []testCase{
	// Not a request state.
	{
		name: "invented", checks: "a string that the server never made is refused",
		source: mustVerify, reasons: altered, run: invented,
	},
	{
		name: "wrong JSON types", checks: "a number, a boolean, an array or an object in place of the string is refused",
		source: schemaOptional, reasons: []string{"malformed"}, run: wrongTypes,
	},
	{
		name: "null", checks: "null says the same as no request state: the server asks",
		source: schemaOptional, run: null,
	},
	{
		name: "oversize", checks: "a request state that is too long is refused",
		source: mustVerify, reasons: []string{"too_large"}, run: oversize,
	},

	// A request state that was written in another way.
	{
		name: "JSON escapes", checks: "the same string, written with JSON escapes, is accepted",
		source: mustEcho, run: jsonEscapes,
	},
	{
		name: "padding", checks: "the request state with = added is refused",
		source: mustVerify, reasons: []string{"malformed"}, run: padding,
	},
	{
		name: "line breaks", checks: "the request state with CR or LF added, which many decoders skip, is refused",
		source: mustVerify, reasons: []string{"malformed"}, run: lineBreaks,
	},
	{
		name: "white space", checks: "the request state with white space added is refused",
		source: mustVerify, reasons: []string{"malformed"}, run: whiteSpace,
	},
	{
		name: "other alphabet", checks: "the request state in the other one of the two base64 alphabets is refused",
		source: mustVerify, reasons: []string{"malformed"}, run: otherAlphabet,
	},
	{
		name: "unused bits", checks: "the request state with bits set that base64 does not use is refused",
		source: mustVerify, reasons: []string{"malformed"}, run: unusedBits,
	},
	{
		name: "percent-encoding", checks: "the request state with characters percent-encoded is refused",
		source: mustVerify, reasons: []string{"malformed"}, run: percentEncoding,
	},
	{
		name: "other encodings", checks: "the request state in hexadecimal, in base64 once more, in another case, in quotes or with look-alikes is refused",
		source: mustVerify, reasons: altered, run: otherEncodings,
	},

	// A request state that was changed.
	{
		name: "changed characters", checks: "the request state with one character changed, at every place, is refused",
		source: mustVerify, reasons: altered, run: changedCharacters,
	},
	{
		name: "truncated", checks: "the request state cut off, at every length, is refused",
		source: mustVerify, reasons: altered, run: truncated,
	},
	{
		name: "extended", checks: "the request state with something before or after it is refused",
		source: mustVerify, reasons: altered, run: extended,
	},
	{
		name: "spliced", checks: "the beginning of one request state with the end of another is refused",
		source: mustVerify, reasons: altered, run: spliced,
	},

	// A good request state of somebody else, or for something else.
	{
		name: "other principal", checks: "a request state of another principal is refused",
		source: shouldBeHis, reasons: []string{"other_principal"},
		needs: needsEndpoint("otherPrincipal", func(t *Target) *Endpoint { return t.OtherPrincipal }),
		run:   obtainedAt(func(t *Target) *Endpoint { return t.OtherPrincipal }),
	},
	{
		name: "other issuer", checks: "a request state of the same subject under another issuer is refused",
		source: shouldBeHis, reasons: []string{"other_principal"},
		needs: needsEndpoint("otherIssuer", func(t *Target) *Endpoint { return t.OtherIssuer }),
		run:   obtainedAt(func(t *Target) *Endpoint { return t.OtherIssuer }),
	},
	{
		name: "other deployment", checks: "a request state of another deployment is refused",
		source: mustVerify, reasons: []string{"not_authentic", "unknown_key"},
		needs: needsEndpoint("otherDeployment", func(t *Target) *Endpoint { return t.OtherDeployment }),
		run:   obtainedAt(func(t *Target) *Endpoint { return t.OtherDeployment }),
	},
	{
		name: "other method", checks: "a request state of a request of another method is refused",
		source: shouldMatch, reasons: []string{"other_method"},
		needs: needsRequest("otherMethod", func(t *Target) *Request { return t.OtherMethod }),
		run:   obtainedFrom(func(t *Target) *Request { return t.OtherMethod }),
	},
	{
		name: "other target", checks: "a request state of another tool, prompt or resource is refused",
		source: shouldMatch, reasons: []string{"other_target"},
		needs: needsRequest("otherTarget", func(t *Target) *Request { return t.OtherTarget }),
		run:   obtainedFrom(func(t *Target) *Request { return t.OtherTarget }),
	},
	{
		name: "other arguments", checks: "a request state of a request with other arguments is refused",
		source: shouldMatch, reasons: []string{"other_params"}, needs: needsOtherArguments, run: otherArguments,
	},
	{
		name: "large integers", checks: "9007199254740992 and 9007199254740993, which are one double, are different arguments",
		source: shouldMatch, reasons: []string{"other_params"}, needs: needsNumber,
		run: otherNumber(
			[2]string{"9007199254740993", "9007199254740992"},
			[2]string{"9007199254740992", "9007199254740993"},
			[2]string{"-9223372036854775808", "-9223372036854775807"},
		),
	},
	{
		name: "long decimals", checks: "0.1 and 0.1000000000000000055511151231257827, which are one double, are different arguments",
		source: shouldMatch, reasons: []string{"other_params"}, needs: needsNumber,
		run: otherNumber([2]string{"0.1", "0.1000000000000000055511151231257827"}),
	},

	// The same request, written in another way.
	{
		name: "equal numbers", checks: "1, 1.0 and 10e-1 are the same argument: accepted",
		source: mustEcho, needs: needsNumber, run: equalNumbers,
	},
	{
		name: "key order", checks: "the same members in another order: accepted",
		source: mustEcho, run: keyOrder,
	},
	{
		name: "spelling", checks: "the same params with white space and JSON escapes: accepted",
		source: mustEcho, run: spelling,
	},
	{
		name: "duplicate keys", checks: "params in which a name stands twice are refused, by whatever error",
		source: rfc8259, run: duplicateKeys,
	},

	// Rounds.
	{
		name: "changed question", checks: "an answer is not used for a question that was not the one shown: the server asks again",
		source: inputRequests, counter: answersCounter, reasons: []string{"question_changed"},
		needs: needsChangingQuestion, run: changedQuestion,
	},
	{
		name: "replayed", checks: "the request state of a request that has completed does what the target says: it is accepted, or refused as once-only",
		source: notSingleUse, needs: needsOnceOnly, run: replayed,
	},

	// Time.
	{
		name: "expired", checks: "a request state is refused after its lifetime",
		source: shouldExpire, reasons: []string{"expired"},
		needs: needsLapse("expiry", func(t *Target) *Lapse { return t.Expiry }),
		run:   lapsed(func(t *Target) *Lapse { return t.Expiry }),
	},
	{
		name: "chain expired", checks: "a request state is refused after the lifetime of its chain, though its own is not over",
		source: shouldExpire, reasons: []string{"chain_expired"},
		needs: needsLapse("chainExpiry", func(t *Target) *Lapse { return t.ChainExpiry }),
		run:   lapsed(func(t *Target) *Lapse { return t.ChainExpiry }),
	},

	// Keys.
	{
		name: "unknown key", checks: "a request state made with a key that the server does not know is refused",
		source: mustVerify, reasons: []string{"unknown_key"},
		needs: needsEndpoint("unknownKey", func(t *Target) *Endpoint { return t.UnknownKey }),
		run:   obtainedAt(func(t *Target) *Endpoint { return t.UnknownKey }),
	},
	{
		name: "prepared key", checks: "a request state made with a key that the server knows and does not use yet is accepted: replicas rotate one after another",
		source: mustEcho,
		needs:  needsEndpoint("preparedKey", func(t *Target) *Endpoint { return t.PreparedKey }),
		run:    preparedKey,
	},
	{
		name: "retired key", checks: "a request state is refused once its key has been retired",
		source: mustVerify, reasons: []string{"retired_key"},
		needs: needsLapse("retire", func(t *Target) *Lapse { return t.Retire }),
		run:   lapsed(func(t *Target) *Lapse { return t.Retire }),
	},
}

func needsEndpoint(name string, endpoint func(*Target) *Endpoint) func(*Target) string {
	return func(target *Target) string {
		if endpoint(target) == nil {
			return name + ", an endpoint"
		}
		return ""
	}
}

func needsRequest(name string, request func(*Target) *Request) func(*Target) string {
	return func(target *Target) string {
		if request(target) == nil {
			return name + ", a request that asks too"
		}
		return ""
	}
}

func needsLapse(name string, lapse func(*Target) *Lapse) func(*Target) string {
	return func(target *Target) string {
		if lapse(target) == nil {
			return name + ": how to bring it about"
		}
		return ""
	}
}

func needsNumber(target *Target) string {
	if target.NumberArgument == "" {
		return "numberArgument, an argument that takes any number"
	}
	return ""
}

func needsOtherArguments(target *Target) string {
	if target.OtherArguments == "" {
		return "otherArguments, other valid arguments of the request"
	}
	return ""
}

func needsChangingQuestion(target *Target) string {
	if target.ChangingQuestion == nil {
		return "changingQuestion, a request whose question can be changed"
	}
	return ""
}

func needsOnceOnly(target *Target) string {
	if target.OnceOnly == nil {
		return "onceOnly: whether a request state is good for one retry only"
	}
	return ""
}
