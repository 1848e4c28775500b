package pgkeys

import (
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// pgTime is a timestamp of Postgres that may be NULL. The method utc returns NULL as Go's zero time.
type pgTime struct{ pgtype.Timestamptz }

func (t *pgTime) utc() time.Time {
	if !t.Valid {
		return time.Time{}
	}
	return t.Time.UTC()
}
