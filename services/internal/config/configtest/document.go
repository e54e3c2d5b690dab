// Package configtest compares the document for operators with the structs that
// configuration files are read into.
//
// The problem: an option that is added and not described is found by nobody, and a
// default that is changed is believed for years. The mechanism: the document has a
// table for each struct, with a row for each key and its default, and Compare walks
// the struct and wants the two to be the same. The limit: what a row says of its key
// in words is for people to check.
package configtest

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-mcp/countersign/services/internal/config"
)

// Document says which table of the document describes which struct.
type Document struct {
	// Path is the document.
	Path string
	// Heading is the heading above the table of the whole configuration.
	Heading string
	// Shared are the headings above the tables of structs that several configurations
	// have in common. A key with such a struct is described once for all.
	Shared map[reflect.Type]string
}

// row matches a line of a table: the key, its default, and something about it.
var row = regexp.MustCompile("^\\| `([^`]+)` \\| (?:`([^`]+)` )?\\| [^|]+ \\|$")

// Compare fails the test unless the tables have exactly the keys of the
// configuration, with the values it has as defaults.
func (d Document) Compare(t *testing.T, defaults any) {
	t.Helper()

	documented := d.read(t)
	wanted := map[string]map[string]reflect.Value{}
	d.walk(wanted, d.Heading, "", reflect.ValueOf(defaults))

	for _, heading := range slices.Sorted(maps.Keys(wanted)) {
		for _, key := range slices.Sorted(maps.Keys(wanted[heading])) {
			text, found := documented[heading][key]
			if !found {
				t.Errorf("%q: %s is not described", heading, key)
			} else if value := wanted[heading][key]; !same(text, value) {
				t.Errorf("%q: the default of %s is %q there, and %v here", heading, key, text, value)
			}
		}

		for _, key := range slices.Sorted(maps.Keys(documented[heading])) {
			if _, found := wanted[heading][key]; !found {
				t.Errorf("%q: %s is described, and there is no such key", heading, key)
			}
		}
	}
}

// read returns the defaults in the document, by heading and key.
func (d Document) read(t *testing.T) map[string]map[string]string {
	t.Helper()

	content, err := os.ReadFile(d.Path)
	if err != nil {
		t.Fatal(err)
	}

	tables, heading := map[string]map[string]string{}, ""

	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		if title, found := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); found && strings.HasPrefix(line, "#") {
			heading = title
			tables[heading] = map[string]string{}
		} else if match := row.FindStringSubmatch(line); match != nil && heading != "" {
			tables[heading][match[1]] = match[2]
		}
	}

	return tables
}

// walk collects the keys of a struct, with their values, by the heading they belong
// under.
func (d Document) walk(into map[string]map[string]reflect.Value, heading, prefix string, value reflect.Value) {
	if into[heading] == nil {
		into[heading] = map[string]reflect.Value{}
	}

	for field, member := range value.Fields() {
		key := prefix + field.Tag.Get("yaml")
		shared, isShared := d.Shared[field.Type]

		switch {
		case isShared:
			into[heading][key] = reflect.ValueOf("")
			d.walk(into, shared, "", member)
		case field.Type.Kind() == reflect.Struct:
			d.walk(into, heading, key+".", member)
		case field.Type.Kind() == reflect.Slice && field.Type.Elem().Kind() == reflect.Struct:
			d.walk(into, heading, key+"[].", reflect.Zero(field.Type.Elem()))
		default:
			into[heading][key] = member
		}
	}
}

// same says whether the text of the document is the value. The empty text is the
// zero value.
func same(text string, value reflect.Value) bool {
	if text == "" || value.IsZero() {
		return text == "" && value.IsZero()
	}

	if duration, isDuration := reflect.TypeAssert[config.Duration](value); isDuration {
		parsed, err := time.ParseDuration(text)

		return err == nil && parsed == duration.Duration()
	}

	return text == fmt.Sprint(value.Interface())
}
