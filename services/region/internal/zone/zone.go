// Package zone owns zones of the tz database: their names, and their offset from UTC at a time.
package zone

import (
	"sync"
	"time"

	"github.com/lectern-dev/lectern/shared/wire"
)

// Zone is a zone of the tz database.
type Zone struct {
	name      string
	location  *time.Location
	isDefault bool
}

// AsDefault returns the zone as that of a project that has none.
func (z Zone) AsDefault() Zone {
	z.isDefault = true
	return z
}

// IsDefault reports whether the zone is that of a project that has none.
func (z Zone) IsDefault() bool { return z.isDefault }

// Name returns the zone's name: "America/Los_Angeles".
func (z Zone) Name() string { return z.name }

// OffsetMinutes returns how many minutes the zone is east of UTC at a time, including daylight saving. It cuts
// seconds toward zero; zones had them before there were standard times.
func (z Zone) OffsetMinutes(at time.Time) int {
	_, seconds := at.In(z.location).Zone()
	return seconds / 60
}

// Table finds zones by name and caches them. It is safe for concurrent use.
type Table struct {
	known sync.Map // name → Zone; at most as many as the tz database has
}

// NewTable returns a Table.
func NewTable() *Table { return &Table{} }

// Find returns the zone of that name, exactly as the tz database writes it, or [wire.ErrZone].
func (t *Table) Find(name string) (Zone, error) {
	if z, ok := t.known.Load(name); ok {
		return z.(Zone), nil
	}
	location, err := wire.LoadZone(name)
	if err != nil {
		return Zone{}, err
	}
	z := Zone{name: name, location: location}
	t.known.Store(name, z)
	return z, nil
}
