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

// orNull returns t, or nil if t is zero.
func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
