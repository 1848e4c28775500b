package experiment

import (
	"github.com/lectern-dev/lectern/shared/wire"
)

// Row is a record as it came from the database: borrowed bytes, valid until the next row.
type Row interface {
	Text(column int) []byte  // nil for null
	Micros(column int) int64 // of a timestamptz, Unix microseconds
}

// Columns of an experiment's row, in the order in which the store selects them.
const (
	ColumnID = iota
	ColumnFlowID
	ColumnName
	ColumnHypothesis
	ColumnImpactMetrics
	ColumnNoImpactMetrics
	ColumnCreatedAt
	ColumnUpdatedAt
	ColumnObservations
	ColumnOutcome
	ColumnAttachments
	ColumnVariants
	ColumnFlowIDs
	ColumnPausedShowingVariant
	ColumnWinnerVariant
	ColumnStatus
)

// Columns of the row of a change of status.
const (
	ColumnChange = iota
	ColumnChangeStatus
	ColumnChangedAt
	ColumnRecordedAt
)

// Append appends the row as an Experiment of the API.
func Append(dst []byte, row Row) []byte {
	text := func(name string, column int) {
		dst = append(dst, name...)
		dst = wire.AppendNullableText(dst, row.Text(column))
	}
	texts := func(name string, column int) {
		dst = append(dst, name...)
		if array := row.Text(column); array != nil {
			dst = append(dst, array...)
		} else {
			dst = append(dst, "null"...)
		}
	}
	text(`{"id":`, ColumnID)
	text(`,"experimentId":`, ColumnID)
	text(`,"flowId":`, ColumnFlowID)
	text(`,"name":`, ColumnName)
	text(`,"hypothesis":`, ColumnHypothesis)
	texts(`,"impact_metrics":`, ColumnImpactMetrics)
	texts(`,"no_impact_metrics":`, ColumnNoImpactMetrics)
	dst = append(dst, `,"created_at":`...)
	dst = wire.AppendTime(dst, row.Micros(ColumnCreatedAt))
	dst = append(dst, `,"updated_at":`...)
	dst = wire.AppendTime(dst, row.Micros(ColumnUpdatedAt))
	text(`,"observations":`, ColumnObservations)
	text(`,"outcome":`, ColumnOutcome)
	text(`,"attachments":`, ColumnAttachments)
	text(`,"variants":`, ColumnVariants)
	texts(`,"flow_ids":`, ColumnFlowIDs)
	text(`,"paused_showing_variant":`, ColumnPausedShowingVariant)
	text(`,"winner_variant":`, ColumnWinnerVariant)
	text(`,"status":`, ColumnStatus)
	return append(dst, '}')
}

// AppendChange appends the row as a change of status: the status, when the source changed to it, and
// when that was recorded here.
func AppendChange(dst []byte, row Row) []byte {
	dst = append(dst, `{"status":`...)
	dst = wire.AppendNullableText(dst, row.Text(ColumnChangeStatus))
	dst = append(dst, `,"changed_at":`...)
	dst = wire.AppendTime(dst, row.Micros(ColumnChangedAt))
	dst = append(dst, `,"recorded_at":`...)
	dst = wire.AppendTime(dst, row.Micros(ColumnRecordedAt))
	return append(dst, '}')
}

// Array gives texts as the JSON array that is stored, nil for nil.
func Array(texts []string) *string {
	if texts == nil {
		return nil
	}
	b := []byte{'['}
	for i, text := range texts {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendText(b, []byte(text))
	}
	array := string(append(b, ']'))
	return &array
}
