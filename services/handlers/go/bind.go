package handler

import (
	"fmt"
	"reflect"
	"strconv"
)

// checkBindable refuses a type that strings cannot be bound to.
func checkBindable(of reflect.Type) error {
	if of.Kind() != reflect.Struct {
		return fmt.Errorf("%s is not a struct", of)
	}
	for _, field := range reflect.VisibleFields(of) {
		if _, _, skip := jsonName(field); skip {
			continue
		}
		if err := checkTags(field.Tag); err != nil {
			return fmt.Errorf("the field %s.%s: %w", of, field.Name, err)
		}
		switch field.Type.Kind() {
		case reflect.String, reflect.Bool, reflect.Float32, reflect.Float64,
			reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
			reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		default:
			return fmt.Errorf("the field %s.%s is not a string, number or boolean", of, field.Name)
		}
	}
	return nil
}

// bind sets the fields of the struct that target points to from strings by their
// JSON names. A name without a value leaves the field as it is.
func bind(target any, values map[string]string) error {
	structure := reflect.ValueOf(target).Elem()
	for _, field := range reflect.VisibleFields(structure.Type()) {
		name, _, skip := jsonName(field)
		text, given := values[name]
		if skip || !given {
			continue
		}
		if err := bindField(structure.FieldByIndex(field.Index), text); err != nil {
			return fmt.Errorf("%q is not %s", name, wantedName(field.Type))
		}
	}
	return nil
}

func bindField(field reflect.Value, text string) error {
	switch {
	case field.Kind() == reflect.String:
		field.SetString(text)
	case field.Kind() == reflect.Bool:
		value, err := strconv.ParseBool(text)
		if err != nil {
			return err
		}
		field.SetBool(value)
	case field.CanInt():
		value, err := strconv.ParseInt(text, 10, field.Type().Bits())
		if err != nil {
			return err
		}
		field.SetInt(value)
	case field.CanUint():
		value, err := strconv.ParseUint(text, 10, field.Type().Bits())
		if err != nil {
			return err
		}
		field.SetUint(value)
	default:
		value, err := strconv.ParseFloat(text, field.Type().Bits())
		if err != nil {
			return err
		}
		field.SetFloat(value)
	}
	return nil
}
