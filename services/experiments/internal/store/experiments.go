package store

import (
	"github.com/lectern-dev/lectern/shared/postgres/changed"
	"github.com/lectern-dev/lectern/shared/postgres/lists"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/wire"

	"github.com/lectern-dev/lectern/services/experiments/internal/experiment"
)

// Every statement of this package names its columns. A statement restricts each table and subquery to one project, so
// that an index by project serves it, even if tables are distributed by project.

// experimentColumns has the columns of an experiment. The constants below are the indexes of these columns.
const experimentColumns = `experiment_id, flow_id, name, hypothesis, impact_metrics, no_impact_metrics, created_at, updated_at,
       observations, outcome, attachments, variants, flow_ids, paused_showing_variant, winner_variant, status`

const (
	columnID = iota
	columnFlowID
	columnName
	columnHypothesis
	columnImpactMetrics
	columnNoImpactMetrics
	columnCreatedAt
	columnUpdatedAt

	columnObservations
	columnOutcome
	columnAttachments
	columnVariants
	columnFlowIDs
	columnPausedShowingVariant
	columnWinnerVariant
	columnStatus
)

const getExperiment = `
SELECT ` + experimentColumns + `
FROM experiments
WHERE project_id = $1 AND experiment_id = $2`

// The statements that list a project's experiments, in descending order of creation and then of id.
// experimentsOfStatus lists only the experiments with one status. experimentsChanged lists those that changed after a
// number, with any status for an empty text.
var (
	experiments = lists.Keyset{
		Table: "experiments", Columns: experimentColumns, Key: "created_at, experiment_id",
		Where: "project_id = $1", Parameters: 1,
	}.Statements(true)

	experimentsOfStatus = lists.Keyset{
		Table: "experiments", Columns: experimentColumns, Key: "created_at, experiment_id",
		Where: "project_id = $1 AND status = $2", Parameters: 2,
	}.Statements(true)

	experimentsChanged = lists.Keyset{
		Table: "experiments", Columns: experimentColumns, Key: "created_at, experiment_id",
		Where: "project_id = $1 AND changed > $2 AND ($3::text = '' OR status = $3)", Parameters: 3,
	}.Statements(true)
)

// experimentQuery returns a lists.Query for the experiments of l in a view.
func experimentQuery(v changed.View, l experiment.List) *lists.Query {
	sql, args := experiments, []any{l.ProjectID}
	switch {
	case v.After != changed.All:
		sql, args = experimentsChanged, append(args, v.After, l.Status)
	case l.Status != "":
		sql, args = experimentsOfStatus, append(args, l.Status)
	}
	return &lists.Query{
		Pool:  v,
		SQL:   sql,
		List:  args,
		Bound: func(p lists.Position) []any { return []any{pgdb.Timestamp(p.Key), p.ID} },
		Key: func(row *pgdb.Raw) (key int64, id []byte, ok bool) {
			return row.Micros(columnCreatedAt), row.Text(columnID), true
		},
		Append: appendExperiment,
		Position: func(row *pgdb.Raw) lists.Position {
			return lists.Position{Key: row.Micros(0), ID: string(row.Text(1))}
		},
	}
}

// appendExperiment appends an Experiment of the API in JSON to dst.
func appendExperiment(dst []byte, row *pgdb.Raw) []byte {
	text := func(name string, column int) {
		dst = append(dst, name...)
		dst = wire.AppendNullableText(dst, row.Text(column))
	}
	texts := func(name string, column int) { // stored as a JSON array
		dst = append(dst, name...)
		if array := row.Text(column); array != nil {
			dst = append(dst, array...)
		} else {
			dst = append(dst, "null"...)
		}
	}
	text(`{"id":`, columnID)
	text(`,"experimentId":`, columnID)
	text(`,"flowId":`, columnFlowID)
	text(`,"name":`, columnName)
	text(`,"hypothesis":`, columnHypothesis)
	texts(`,"impact_metrics":`, columnImpactMetrics)
	texts(`,"no_impact_metrics":`, columnNoImpactMetrics)
	dst = append(dst, `,"created_at":`...)
	dst = wire.AppendTime(dst, row.Micros(columnCreatedAt))
	dst = append(dst, `,"updated_at":`...)
	dst = wire.AppendTime(dst, row.Micros(columnUpdatedAt))
	text(`,"observations":`, columnObservations)
	text(`,"outcome":`, columnOutcome)
	text(`,"attachments":`, columnAttachments)
	text(`,"variants":`, columnVariants)
	texts(`,"flow_ids":`, columnFlowIDs)
	text(`,"paused_showing_variant":`, columnPausedShowingVariant)
	text(`,"winner_variant":`, columnWinnerVariant)
	text(`,"status":`, columnStatus)
	return append(dst, '}')
}
