// Package zone finds zones of the tz database by name, and computes their offset from UTC at a given time.
package zone

import (
	"sync"
	"time"

	"github.com/lectern-dev/lectern/shared/wire"
)

// Zone is a zone of the tz database, which a project has as its region or by default. [Table.Find] makes a Zone.
type Zone struct {
	name      string
	location  *time.Location
	isDefault bool
}

// AsDefault returns the zone, marked as the default of a project that has no region.
func (z Zone) AsDefault() Zone {
	z.isDefault = true
	return z
}

// IsDefault reports whether a project has the zone only by default, because it has no region.
func (z Zone) IsDefault() bool { return z.isDefault }

// Name returns the name of the zone in the tz database, such as "America/Los_Angeles".
func (z Zone) Name() string { return z.name }

// OffsetMinutes returns how many minutes the zone is east of UTC at a time, including daylight saving. OffsetMinutes
// drops the seconds that an offset had in the past.
func (z Zone) OffsetMinutes(at time.Time) int {
	_, seconds := at.In(z.location).Zone()
	return seconds / 60
}

// Table finds zones by name and caches them. A Table is safe for concurrent use.
type Table struct {
	known sync.Map // name → Zone; not more zones than the tz database has
}

// NewTable returns an empty Table, into which [Table.Find] loads each zone on its first use.
func NewTable() *Table { return &Table{} }

// Find returns the zone with a name, exactly as the tz database writes the name. The error is [wire.ErrZone] if there
// is no such zone.
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
