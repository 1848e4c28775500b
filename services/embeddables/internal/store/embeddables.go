package store

import (
	"github.com/lectern-dev/lectern/shared/postgres/changed"
	"github.com/lectern-dev/lectern/shared/postgres/lists"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/wire"
)

// Every statement of this package names its columns. It restricts each table and subquery to one project, so that one
// index of the project serves it, even if tables are distributed by project.

// embeddableColumns are the columns of an embeddable in a list. columnID and the constants after it are the indexes of
// the columns.
const embeddableColumns = `embeddable_id, title, group_id`

const (
	columnID = iota
	columnTitle
	columnGroupID
)

// The statements that list a project's embeddables in the order of their ids. embeddablesChanged lists only those that
// changed after a number.
var (
	embeddables = lists.Keyset{
		Table: "embeddables", Columns: embeddableColumns, Key: "embeddable_id",
		Where: "project_id = $1", Parameters: 1,
	}.Statements(false)

	embeddablesChanged = lists.Keyset{
		Table: "embeddables", Columns: embeddableColumns, Key: "embeddable_id",
		Where: "project_id = $1 AND changed > $2", Parameters: 2,
	}.Statements(false)
)

// embeddableQuery returns the query that lists a project's embeddables in a view.
func embeddableQuery(v changed.View, projectID string) *lists.Query {
	sql, args := embeddables, []any{projectID}
	if v.After != changed.All {
		sql, args = embeddablesChanged, append(args, v.After)
	}
	project := wire.AppendText(nil, []byte(projectID))
	return &lists.Query{
		Pool:  v,
		SQL:   sql,
		List:  args,
		Bound: func(p lists.Position) []any { return []any{p.ID} },
		Key: func(row *pgdb.Raw) (key int64, id []byte, ok bool) {
			return 0, row.Text(columnID), true
		},
		Append:   func(dst []byte, row *pgdb.Raw) []byte { return appendEmbeddable(dst, project, row) },
		Position: func(row *pgdb.Raw) lists.Position { return lists.Position{ID: string(row.Text(0))} },
	}
}

// appendEmbeddable appends an Embeddable of the API to dst as JSON. project is the project's id as a JSON string.
func appendEmbeddable(dst, project []byte, row *pgdb.Raw) []byte {
	dst = append(dst, `{"embeddable_id":`...)
	dst = wire.AppendText(dst, row.Text(columnID))
	return append(appendMembers(dst, project, row.Text(columnTitle), row.Text(columnGroupID)), '}')
}

// appendMembers appends the JSON members title, group_id and project_id, which an embeddable has in a list and as a
// document.
func appendMembers(dst, project, title, group []byte) []byte {
	dst = append(dst, `,"title":`...)
	dst = wire.AppendText(dst, title)
	dst = append(dst, `,"group_id":`...)
	dst = wire.AppendText(dst, group)
	dst = append(dst, `,"project_id":`...)
	return append(dst, project...)
}
