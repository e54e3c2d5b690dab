package handler

import (
	"reflect"
	"strings"
	"testing"
)

func TestATagThatWouldDoNothingIsTold(t *testing.T) {
	for tag, problem := range map[string]string{
		`minLenght:"1"`:                   `is it "minLength"?`,
		`json:"a" Format:"email"`:         `is it "format"?`,
		`mnimun:"1"`:                      `is it "minimum"?`,
		`titel:"A"`:                       `is it "title"?`,
		`enums:"a,b"`:                     `is it "enum"?`,
		`enumtitle:"a,b"`:                 `is it "enumTitles"?`,
		`min:"1"`:                         "use minimum, minLength or minItems",
		`description:"A."`:                "use jsonschema",
		`json:"a" minLength:1`:            "is not a list",
		`json:"a", minLength:"1"`:         "is not a list",
		`json:"a" minLength`:              "is not a list",
		"minLength:`1`":                   "is not a list",
		`format:"email" format:"uri"`:     `"format" occurs twice`,
		`bson:"a" jsonschema:"" jsn:"\""`: `is it "json"?`,
	} {
		if err := checkTags(reflect.StructTag(tag)); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: got %v, want %s", tag, err, problem)
		}
	}
}

func TestTagsOfOtherPackagesAreNoneOfOurBusiness(t *testing.T) {
	for _, tag := range []reflect.StructTag{
		"", `json:"a,omitempty"  jsonschema:"An \"a\"." title:"A"`,
		`xml:"a" yaml:"a" toml:"a" bson:"a" db:"a" form:"a" env:"A" query:"a" uri:"a" header:"a" hcl:"a" cbor:"a" msgpack:"a"`,
		`validate:"min=1" mapstructure:"a" binding:"required" gorm:"primaryKey" koanf:"a" protobuf:"bytes,1" help:"A." name:"a"`,
	} {
		if err := checkTags(tag); err != nil {
			t.Errorf("%s: %v", tag, err)
		}
	}
}
