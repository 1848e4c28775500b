package pgtest

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/postgres/changed"
	"github.com/lectern-dev/lectern/shared/postgres/insert"
	"github.com/lectern-dev/lectern/shared/postgres/lists"
	"github.com/lectern-dev/lectern/shared/postgres/migrate"
)

// AddList adds the statements of a list to statements, as name.first, name.chunk, name.nth and name.last.
func AddList(statements map[string]string, name string, list lists.Statements) {
	statements[name+".chunk"], statements[name+".nth"], statements[name+".last"] = list.Chunk, list.Nth, list.Last
	if list.First != "" {
		statements[name+".first"] = list.First
	}
}

// AddNumbers adds the statements of the numbers of changes to statements.
func AddNumbers(statements map[string]string, n changed.Numbers) {
	statements["numbers.lock"], statements["numbers.newest"] = n.Lock, n.Newest
	statements["numbers.add"], statements["numbers.position"] = n.Add, n.Position
}

// PackageStatements returns the SQL statements among the string constants of the Go package in a folder, by name. It
// fails t if a function contains a statement, because it would not find it.
func PackageStatements(t testing.TB, folder string) map[string]string {
	t.Helper()
	fset := token.NewFileSet()
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
		for _, d := range f.Decls {
			function, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(function, func(n ast.Node) bool {
				if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
					if sql, err := strconv.Unquote(text.Value); err == nil && isStatement(strings.TrimSpace(sql)) {
						t.Errorf("%s: a statement that is not a constant: %s", fset.Position(text.Pos()), sql)
					}
				}
				return true
			})
		}
	}
	// String constants need none of the imports, so imports are not resolved.
	lenient := &types.Config{IgnoreFuncBodies: true, Error: func(error) {}}
	pkg, _ := lenient.Check("statements", fset, files, nil)
	statements := statementsOf(pkg)
	if len(statements) == 0 {
		t.Fatalf("%s has no statements", folder)
	}
	return statements
}

func statementsOf(pkg *types.Package) map[string]string {
	statements := map[string]string{}
	for _, name := range pkg.Scope().Names() {
		c, ok := pkg.Scope().Lookup(name).(*types.Const)
		if !ok || c.Val().Kind() != constant.String {
			continue
		}
		if sql := strings.TrimSpace(constant.StringVal(c.Val())); isStatement(sql) {
			statements[name] = sql
		}
	}
	return statements
}

// isStatement reports whether text is a whole SELECT, INSERT, UPDATE or DELETE, and not for example a grant on a table.
func isStatement(text string) bool {
	verb, rest, ok := strings.Cut(text, " ")
	return ok && !strings.HasPrefix(rest, "ON ") && strings.Contains(" SELECT INSERT UPDATE DELETE ", " "+verb+" ") && complete(rest)
}

// complete reports whether sql is a whole statement, and not only the start of one.
func complete(sql string) bool {
	if strings.HasPrefix(sql, "INTO ") && !strings.Contains(sql, "SELECT ") && !strings.Contains(sql, "VALUES ") {
		return false
	}
	return strings.Count(sql, "(") == strings.Count(sql, ")") && !strings.HasSuffix(strings.TrimSpace(sql), "AND")
}

// CheckStatements checks the plans of a store's statements. On the coordinator of a Citus cluster, it calls [CheckOneTask],
// and otherwise [CheckOneProject]. inserts are statements of one row. On Citus, each is
// also checked with three rows, as insert.Put repeats the row. t fails if there are fewer statements than least.
func CheckStatements(t *testing.T, s migrate.Schema, statements map[string]string, least int, inserts ...string) {
	t.Helper()
	if len(statements) < least {
		t.Errorf("only %d statements were found", len(statements))
	}
	if !Server(t).Citus() {
		CheckOneProject(t, Database(t, s), statements)
		return
	}
	for i, sql := range inserts {
		statements[fmt.Sprintf("insert %d of three", i)] = insert.Rows(sql, 3)
	}
	CheckOneTask(t, Database(t, s), statements, nil)
}

var star = regexp.MustCompile(`(?i)select\s+(\w+\.)?\*|,\s*\w+\.\*`)

// CheckOneProject lets Postgres plan each statement for the tables of db. It fails t unless every table is reached by
// an index whose condition begins with the project being $1, and no statement uses *. Inserted rows must be of
// project $1.
func CheckOneProject(t *testing.T, db DB, statements map[string]string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	// Plan for any parameters, and without table scans, which Postgres prefers for empty tables.
	for _, set := range []string{"SET plan_cache_mode = force_generic_plan", "SET enable_seqscan = off", "SET enable_bitmapscan = off"} {
		if _, err := conn.Exec(ctx, set); err != nil {
			t.Fatal(err)
		}
	}
	for name, sql := range statements {
		t.Run(name, func(t *testing.T) {
			if star.MatchString(sql) {
				t.Errorf("selects *: %s", sql)
			}
			prepared, err := conn.Prepare(ctx, name, sql)
			if err != nil {
				t.Fatalf("%v\n%s", err, sql)
			}
			nulls := strings.TrimSuffix(strings.Repeat("NULL, ", len(prepared.ParamOIDs)), ", ")
			var plan []struct{ Plan node }
			var text []byte
			if err := conn.QueryRow(ctx, fmt.Sprintf(`EXPLAIN (FORMAT JSON, VERBOSE) EXECUTE %q(%s)`, name, nulls)).Scan(&text); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &plan); err != nil {
				t.Fatal(err)
			}
			plan[0].Plan.check(t, sql)
		})
	}
}

// node is a node of a plan as EXPLAIN reports it.
type node struct {
	Type      string   `json:"Node Type"`
	Operation string   `json:"Operation"`
	Relation  string   `json:"Relation Name"`
	Index     string   `json:"Index Name"`
	IndexCond string   `json:"Index Cond"`
	Output    []string `json:"Output"`
	Plans     []node   `json:"Plans"`
}

// ofProject matches an index condition on the project. In a join the parameter may have a cast.
var ofProject = regexp.MustCompile(`\b(\w+\.)?project_id = (\$1\b|\(\$1\)::text)`)

func (n node) check(t *testing.T, sql string) {
	t.Helper()
	switch {
	case n.Type == "ModifyTable":
		if n.Operation == "Insert" && len(n.Plans) == 1 && !insertsProject(n.Plans[0]) {
			t.Errorf("inserts rows into %s that are not of project $1: %q\n%s", n.Relation, n.Plans[0].Output, sql)
		}
	case n.Relation != "" && !ofProject.MatchString(n.IndexCond):
		t.Errorf("%s of %s is not by project_id = $1: %q\n%s", n.Type, n.Relation, n.IndexCond, sql)
	}
	for _, p := range n.Plans {
		p.check(t, sql)
	}
}

// insertsProject reports whether the first column is $1, or comes from a table that is read by $1. The first column of
// every table is project_id.
func insertsProject(n node) bool {
	first := ""
	if len(n.Output) > 0 {
		first = n.Output[0]
	}
	if strings.Contains(first, "$1") || strings.HasSuffix(first, "project_id") && ofProject.MatchString(n.IndexCond) {
		return true
	}
	// A sort, for example, returns the column of its child by name.
	return len(n.Plans) == 1 && insertsProject(n.Plans[0])
}
