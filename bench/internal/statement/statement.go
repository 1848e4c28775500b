// Package statement reads the SQL statements that a service runs, so that the references of the benchmarks run the
// same statements. The statements are in the golden file of the service's store, which a test of the store compares
// with the code.
package statement

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// Set maps the name of a statement, such as getEntry, to its SQL.
type Set map[string]string

// Read returns the statements in a golden file. Each statement begins with a line "-- name: " and the name of the
// statement.
func Read(file string) (Set, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	set := Set{}
	for _, block := range strings.Split(string(text), "\n-- name: ")[1:] {
		name, sql, _ := strings.Cut(block, "\n")
		set[name] = strings.TrimSpace(sql)
	}
	return set, nil
}

// Get returns the SQL of the named statement. The error says that the service no longer has such a statement.
func (s Set) Get(name string) (string, error) {
	sql, ok := s[name]
	if !ok {
		return "", fmt.Errorf("the service has no statement %s (any more)", name)
	}
	return sql, nil
}

var parameter = regexp.MustCompile(`\$(\d+)`)

// ForPgbench replaces the parameters of sql by pgbench's variables: $1 by the first of names, $2 by the second, and so
// on. pgbench's mode "prepared" turns the variables into parameters again. A parameter without a name is an error.
func ForPgbench(sql string, names ...string) (string, error) {
	var fault error
	sql = parameter.ReplaceAllStringFunc(sql, func(p string) string {
		n, err := strconv.Atoi(p[1:])
		if err != nil || n < 1 || n > len(names) {
			fault = fmt.Errorf("the statement has a parameter %s, and %d are known", p, len(names))
			return p
		}
		return ":" + names[n-1]
	})
	return sql, fault
}
