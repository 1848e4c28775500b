package store

import (
	"sync"

	"github.com/lectern-dev/lectern/shared/postgres/lists"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/wire"

	"github.com/lectern-dev/lectern/services/entries/internal/entry"
)

// Every statement of this package names its columns. A statement restricts each table and subquery to one project, so
// that an index by project serves it, even if tables are distributed by project.

// entryColumns has the columns of an entry, and entryHeadColumns the same columns without entry_data. The constants
// below are the indexes of these columns.
const (
	entryHeadColumns = `entry_id, group_id, embeddable_id, contact_id, created_at, updated_at`
	entryColumns     = entryHeadColumns + `, entry_data`
)

const (
	columnEntryID = iota
	columnGroupID
	columnEmbeddableID
	columnContactID
	columnCreatedAt
	columnUpdatedAt
	columnData
)

const getEntry = `
SELECT ` + entryColumns + `
FROM entries
WHERE project_id = $1 AND entry_id = $2`

// entryList returns the statements that read the given columns of the entries of l, and the values of the first
// parameters of the statements.
func entryList(columns string, l entry.List) (lists.Statements, []any) {
	var s statement
	where := s.selected(l.Selection, l.Sort.String())
	list := directed{lists.Keyset{
		Table: "entries", Columns: columns, Key: l.Sort.String() + ", entry_id", Where: where, Parameters: len(s.args),
	}, l.Descending}
	if searches(l) {
		return list.Statements(l.Descending), s.args // each text has a statement of its own
	}
	sql, ok := built.Load(list)
	if !ok {
		sql, _ = built.LoadOrStore(list, list.Statements(l.Descending))
	}
	return sql.(lists.Statements), s.args
}

// built caches the statements of each list that a request has asked for. Building a statement takes longer than
// finding it in the cache. Statements contain no values of filters, so the number of cached statements is limited.
var built sync.Map

// directed is a list with its direction, and the key of the cache built.
type directed struct {
	lists.Keyset

	descending bool
}

// entryQuery returns a lists.Query for the entries of l. columns are the columns to read, and must begin with
// entryHeadColumns.
func entryQuery(pool pgdb.Querier, columns string, l entry.List) *lists.Query {
	sortColumn := columnUpdatedAt
	if l.Sort == entry.ByCreatedAt {
		sortColumn = columnCreatedAt
	}
	sql, args := entryList(columns, l)
	project := wire.AppendText(nil, []byte(l.ProjectID))
	return &lists.Query{
		Pool:  pgdb.Pinned(pool),
		SQL:   sql,
		List:  args,
		Bound: func(p lists.Position) []any { return []any{pgdb.Timestamp(p.Key), p.ID} },
		Key: func(row *pgdb.Raw) (key int64, id []byte, ok bool) {
			return row.Micros(sortColumn), row.Text(columnEntryID), true
		},
		Append: func(dst []byte, row *pgdb.Raw) []byte { return appendEntry(dst, project, row) },
		Position: func(row *pgdb.Raw) lists.Position {
			return lists.Position{Key: row.Micros(0), ID: string(row.Text(1))}
		},
	}
}

// appendEntry appends an Entry of the API in JSON to dst. project is the id of the project as a JSON string.
func appendEntry(dst, project []byte, row *pgdb.Raw) []byte {
	dst = appendEntryHead(dst, project, row)
	dst = append(dst, `,"entry_data":`...)
	dst = wire.AppendText(dst, row.Text(columnData))
	return append(dst, '}')
}

// appendEntryHead appends the fields with which an Entry and an EntryPageViews of the API begin. project is the id of
// the project as a JSON string. The caller ends the JSON object.
func appendEntryHead(dst, project []byte, row *pgdb.Raw) []byte {
	dst = append(dst, `{"entry_id":`...)
	dst = wire.AppendText(dst, row.Text(columnEntryID))
	dst = append(dst, `,"group_id":`...)
	dst = wire.AppendText(dst, row.Text(columnGroupID))
	dst = append(dst, `,"project_id":`...)
	dst = append(dst, project...)
	dst = append(dst, `,"embeddable_id":`...)
	dst = wire.AppendText(dst, row.Text(columnEmbeddableID))
	dst = append(dst, `,"contact_id":`...)
	dst = wire.AppendText(dst, row.Text(columnContactID))
	dst = append(dst, `,"created_at":`...)
	dst = wire.AppendTime(dst, row.Micros(columnCreatedAt))
	dst = append(dst, `,"updated_at":`...)
	return wire.AppendTime(dst, row.Micros(columnUpdatedAt))
}
