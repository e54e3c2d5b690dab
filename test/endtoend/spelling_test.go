package endtoend_test

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"

	"pgregory.net/rapid"
)

// value is a JSON value apart from how it is written.
type value interface {
	// spell writes it in one of the many ways, without white space.
	spell(t *rapid.T) string
}

// literal is null, true or false.
type literal string

func (l literal) spell(*rapid.T) string { return string(l) }

// number is digits times a power of ten.
type number struct {
	negative bool
	// digits are two or more, the first not zero.
	digits   string
	exponent int
}

// next returns a number that differs in its last digit.
func (n number) next() number {
	last := len(n.digits) - 1
	changed := n
	// An even digit becomes the odd one after it, an odd one the even one before it.
	digit := (n.digits[last] - '0') ^ 1 + '0'
	changed.digits = n.digits[:last] + string(digit)
	return changed
}

// spell puts the point anywhere among the digits and mends that with the exponent.
func (n number) spell(t *rapid.T) string {
	fraction := rapid.IntRange(0, len(n.digits)).Draw(t, "digits of the fraction")
	whole := n.digits[:len(n.digits)-fraction]
	if whole == "" {
		whole = "0"
	}
	var spelled strings.Builder
	if n.negative {
		spelled.WriteByte('-')
	}
	spelled.WriteString(whole)
	zeros := strings.Repeat("0", rapid.IntRange(0, 3).Draw(t, "zeros behind"))
	if tail := n.digits[len(n.digits)-fraction:] + zeros; tail != "" {
		spelled.WriteString("." + tail)
	}
	exponent := n.exponent + fraction
	if exponent != 0 || rapid.Bool().Draw(t, "exponent of zero") {
		mark := rapid.SampledFrom([]string{"e", "E"}).Draw(t, "mark")
		if exponent >= 0 && rapid.Bool().Draw(t, "plus") {
			mark += "+"
		}
		spelled.WriteString(mark + strconv.Itoa(exponent))
	}
	return spelled.String()
}

// text is a string.
type text string

func (s text) spell(t *rapid.T) string {
	var spelled strings.Builder
	spelled.WriteByte('"')
	for _, character := range string(s) {
		spelled.WriteString(spellCharacter(t, character))
	}
	spelled.WriteByte('"')
	return spelled.String()
}

// short are the escapes of one letter.
var short = map[rune]string{'"': `\"`, '\\': `\\`, '/': `\/`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}

func spellCharacter(t *rapid.T, character rune) string {
	var ways []string
	if character >= ' ' && character != '"' && character != '\\' {
		ways = append(ways, string(character))
	}
	if escape, ok := short[character]; ok {
		ways = append(ways, escape)
	}
	var escaped strings.Builder
	for _, unit := range utf16.Encode([]rune{character}) {
		fmt.Fprintf(&escaped, rapid.SampledFrom([]string{`\u%04x`, `\u%04X`}).Draw(t, "case"), unit)
	}
	return rapid.SampledFrom(append(ways, escaped.String())).Draw(t, "way")
}

// array is a list of values.
type array []value

func (a array) spell(t *rapid.T) string {
	spelled := make([]string, len(a))
	for i, element := range a {
		spelled[i] = element.spell(t)
	}
	return "[" + strings.Join(spelled, ",") + "]"
}

// object is members with names of their own.
type object []member

type member struct {
	name  text
	value value
}

func (o object) spell(t *rapid.T) string {
	spelled := make([]string, len(o))
	for i, each := range rapid.Permutation(o).Draw(t, "order") {
		spelled[i] = each.name.spell(t) + ":" + each.value.spell(t)
	}
	return "{" + strings.Join(spelled, ",") + "}"
}

// drawnName is the name of a member that no drawn object has.
const drawnName = text("a name for itself alone")

// The characters of strings: those with escapes, those that fold into others, those
// that need two UTF-16 units, those that some parsers treat in their own way.
const characters = "aAsSkK\u017f\u212a\"\\/\b\f\n\r\t\x00\x1f\x7f é\u0301\u2028\ufeff\ufffd\uffff😀\U0010ffff<&"

func drawString(t *rapid.T) text {
	return text(rapid.StringOfN(rapid.SampledFrom([]rune(characters)), 0, 8, -1).Draw(t, "string"))
}

func drawNumber(t *rapid.T) number {
	return number{
		negative: rapid.Bool().Draw(t, "negative"),
		digits:   rapid.StringMatching(`[1-9][0-9]{0,24}[0-9]`).Draw(t, "digits"),
		exponent: rapid.SampledFrom([]int{0, 0, 0, -1, 1, -20, 20, -400, 400}).Draw(t, "exponent"),
	}
}

func drawObject(t *rapid.T) object { return drawNested(t, 3) }

// drawNested draws an object that is nested at most so deep.
func drawNested(t *rapid.T, depth int) object {
	names := rapid.SliceOfNDistinct(rapid.Custom(drawString), 0, 4, rapid.ID[text]).Draw(t, "names")
	drawn := make(object, len(names))
	for i, name := range names {
		drawn[i] = member{name, drawValue(t, depth-1)}
	}
	return drawn
}

func drawValue(t *rapid.T, depth int) value {
	kinds := 4
	if depth <= 0 {
		kinds = 2
	}
	switch rapid.IntRange(0, kinds).Draw(t, "kind") {
	case 0:
		return literal(rapid.SampledFrom([]string{"null", "true", "false"}).Draw(t, "literal"))
	case 1:
		return drawNumber(t)
	case 2:
		return drawString(t)
	case 3:
		elements := make(array, rapid.IntRange(0, 3).Draw(t, "elements"))
		for i := range elements {
			elements[i] = drawValue(t, depth-1)
		}
		return elements
	default:
		return drawNested(t, depth)
	}
}
