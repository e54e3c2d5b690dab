package probe

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// alphabet is that of base64url; its order is the value of a character.
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// strange are characters outside of it that a lenient decoder may take.
const strange = "+/=.~% "

// own obtains a request state for the target's request.
func (s *session) own(ctx context.Context) (string, error) {
	held, err := s.obtain(ctx, s.target.Endpoint, s.target.Request)
	return held.state, err
}

// refuseVariations obtains a request state and presents what is made of it.
func (s *session) refuseVariations(ctx context.Context, vary func(state string) []variant) error {
	state, err := s.own(ctx)
	if err != nil {
		return err
	}
	variants := vary(state)
	if len(variants) == 0 {
		return unsuitableError("this server's request states have no such variation")
	}
	return s.refuseAll(ctx, variants)
}

func invented(ctx context.Context, s *session) error {
	return s.refuseVariations(ctx, func(state string) []variant {
		forged := `{"user":"admin","exp":99999999999}`
		return named(map[string]string{
			"empty":                             "",
			"a word":                            "undefined",
			"two characters":                    "AQ",
			"JSON":                              forged,
			"JSON in base64url":                 base64.RawURLEncoding.EncodeToString([]byte(forged)),
			"a JWT without a signature":         "eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString([]byte(forged)) + ".",
			"zeros of the same length":          strings.Repeat("A", len(state)),
			"random text of the same length":    s.randomText(len(state)),
			"the beginning of a good one":       state[:min(20, len(state)/2)] + s.randomText(len(state)-min(20, len(state)/2)),
			"an emoji":                          "🔑",
			"a path":                            "../../../../etc/passwd",
			"the name of the member":            "requestState",
			"random text of 16 characters":      s.randomText(16),
			"random text of twice the length":   s.randomText(2 * len(state)),
			"the characters in another order":   reversed(state),
			"a request state without its start": state[len(state)/3:],
		})
	})
}

func wrongTypes(ctx context.Context, s *session) error {
	return s.refuseVariations(ctx, func(state string) []variant {
		var variants []variant
		for _, text := range []string{"0", "1", "-1.5", "1e400", "true", "false", "[]", "{}", "[" + quote(state) + "]", `{"requestState":` + quote(state) + "}"} {
			variants = append(variants, variant{what: text[:min(20, len(text))], state: text})
		}
		return variants
	})
}

func null(ctx context.Context, s *session) error {
	reply, err := s.presentText(ctx, s.target.Request, append(s.target.Request.members(), `"requestState":null`))
	if err == nil && reply.kind != kindInputRequired {
		err = fmt.Errorf("the server did not ask: the reply is %s", reply)
	}
	return err
}

func oversize(ctx context.Context, s *session) error {
	return s.refuseVariations(ctx, func(state string) []variant {
		length := s.target.OversizeBytes
		return named(map[string]string{
			"letters":                           strings.Repeat("A", length),
			"random text":                       s.randomText(length),
			"a good one followed by the letter": state + strings.Repeat("A", length),
			"a good one followed by itself":     strings.Repeat(state, length/len(state)+1),
		})
	})
}

func jsonEscapes(ctx context.Context, s *session) error {
	state, err := s.own(ctx)
	if err != nil {
		return err
	}
	return s.accept(ctx, s.target.Request, escape(state))
}

func padding(ctx context.Context, s *session) error {
	return s.refuseVariations(ctx, func(state string) []variant {
		return added(state, "=", "==", "===", "====")
	})
}

func lineBreaks(ctx context.Context, s *session) error {
	return s.refuseVariations(ctx, func(state string) []variant { return added(state, "\r", "\n", "\r\n") })
}

func whiteSpace(ctx context.Context, s *session) error {
	return s.refuseVariations(ctx, func(state string) []variant {
		return added(state, " ", "\t", "\v", "\f", "\u00a0", "\u2028", "\u200b", "\ufeff", "\x00")
	})
}

func percentEncoding(ctx context.Context, s *session) error {
	return s.refuseVariations(ctx, func(state string) []variant {
		var all strings.Builder
		for _, character := range []byte(state) {
			fmt.Fprintf(&all, "%%%02X", character)
		}
		return named(map[string]string{
			"the first character": fmt.Sprintf("%%%02X", state[0]) + state[1:],
			"the last character":  state[:len(state)-1] + fmt.Sprintf("%%%02x", state[len(state)-1]),
			"all characters":      all.String(),
			"an end of the line":  state + "%0A",
		})
	})
}

// otherAlphabet needs a request state with a character that the two alphabets do
// not share. Most have one; it is looked for in some.
func otherAlphabet(ctx context.Context, s *session) error {
	const most = 20
	for range most {
		state, err := s.own(ctx)
		if err != nil {
			return err
		}
		if strings.ContainsAny(state, "-_+/") {
			return s.refuseAll(ctx, []variant{{
				what:  "- and _ against + and /",
				state: quote(strings.NewReplacer("-", "+", "_", "/", "+", "-", "/", "_").Replace(state)),
			}})
		}
	}
	return unsuitableError(fmt.Sprintf("%d request states had no character that the two base64 alphabets do not share", most))
}

