package store

import (
	"github.com/lectern-dev/lectern/shared/apierr"
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

// versions holds the statements that list an embeddable's versions by number, in both directions.
var versions = lists.Keyset{
	Table: "versions", Columns: versionColumns, Key: "version_number",
	Where: "project_id = $1 AND embeddable_id = $2", Parameters: 2,
	Parent: "SELECT embeddable_id FROM embeddables WHERE project_id = $1 AND embeddable_id = $2",
}.Orders()

// versionQuery returns the query that lists an embeddable's versions. Without such an embeddable, the query fails with
// an EmbeddableDoesNotExist.
func versionQuery(pool pgdb.Querier, projectID, embeddableID string, descending bool) *lists.Query {
	id := wire.AppendText(nil, []byte(embeddableID))
	return &lists.Query{
		Pool:  pgdb.Pinned(pool),
		SQL:   versions.In(descending),
		List:  []any{projectID, embeddableID},
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
