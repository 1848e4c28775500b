package shell

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// environment resolves flags from maps of variables: the first map in which the variable is not empty wins. The
// environment of the process only applies if the caller adds it as a map.
type environment []map[string]string

// credentials are variables that replace each other: the first map of an [environment] with one of them wins.
var credentials = []string{"LECTERN_API_KEY", "LECTERN_API_KEY_FILE", "LECTERN_TOKEN_FILE"}

// get returns the value of a variable. get returns "" if no map has the variable, or if an earlier map has an
// alternative of [credentials].
func (e environment) get(name string) string {
	either := slices.Contains(credentials, name)
	for _, variables := range e {
		has := func(name string) bool { return variables[name] != "" }
		if has(name) || either && slices.ContainsFunc(credentials, has) {
			return variables[name]
		}
	}
	return ""
}

// Validate accepts every command line. kong requires the method of a resolver.
func (environment) Validate(*kong.Application) error { return nil }

// Resolve returns the value of the first of a flag's variables that is not empty, or nil if all are empty. For the
// variables in [credentials], Resolve returns even an empty value, which replaces the value that kong read from the
// environment of the process.
func (e environment) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	for _, name := range flag.Tag.Envs {
		value := e.get(name)
		if value != "" || slices.Contains(credentials, name) {
			return value, nil // "" replaces what kong itself read from the environment of the process
		}
	}
	return nil, nil
}

// readEnvFile returns the variables in the file of --env-file. A file that is missing or malformed is a usage error.
func readEnvFile(path string) (map[string]string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, Usagef("--env-file: %w; lectern up writes .lectern/demo.env when it is ready", err)
	}
	variables, err := ParseEnv(content)
	if err != nil {
		return nil, Usagef("--env-file %s: %w", path, err)
	}
	return variables, nil
}

// ParseEnv reads lines NAME=value, with an optional export before the name. Quotes and backslashes work as in sh, but
// nothing is expanded, and a backslash within double quotes stays. Blank lines and lines that begin with # are ignored.
func ParseEnv(content []byte) (map[string]string, error) {
	variables := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(content))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		if !ok || name == "" || strings.ContainsAny(name, " \t'\"") {
			return nil, fmt.Errorf("line %d: want NAME='value'", n)
		}
		value, err := unquote(value)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		variables[name] = value
	}
	return variables, lines.Err()
}

func unquote(value string) (string, error) {
	var b strings.Builder
	for value != "" {
		switch c := value[0]; c {
		case '\'', '"':
			inner, rest, ok := strings.Cut(value[1:], string(c))
			if !ok {
				return "", fmt.Errorf("a quote (%c) that is not closed", c)
			}
			b.WriteString(inner)
			value = rest
		case '\\':
			if len(value) > 1 {
				b.WriteByte(value[1])
			}
			value = value[min(2, len(value)):]
		default:
			b.WriteByte(c)
			value = value[1:]
		}
	}
	return b.String(), nil
}