func unusedBits(ctx context.Context, s *session) error {
	return s.refuseVariations(ctx, func(state string) []variant {
		last := strings.IndexByte(alphabet, state[len(state)-1])
		unused := map[int]int{2: 1 << 4, 3: 1 << 2}[len(state)%4]
		if last < 0 || unused == 0 {
			return nil
		}
		var variants []variant
		for bits := 1; bits < unused; bits++ {
			changed := state[:len(state)-1] + alphabet[last^bits:last^bits+1]
			variants = append(variants, variant{what: fmt.Sprintf("bits %04b", bits), state: quote(changed)})
		}
		return variants
	})
}

func otherEncodings(ctx context.Context, s *session) error {
	return s.refuseVariations(ctx, func(state string) []variant {
		decoded, err := base64.RawURLEncoding.DecodeString(state)
		if err != nil {
			decoded = []byte(state)
		}
		return named(map[string]string{
			"hexadecimal":          hex.EncodeToString(decoded),
			"base64url once more":  base64.RawURLEncoding.EncodeToString([]byte(state)),
			"upper case":           strings.ToUpper(state),
			"lower case":           strings.ToLower(state),
			"quotes":               quote(state),
			"full-width character": string(rune(state[0])-'!'+'\uff01') + state[1:],
			"JSON escapes, twice":  strings.Trim(escape(state), `"`),
			"a data URL":           "data:;base64," + state,
			"HTML":                 fmt.Sprintf("&#%d;", state[0]) + state[1:],
		})
	})
}

// changedCharacters changes each character, in as many ways as the samples allow.
func changedCharacters(ctx context.Context, s *session) error {
	return s.refuseVariations(ctx, func(state string) []variant {
		var variants []variant
		ways := max(1, s.target.Samples/len(state))
		for _, place := range s.places(len(state)) {
			characters := []byte(strings.ReplaceAll(alphabet+strange, state[place:place+1], ""))
			s.random.Shuffle(len(characters), func(i, j int) { characters[i], characters[j] = characters[j], characters[i] })
			for _, character := range characters[:min(ways, len(characters))] {
				variants = append(variants, variant{
					what:  fmt.Sprintf("character %d of %d", place+1, len(state)),
					state: quote(state[:place] + string(character) + state[place+1:]),
				})
			}
		}
		return variants
	})
}

func truncated(ctx context.Context, s *session) error {
	return s.refuseVariations(ctx, func(state string) []variant {
		var variants []variant
		for _, length := range s.places(len(state)) {
			variants = append(variants, variant{what: fmt.Sprintf("%d of %d characters", length, len(state)), state: quote(state[:length])})
		}
		return variants
	})
}

func extended(ctx context.Context, s *session) error {
	return s.refuseVariations(ctx, func(state string) []variant {
		return named(map[string]string{
			"a character after it":   state + "A",
			"four characters":        state + "AAAA",
			"itself":                 state + state,
			"a dot":                  state + ".",
			"a character before it":  "A" + state,
			"four characters before": "AAAA" + state,
			"Bearer":                 "Bearer " + state,
			"a separator and itself": state + "," + state,
		})
	})
}

func spliced(ctx context.Context, s *session) error {
	one, err := s.own(ctx)
	if err != nil {
		return err
	}
	return s.refuseVariations(ctx, func(other string) []variant {
		var variants []variant
		const pieces = 16
		for piece := 1; piece < pieces; piece++ {
			place := len(one) * piece / pieces
			mixed := one[:place] + other[min(place, len(other)):]
			if mixed != one && mixed != other {
				variants = append(variants, variant{what: fmt.Sprintf("the first %d characters", place), state: quote(mixed)})
			}
		}
		return variants
	})
}

// named lists variations in the order of their names.
func named(states map[string]string) []variant {
	variants := make([]variant, 0, len(states))
	for what, state := range states {
		variants = append(variants, variant{what: what, state: quote(state)})
	}
	slices.SortFunc(variants, func(a, b variant) int { return strings.Compare(a.what, b.what) })
	return variants
}

// added adds each text in front of, in the middle of and behind a request state.
func added(state string, texts ...string) []variant {
	var variants []variant
	middle := len(state) / 2
	for _, text := range texts {
		for where, changed := range map[string]string{
			"before": text + state,
			"within": state[:middle] + text + state[middle:],
			"after":  state + text,
		} {
			variants = append(variants, variant{what: fmt.Sprintf("%q %s it", text, where), state: quote(changed)})
		}
	}
	return variants
}

// places are the places of a text of a length: all of them, or samples of them.
func (s *session) places(length int) []int {
	count := min(length, s.target.Samples)
	places := make([]int, count)
	for i := range places {
		places[i] = i * length / count
	}
	return places
}

// randomText is text in the alphabet of base64url.
func (s *session) randomText(length int) string {
	text := make([]byte, length)
	for i := range text {
		text[i] = alphabet[s.random.IntN(len(alphabet))]
	}
	return string(text)
}

func reversed(text string) string {
	characters := []byte(text)
	slices.Reverse(characters)
	return string(characters)
}
