package pgkeys

import (
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// pgTime is a timestamp that may be null, where Go has a zero time.
type pgTime struct{ pgtype.Timestamptz }

func (t *pgTime) utc() time.Time {
	if !t.Valid {
		return time.Time{}
	}
	return t.Time.UTC()
}

// orNull is t, or nil when it is zero.
func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
