package config

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/caarlos0/env/v11"
)

// Load fills dst, a pointer to a struct, from environ, or from the process's environment if environ is nil. Fields
// name their variable in an env tag and may have an envDefault, as [env] reads them. Load also fills fields of struct
// type. Names have no prefix: a name means the same in every struct.
//
//   - An empty variable counts as not set.
//   - A list is separated by commas; spaces around its elements and empty elements are dropped.
//   - A [Secret] or a list of them can also come from a file: NAME_FILE is its path. One line end (LF or CRLF) at the
//     end of the file is dropped.
//
// Then Load calls Validate() error on dst and on each struct within it that has the method. Validate checks the
// struct's own fields. It reports with [Invalid] and [errors.Join].
//
// The error is a [*Faults] with all faults. If dst has another type, which is a mistake in the program, the error has
// another type as well.
// error of another type.
func Load(dst any, environ map[string]string) error {
	v := reflect.ValueOf(dst)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("config: Load into %T: want a pointer to a struct", dst)
	}
	if environ == nil {
		environ = env.ToMap(os.Environ())
	}
	l := loader{environ: environ, faulty: map[string]bool{}}
	l.fill(v.Elem())
	l.validate(v.Elem())
	if len(l.faults.All) > 0 {
		return &l.faults
	}
	return nil
}

// Validator is a struct of settings that checks itself.
type Validator interface {
	// Validate reports all faults of the struct's own fields at once.
	Validate() error
}

type loader struct {
	environ map[string]string
	faults  Faults
	faulty  map[string]bool // variables that have a fault already
}

// fill reads every field of the struct v.
func (l *loader) fill(v reflect.Value) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("env"), ",")
		switch {
		case !v.Field(i).CanSet() || name == "-":
		case name != "":
			if err := l.set(v.Field(i), field, name, options); err != nil {
				l.add(err)
			}
		case field.Type.Kind() == reflect.Struct:
			l.fill(v.Field(i))
		}
	}
}

// set reads one variable.
func (l *loader) set(v reflect.Value, field reflect.StructField, name, options string) error {
	secret := isSecret(field.Type)
	text := l.environ[name]
	if secret {
		fromFile, err := l.readFile(name)
		if err != nil {
			return err
		}
		if text == "" {
			text = fromFile
		}
	}
	if field.Type.Kind() == reflect.Slice {
		text = tidyList(text)
	}
	if text == "" && field.Tag.Get("envDefault") == "" {
		if strings.Contains(options, "required") || strings.Contains(options, "notEmpty") {
			return &Fault{Variable: name, Problem: "is not set, and is required"}
		}
		return nil
	}

	// Set one field at a time, as env's errors name the field and not the variable.
	one := reflect.New(reflect.StructOf([]reflect.StructField{{Name: "Field", Type: field.Type, Tag: field.Tag}}))
	err := env.ParseWithOptions(one.Interface(), env.Options{Environment: map[string]string{name: text}})
	if err != nil {
		if secret {
			return Invalid(name, NewSecret(text), allowed(field.Type, nil))
		}
		return Invalid(name, text, allowed(field.Type, err))
	}
	v.Set(one.Elem().Field(0))
	return nil
}

// readFile returns the content of the file that NAME_FILE names, or "" if NAME_FILE is not set.
func (l *loader) readFile(name string) (string, error) {
	variable := name + "_FILE"
	path := l.environ[variable]
	if path == "" {
		return "", nil
	}
	if l.environ[name] != "" {
		return "", &Fault{Variable: name, Problem: "and " + variable + " are both set; set one of them"}
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", &Fault{Variable: variable, Problem: "names a file that cannot be read: " + err.Error()}
	}
	text := strings.TrimSuffix(string(content), "\n")
	return strings.TrimSuffix(text, "\r"), nil
}

// validate calls Validate of each struct within v, then of v.
func (l *loader) validate(v reflect.Value) {
	for i := range v.NumField() {
		if field := v.Type().Field(i); field.Type.Kind() == reflect.Struct && v.Field(i).CanSet() && field.Tag.Get("env") == "" {
			l.validate(v.Field(i))
		}
	}
	if checked, ok := v.Addr().Interface().(Validator); ok {
		if err := checked.Validate(); err != nil {
			l.add(err)
		}
	}
}

// add notes err, or each of the errors that it joins. It notes one [*Fault] for each variable, so that a value that
// could not be parsed is not also out of range. It notes other errors of a Validate unchanged.
func (l *loader) add(err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			l.add(e)
		}
		return
	}
	if fault, ok := errors.AsType[*Fault](err); ok {
		if l.faulty[fault.Variable] {
			return
		}
		l.faulty[fault.Variable] = true
	}
	l.faults.All = append(l.faults.All, err)
}

func isSecret(t reflect.Type) bool {
	secret := reflect.TypeFor[Secret]()
	return t == secret || t.Kind() == reflect.Slice && t.Elem() == secret
}

func tidyList(text string) string {
	var kept []string
	for element := range strings.SplitSeq(text, ",") {
		if element = strings.TrimSpace(element); element != "" {
			kept = append(kept, element)
		}
	}
	return strings.Join(kept, ",")
}
