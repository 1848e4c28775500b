package store

import (
	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/postgres/changed"
	"github.com/lectern-dev/lectern/shared/postgres/lists"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/wire"
)

// versionColumns are the columns of a version in a list. columnNumber and columnSavedAt are the indexes of the columns.
const versionColumns = `version_number, saved_at`

const (
	columnNumber = iota
	columnSavedAt
)

// versionSince selects the number of the change that made an embeddable's earlier versions readable.
const versionSince = `SELECT since FROM embeddables WHERE project_id = $1 AND embeddable_id = $2`

const versionParent = `SELECT embeddable_id FROM embeddables WHERE project_id = $1 AND embeddable_id = $2`

// The statements that list an embeddable's versions by number, in both directions. versionsChanged lists only those that
// became readable after a number.
var (
	versions = lists.Keyset{
		Table: "versions", Columns: versionColumns, Key: "version_number",
		Where: "project_id = $1 AND embeddable_id = $2", Parameters: 2, Parent: versionParent,
	}.Orders()

	versionsChanged = lists.Keyset{
		Table: "versions", Columns: versionColumns, Key: "version_number",
		Where: "project_id = $1 AND embeddable_id = $2 AND (changed > $3 OR $3 < (" + versionSince + "))", Parameters: 3, Parent: versionParent,
	}.Orders()
)

// versionQuery returns the query that lists an embeddable's versions in a view. Without such an embeddable, the query
// fails with an EmbeddableDoesNotExist.
func versionQuery(v changed.View, projectID, embeddableID string, descending bool) *lists.Query {
	sql, args := versions, []any{projectID, embeddableID}
	if v.After != changed.All {
		sql, args = versionsChanged, append(args, v.After)
	}
	id := wire.AppendText(nil, []byte(embeddableID))
	return &lists.Query{
		Pool:  v,
		SQL:   sql.In(descending),
		List:  args,
		Bound: func(p lists.Position) []any { return []any{p.Key} },
		Key: func(row *pgdb.Raw) (key int64, _ []byte, ok bool) {
			return row.Int(columnNumber), nil, !row.Null(columnNumber)
		},
		Append:   func(dst []byte, row *pgdb.Raw) []byte { return appendVersion(dst, id, row) },
		Position: func(row *pgdb.Raw) lists.Position { return lists.Position{Key: row.Int(0)} },
		Missing:  apierr.NoEmbeddable(embeddableID),
	}
}

// appendVersion appends an EmbeddableVersion of the API to dst as JSON. id is the embeddable's id as a JSON string.
func appendVersion(dst, id []byte, row *pgdb.Raw) []byte {
	dst = append(dst, `{"embeddable_id":`...)
	dst = append(dst, id...)
	dst = append(dst, `,"version_number":`...)
	dst = row.AppendInt(dst, columnNumber)
	dst = append(dst, `,"saved_at":`...)
	dst = wire.AppendTime(dst, row.Micros(columnSavedAt))
	return append(dst, '}')
}
