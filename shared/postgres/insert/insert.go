// Package insert stores batches of records in Postgres. A service supplies its INSERT statements. The package sets the
// parameters of the statements, and counts the rows that were stored. The package does not know the source of the
// records.
package insert

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

	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
)

// Put stores records of one project. Put holds the same INSERT in two forms. Each form has RETURNING, and so returns a
// row for each record that it stored. The row count of the statement itself would be wrong on distributed tables.
//
// Plain Postgres gets Arrays, which it parses and plans once for any number of records. Citus gets Values, which it can
// send whole to the node of the project. Citus would run Arrays in a two-phase commit. On Citus, up to ten records take
// two to nine times as long with Arrays as with Values. A thousand records take 1.5 times as long with Values as with
// Arrays.
type Put struct {
	// Arrays has the project as $1, and then an array for each column.
	Arrays string

	// Values is the statement for one record: VALUES ($1, $2, …), with the project as $1 and then the columns.
	Values string

	// Key is the number of leading columns, texts or int8, that order the rows of Values. In the order of the key,
	// two writers of the same records wait for each other but do not deadlock. Arrays has its own ORDER BY. 0 keeps
	// the given order.
	Key int
}

// maxRows and maxParameters bound the rows and the parameters of one statement of Values. The protocol of Postgres
// allows no more than maxParameters.
const (
	maxRows       = 1000
	maxParameters = 65535
)

// Stored stores records in one transaction and returns how many rows the statements returned. Each of columns is a
// slice with one value for each record.
func (p Put) Stored(ctx context.Context, pool *pgdb.Pool, projectID string, columns ...any) (n int, err error) {
	statements := p.statements(pool, projectID, columns)
	if len(statements) == 1 {
		err = pool.Query(ctx, func(rows pgx.Rows) error {
			n = count(rows)
			return nil
		}, statements[0].sql, statements[0].args...)
		return n, err
	}
	err = pool.InTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		n, err = run(ctx, tx, statements)
		return err
	})
	return n, err
}

// StoredIn does the same as [Put.Stored] in the transaction tx, which runs on a connection of pool.
func (p Put) StoredIn(ctx context.Context, pool *pgdb.Pool, tx pgx.Tx, projectID string, columns ...any) (n int, err error) {
	return run(ctx, tx, p.statements(pool, projectID, columns))
}

// ReplacedIn does the same as [Put.StoredIn] with statements that return, for each row, whether the row has replaced
// another row. replaced is the number of rows that replaced another row.
func (p Put) ReplacedIn(ctx context.Context, pool *pgdb.Pool, tx pgx.Tx, projectID string, columns ...any) (n, replaced int, err error) {
	for _, s := range p.statements(pool, projectID, columns) {
		rows, err := tx.Query(ctx, s.sql, s.args...)
		if err != nil {
			return 0, 0, err
		}
		var again bool
		_, err = pgx.ForEachRow(rows, []any{&again}, func() error {
			n++
			if again {
				replaced++
			}
			return nil
		})
		if err != nil {
			return 0, 0, err
		}
	}
	return n, replaced, nil
}

func run(ctx context.Context, tx pgx.Tx, statements []statement) (n int, err error) {
	for _, s := range statements {
		rows, err := tx.Query(ctx, s.sql, s.args...)
		if err != nil {
			return 0, err
		}
		n += count(rows)
		rows.Close()
		if err := rows.Err(); err != nil {
			return 0, err
		}
	}
	return n, nil
}

func count(rows pgx.Rows) (n int) {
	for rows.Next() {
		n++
	}
	return n
}

// statement is a SQL text with the arguments for its parameters.
type statement struct {
	sql  string
	args []any
}

// statements returns the statements that store all records: Arrays once, or Values for groups of rows if the database
// of pool is distributed.
func (p Put) statements(pool *pgdb.Pool, projectID string, columns []any) []statement {
	if !pool.Distributed() {
		return []statement{{p.Arrays, append([]any{projectID}, columns...)}}
	}
	return p.rows(projectID, columns)
}

// rows returns statements of the form Values that store all records in the order of the key, up to maxRows records
// each.
func (p Put) rows(projectID string, columns []any) []statement {
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
	for rows := range slices.Chunk(order, min(maxRows, (maxParameters-1)/len(columns))) {
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

// valuesRow matches the row of values in a statement for one record. The row must contain no parentheses.
var valuesRow = regexp.MustCompile(`VALUES (\([^()]*\))`)

var parameter = regexp.MustCompile(`\$(\d+)`)

// Rows turns a statement for a single row, VALUES ($1, $2, …), into a statement for n rows. The rows share the first
// parameter. Rows panics if sql is not such a statement, which is a mistake in the program.
func Rows(sql string, n int) string {
	at := valuesRow.FindStringSubmatchIndex(sql)
	if at == nil {
		panic("insert: no row of values in " + sql)
	}
	row := sql[at[2]:at[3]]
	// The text between the parameters, and the parameters' numbers.
	between := parameter.Split(row, -1)
	var numbers []int
	for _, m := range parameter.FindAllStringSubmatch(row, -1) {
		number, err := strconv.Atoi(m[1])
		if err != nil {
			panic(fmt.Sprintf("insert: parameter %s", m[0]))
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
