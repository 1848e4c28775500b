package store

import (
	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/postgres/lists"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/wire"
)

// changeColumns has the columns of a status change. The constants below are the indexes of these columns.
const changeColumns = `change, status, changed_at, recorded_at`

const (
	columnChange = iota
	columnChangeStatus
	columnChangedAt
	columnRecordedAt
)

// statusChanges has the statements that list the changes of an experiment's status, the oldest first.
var statusChanges = lists.Keyset{
	Table: "status_changes", Columns: changeColumns, Key: "change",
	Where: "project_id = $1 AND experiment_id = $2", Parameters: 2,
}.Statements(false)

// changeQuery returns a lists.Query for the changes of an experiment's status. Each stored experiment has at least
// one change. So if the first chunk has no row, the query fails with an ExperimentNotFound.
func changeQuery(pool pgdb.Querier, projectID, experimentID string) *lists.Query {
	sql := statusChanges
	sql.First = sql.Chunk
	return &lists.Query{
		Pool:     pgdb.Pinned(pool),
		SQL:      sql,
		List:     []any{projectID, experimentID},
		Bound:    func(p lists.Position) []any { return []any{p.Key} },
		Key:      func(row *pgdb.Raw) (key int64, id []byte, ok bool) { return row.Int(columnChange), nil, true },
		Append:   appendChange,
		Position: func(row *pgdb.Raw) lists.Position { return lists.Position{Key: row.Int(0)} },
		Missing:  apierr.NoExperiment(experimentID),
	}
}

// appendChange appends a change of status in JSON to dst: the status, when the source changed it, and when the
// service recorded the change.
func appendChange(dst []byte, row *pgdb.Raw) []byte {
	dst = append(dst, `{"status":`...)
	dst = wire.AppendNullableText(dst, row.Text(columnChangeStatus))
	dst = append(dst, `,"changed_at":`...)
	dst = wire.AppendTime(dst, row.Micros(columnChangedAt))
	dst = append(dst, `,"recorded_at":`...)
	dst = wire.AppendTime(dst, row.Micros(columnRecordedAt))
	return append(dst, '}')
}
