package pgrecord

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/pgdb"
)

// Put stores records of one project. It says so twice: over arrays, which one machine plans and parses
// once for any number of records, and row by row, which is all that a statement may be that is handed
// on whole to the machine that has the project. There the first would be done in two phases of commit,
// and takes two to nine times as long for up to ten records; here the second takes half as long again
// for a thousand.
type Put struct {
	// Arrays has the project as $1, and then an array for each column.
	Arrays string

	// Values is the same for one record: VALUES ($1, $2, …), $1 the project and then the columns.
	Values string

	// Key is how many of the first columns, texts and int8, are the key in whose order records are
	// written, so that two who write the same wait for each other and not in a circle. 0 keeps the
	// order that they come in.
	Key int
}

// mostRows and mostParameters bound one statement of rows; the latter is the protocol's.
const (
	mostRows       = 1000
	mostParameters = 65535
)

// Stored stores records by their columns, each a slice, in one transaction, and counts the rows that the
// statement returns.
func (p Put) Stored(ctx context.Context, pool *pgdb.Pool, projectID string, columns ...any) (n int, err error) {
	if !pool.Distributed() {
		return Stored(ctx, pool, p.Arrays, append([]any{projectID}, columns...)...)
	}
	statements := p.statements(projectID, columns)
	if len(statements) == 1 {
		return Stored(ctx, pool, statements[0].sql, statements[0].args...)
	}
	err = pool.InProjectTx(ctx, projectID, func(ctx context.Context, tx pgx.Tx) error {
		n, err = storedAll(ctx, tx, statements)
		return err
	})
	return n, err
}

// StoredIn does as [Put.Stored] in a transaction of pool's.
func (p Put) StoredIn(ctx context.Context, pool *pgdb.Pool, tx pgx.Tx, projectID string, columns ...any) (n int, err error) {
	if !pool.Distributed() {
		return storedIn(ctx, tx, p.Arrays, append([]any{projectID}, columns...)...)
	}
	return storedAll(ctx, tx, p.statements(projectID, columns))
}

func storedAll(ctx context.Context, tx pgx.Tx, statements []statement) (n int, err error) {
	for _, s := range statements {
		stored, err := storedIn(ctx, tx, s.sql, s.args...)
		if err != nil {
			return 0, err
		}
		n += stored
	}
	return n, nil
}

// statement is SQL with its arguments.
type statement struct {
	sql  string
	args []any
}

// statements gives those that write all records, row by row.
func (p Put) statements(projectID string, columns []any) []statement {
	values := make([]reflect.Value, len(columns))
	for i, c := range columns {
		values[i] = reflect.ValueOf(c)
	}
	order := make([]int, values[0].Len())
	for i := range order {
		order[i] = i
	}
	if p.Key > 0 {
		slices.SortStableFunc(order, func(a, b int) int {
			for _, column := range values[:p.Key] {
				if by := compare(column.Index(a), column.Index(b)); by != 0 {
					return by
				}
			}
			return 0
		})
	}
	var all []statement
	for rows := range slices.Chunk(order, min(mostRows, (mostParameters-1)/len(columns))) {
		// Not prepared: there would be a statement for each number of rows.
		args := make([]any, 0, 2+len(rows)*len(columns))
		args = append(args, pgx.QueryExecModeExec, projectID)
		for _, row := range rows {
			for _, column := range values {
				args = append(args, column.Index(row).Interface())
			}
		}
		all = append(all, statement{Rows(p.Values, len(rows)), args})
	}
	return all
}

func compare(a, b reflect.Value) int {
	if a.Kind() == reflect.String {
		return strings.Compare(a.String(), b.String())
	}
	return cmp.Compare(a.Int(), b.Int())
}

// valuesRow finds the row of a statement for one record, which holds no parentheses.
var valuesRow = regexp.MustCompile(`VALUES (\([^()]*\))`)

var parameter = regexp.MustCompile(`\$(\d+)`)

// Rows makes a statement for n rows of one for a single row: VALUES ($1, $2, …), of whose parameters the
// first is that of every row. It panics when sql is not one: only a mistake in the program can bring that.
func Rows(sql string, n int) string {
	at := valuesRow.FindStringSubmatchIndex(sql)
	if at == nil {
		panic("pgrecord: no row of values in " + sql)
	}
	row := sql[at[2]:at[3]]
	// What stands between the parameters, and which they are.
	between := parameter.Split(row, -1)
	var numbers []int
	for _, m := range parameter.FindAllStringSubmatch(row, -1) {
		number, err := strconv.Atoi(m[1])
		if err != nil {
			panic(fmt.Sprintf("pgrecord: parameter %s", m[0]))
		}
		numbers = append(numbers, number)
	}
	own := slices.Max(numbers) - 1
	b := make([]byte, 0, len(sql)+n*(len(row)+4*own))
	b = append(b, sql[:at[2]]...)
	for i := range n {
		if i > 0 {
			b = append(b, ',', ' ')
		}
		for k, number := range numbers {
			b = append(b, between[k]...)
			b = append(b, '$')
			if number > 1 {
				number += i * own
			}
			b = strconv.AppendInt(b, int64(number), 10)
		}
		b = append(b, between[len(numbers)]...)
	}
	return string(append(b, sql[at[3]:]...))
}
