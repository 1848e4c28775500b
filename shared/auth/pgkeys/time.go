package pgkeys

import (
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// pgTime is a timestamp that may be null. Go has a zero time for null.
type pgTime struct{ pgtype.Timestamptz }

func (t *pgTime) utc() time.Time {
	if !t.Valid {
		return time.Time{}
	}
	return t.Time.UTC()
}
