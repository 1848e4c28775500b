package store

import (
	"github.com/lectern-dev/lectern/shared/pagelist"
	"github.com/lectern-dev/lectern/shared/pgdb"
	"github.com/lectern-dev/lectern/shared/wire"

	"github.com/lectern-dev/lectern/services/entries/internal/entry"
)

// Every statement of this package names its columns. It restricts each table and subquery to one project, so that one
// index of the project serves it, even if tables are distributed by project.

// The columns of an entry's row. The constants below are their indexes.
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

// The lists of entries, for each set of filters by id. If the list is ordered by updated_at, a filter on updated_at
// is a part of the range. One on created_at passes over rows.
var (
	entriesByUpdatedAt = eachIDFilter(func(ids idFilter) pagelist.Orders {
		return pagelist.Keyset{
			Table: "entries", Columns: entryColumns, Key: "updated_at, entry_id",
			Where: "project_id = $1" + ids.where() + " AND {range}",
		}.Orders()
	})

	createdByUpdatedAt = eachIDFilter(func(ids idFilter) pagelist.Orders {
		return pagelist.Keyset{
			Table: "entries", Columns: entryColumns, Key: "updated_at, entry_id",
			Where: "project_id = $1" + ids.where() + " AND {range} AND created_at > {1} AND created_at < {2}",
		}.Orders()
	})

	entriesByCreatedAt = eachIDFilter(func(ids idFilter) pagelist.Orders {
		return pagelist.Keyset{
			Table: "entries", Columns: entryColumns, Key: "created_at, entry_id",
			Where: "project_id = $1" + ids.where() + " AND {range} AND updated_at > {1} AND updated_at < {2}",
		}.Orders()
	})
)

// entryQuery reads the entries of l.
func entryQuery(pool pgdb.Querier, l entry.List) *pagelist.Query {
	ids, values := idFilterOf(l)
	sql, sortColumn, filter := entriesByUpdatedAt[ids], columnUpdatedAt, []any(nil)
	switch {
	case l.Sort == entry.ByCreatedAt:
		sql, sortColumn = entriesByCreatedAt[ids], columnCreatedAt
		filter = []any{pgdb.Timestamp(l.UpdatedAfter), pgdb.Timestamp(l.UpdatedBefore)}
	case l.IsCreatedBounded():
		sql, filter = createdByUpdatedAt[ids], []any{pgdb.Timestamp(l.CreatedAfter), pgdb.Timestamp(l.CreatedBefore)}
	}
	project := wire.AppendText(nil, []byte(l.ProjectID))
	return &pagelist.Query{
		Pool:   pgdb.Pinned(pool),
		SQL:    sql.In(l.Descending),
		List:   append([]any{l.ProjectID}, values...),
		Bound:  func(p pagelist.Position) []any { return []any{pgdb.Timestamp(p.Key), p.ID} },
		Filter: filter,
		Key: func(row *pgdb.Raw) (key int64, id []byte, ok bool) {
			return row.Micros(sortColumn), row.Text(columnEntryID), true
		},
		Append: func(dst []byte, row *pgdb.Raw) []byte { return appendEntry(dst, project, row) },
		Position: func(row *pgdb.Raw) pagelist.Position {
			return pagelist.Position{Key: row.Micros(0), ID: string(row.Text(1))}
		},
	}
}

// appendEntry appends an Entry of the API. project is the id of the project as a JSON string.
func appendEntry(dst, project []byte, row *pgdb.Raw) []byte {
	dst = appendEntryHead(dst, project, row)
	dst = append(dst, `,"entry_data":`...)
	dst = wire.AppendText(dst, row.Text(columnData))
	return append(dst, '}')
}

// appendEntryHead appends the beginning of an Entry and of an EntryPageViews of the API.
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
