package config

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/caarlos0/env/v11"
)

// Load fills dst, a pointer to a struct, from environ, or from the process's environment if environ is nil. Fields name
// their variable in an env tag and may have an envDefault, as [env] reads them. Load also fills fields of struct type.
// Names have no prefix: a name means the same in every struct.
//
//   - An empty variable counts as not set.
//   - A list is separated by commas. Load drops spaces around the elements, and empty elements.
//   - A [Secret], a [ServerURL] or a list of them can also come from a file: NAME_FILE is its path. Load drops one line
//     end (LF or CRLF) at the end of the file.
//   - The password of a [ServerURL] or of a list of them can come from a file: for the variable X_URL,
//     X_PASSWORD_FILE is the path. Load checks that the file can be read and is not empty. Without X_URL,
//     X_PASSWORD_FILE means nothing.
//
// Then Load calls the method Validate() error of dst and of each struct within dst that has the method. Validate checks
// the struct's own fields, and reports their faults with [Invalid] and [errors.Join].
//
// The error is a [*Faults] with one fault of each variable, and the other errors of Validate methods. If dst is not a
// pointer to a struct, which is a mistake in the program, the error has another type.
func Load(dst any, environ map[string]string) error { return LoadFor("", dst, environ) }

// LoadFor does what [Load] does, for a command of a program. If dst has the method of a [Requirer], LoadFor also calls
// it, and the error has the settings that the command lacks.
func LoadFor(command string, dst any, environ map[string]string) error {
	v := reflect.ValueOf(dst)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("config: Load into %T: want a pointer to a struct", dst)
	}
	if environ == nil {
		environ = env.ToMap(os.Environ())
	}
	l := loader{environ: environ, faulty: map[string]int{}}
	l.fill(v.Elem())
	l.validate(v.Elem())
	if r, ok := dst.(Requirer); ok && command != "" {
		l.add(r.Require(command))
	}
	if len(l.faults.All) > 0 {
		return &l.faults
	}
	return nil
}

// Validator is a struct of settings that checks its own fields after [Load] has filled them.
type Validator interface {
	// Validate reports all faults of the struct's own fields at once.
	Validate() error
}

// Requirer is the configuration of a program whose commands need different settings.
type Requirer interface {
	// Require reports all settings that the command needs and that are not set, each by [Invalid].
	Require(command string) error
}

type loader struct {
	environ map[string]string
	faults  Faults
	faulty  map[string]int // by variable, the index of its fault in faults.All
}

// fill sets the fields of the struct v, and of the structs within v, that name a variable, from the environment. fill
// adds the faults to l.faults.
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

// set sets the field v from the variable name, from a file, or to its default. Without any of these, v stays unchanged.
// The error is a [*Fault].
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
			return &Fault{Variable: name, Problem: missing}
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
	return l.setPasswordFile(v, name)
}

// setPasswordFile gives the URL in v, or each of a list of URLs, the password file of the variable name.
func (l *loader) setPasswordFile(v reflect.Value, name string) error {
	path := l.environ[passwordVariable(name)]
	if path == "" {
		return nil
	}
	switch urls := v.Addr().Interface().(type) {
	case *ServerURL:
		u, err := urls.withPasswordFile(name, path)
		*urls = u
		return err
	case *[]ServerURL:
		for i, url := range *urls {
			u, err := url.withPasswordFile(name, path)
			if err != nil {
				return err
			}
			(*urls)[i] = u
		}
	}
	return nil
}

// readFile returns the content of the file that NAME_FILE names, or "" if NAME_FILE is not set. The error reports that
// NAME is set too, or that the file cannot be read.
func (l *loader) readFile(name string) (string, error) {
	variable := name + "_FILE"
	path := l.environ[variable]
	if path == "" {
		return "", nil
	}
	if l.environ[name] != "" {
		return "", &Fault{Variable: name, Problem: "and " + variable + " are both set; set one of them"}
	}
	return readSecretFile(variable, path)
}

// validate calls Validate on each struct within v, then on v, and adds the faults to l.faults.
func (l *loader) validate(v reflect.Value) {
	for i := range v.NumField() {
		if field := v.Type().Field(i); field.Type.Kind() == reflect.Struct && v.Field(i).CanSet() && field.Tag.Get("env") == "" {
			l.validate(v.Field(i))
		}
	}
	if checked, ok := v.Addr().Interface().(Validator); ok {
		l.add(checked.Validate())
	}
}

// add notes err, or each of the errors that err joins. add notes only the first [*Fault] of each variable. So a value
// that could not be parsed is not also reported as out of range. For a variable that is not set, a Fault that says what
// is allowed replaces one that does not. Other errors of a Validate method are all noted.
func (l *loader) add(err error) {
	if err == nil {
		return
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			l.add(e)
		}
		return
	}
	if fault, ok := errors.AsType[*Fault](err); ok {
		if i, known := l.faulty[fault.Variable]; known {
			if noted, ok := errors.AsType[*Fault](l.faults.All[i]); ok && noted.Problem == missing {
				l.faults.All[i] = err
			}
			return
		}
		l.faulty[fault.Variable] = len(l.faults.All)
	}
	l.faults.All = append(l.faults.All, err)
}

func isSecret(t reflect.Type) bool {
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t == reflect.TypeFor[Secret]() || t == reflect.TypeFor[ServerURL]()
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
