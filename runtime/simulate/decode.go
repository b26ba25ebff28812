package simulate

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// decode reads one strict document: unknown and repeated members are refused.
// Errors name the document, the place and what is known there.
func decode(what string, data []byte, into any) error {
	err := json.Unmarshal(data, into, json.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	at, pointer, text := int64(-1), "", err.Error()
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		at, pointer, text = e.ByteOffset, string(e.JSONPointer), e.Err.Error()
	}
	if e, ok := errors.AsType[*json.SemanticError](err); ok {
		at, pointer = e.ByteOffset, string(e.JSONPointer)
		text = semantic(e)
	}
	if at < 0 {
		return fmt.Errorf("%s: %s", what, text)
	}
	line := 1 + bytes.Count(data[:at], []byte("\n"))
	column := int(at) - bytes.LastIndexByte(data[:at], '\n')
	if pointer != "" {
		text = pointer + ": " + text
	}
	return fmt.Errorf("%s, line %d, column %d: %s", what, line, column, text)
}

func semantic(e *json.SemanticError) string {
	switch {
	case errors.Is(e, json.ErrUnknownName) && e.GoType != nil:
		return "unknown member; known are " + strings.Join(members(e.GoType), ", ")
	case e.GoType != nil && e.Err == nil:
		return fmt.Sprintf("must be %s", kind(e.GoType))
	case e.Err != nil:
		return e.Err.Error()
	}
	return e.Error()
}

// members are the JSON names of a document's type.
func members(t reflect.Type) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	var names []string
	for i := range t.NumField() {
		if name := t.Field(i).Tag.Get("json"); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// kind says in JSON's words what a type takes.
func kind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return kind(t.Elem())
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text"
	}
	return "a whole number that is not negative and fits 64 bits"
}
