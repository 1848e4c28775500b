// Package statement reads the SQL of a service from its source, so that what the references run is what
// the service runs, and can not drift from it.
package statement

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"regexp"
	"strconv"
	"strings"
)

// Set holds statements by the name of their constant.
type Set map[string]string

// Read returns the string constants of a Go file that imports nothing.
func Read(file string) (Set, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	pkg, err := new(types.Config).Check("statements", fset, []*ast.File{f}, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	set := Set{}
	for _, name := range pkg.Scope().Names() {
		if c, ok := pkg.Scope().Lookup(name).(*types.Const); ok && c.Val().Kind() == constant.String {
			set[name] = strings.TrimSpace(constant.StringVal(c.Val()))
		}
	}
	return set, nil
}

// Get returns the named statement; one that is not there is a fault of the benchmarks, which know
// another version of the service.
func (s Set) Get(name string) (string, error) {
	sql, ok := s[name]
	if !ok {
		return "", fmt.Errorf("the service has no statement %s (any more)", name)
	}
	return sql, nil
}

var parameter = regexp.MustCompile(`\$(\d+)`)

// ForPgbench gives sql with pgbench's variables in the place of its parameters: the first of names
// stands for $1. In pgbench's mode "prepared" they become parameters again.
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
