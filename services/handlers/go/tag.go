package handler

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// knownTags are the struct tags that say something in a form or in the arguments of
// a tool.
var knownTags = []string{
	"json", "jsonschema", "title", "enum", "enumTitles", "format", "default",
	"minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum",
}

// foreignTags belong to other packages and only look like one of knownTags.
var foreignTags = []string{"bson", "form", "hjson"}

const (
	adviseOptional = "a field is required unless its json tag says omitempty or omitzero"
	adviseSchema   = "no tag says this; write the schema by hand"
	adviseMinimum  = "use minimum, minLength or minItems"
	adviseMaximum  = "use maximum, maxLength or maxItems"
)

// refusedTags are words that an author expects to work. Other unknown tags are other
// packages' business.
var refusedTags = map[string]string{
	"required":         adviseOptional,
	"optional":         adviseOptional,
	"description":      "use jsonschema",
	"min":              adviseMinimum,
	"max":              adviseMaximum,
	"exclusiveMinimum": adviseSchema,
	"exclusiveMaximum": adviseSchema,
	"multipleOf":       adviseSchema,
	"pattern":          adviseSchema,
	"const":            adviseSchema,
	"uniqueItems":      adviseSchema,
}

// checkTags refuses a tag that would do nothing although it was meant to do
// something: an unreadable one, a misspelt one, and one that only JSON Schema knows.
func checkTags(tag reflect.StructTag) error {
	keys, err := tagKeys(tag)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if slices.Contains(knownTags, key) || slices.Contains(foreignTags, key) {
			continue
		}
		if advice, refused := refusedTags[key]; refused {
			return fmt.Errorf("the tag %q does nothing: %s", key, advice)
		}
		for _, known := range knownTags {
			if looksLike(key, known) {
				return fmt.Errorf("the tag %q does nothing: is it %q?", key, known)
			}
		}
	}
	return nil
}

// tagKeys lists the keys of a tag. [reflect.StructTag] overlooks whatever follows a
// mistake, and all but the first of two equal keys.
func tagKeys(tag reflect.StructTag) ([]string, error) {
	var keys []string
	for rest := strings.TrimLeft(string(tag), " "); rest != ""; rest = strings.TrimLeft(rest, " ") {
		key, after, _ := strings.Cut(rest, ":")
		value, err := strconv.QuotedPrefix(after)
		if err != nil || value[0] != '"' || key == "" || strings.ContainsAny(key, " \t\"") {
			return nil, errors.New(`the tag is not a list of name:"value"`)
		}
		if slices.Contains(keys, key) {
			return nil, fmt.Errorf("the tag %q occurs twice", key)
		}
		keys = append(keys, key)
		rest = after[len(value):]
	}
	return keys, nil
}

// looksLike reports whether a key is a known one in another case or with a slip of
// the keyboard in it; with two, where the word is long.
func looksLike(key, known string) bool {
	slips := 1
	if len(known) > 5 {
		slips = 2
	}
	return editDistance(strings.ToLower(key), strings.ToLower(known)) <= slips
}

// editDistance is how many letters have to be put in, left out, replaced or swapped
// with their neighbour to turn one word into the other.
func editDistance(one, other string) int {
	rows := make([][]int, len(one)+1)
	for i := range rows {
		rows[i] = make([]int, len(other)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(one); i++ {
		for j := 1; j <= len(other); j++ {
			replaced := rows[i-1][j-1]
			if one[i-1] != other[j-1] {
				replaced++
			}
			rows[i][j] = min(replaced, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && one[i-1] == other[j-2] && one[i-2] == other[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(one)][len(other)]
}
