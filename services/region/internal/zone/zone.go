// Package zone owns zones of the tz database: their names, and their offset from UTC at a time. It uses the machine's
// database, so that its updates take effect. It uses the one in the binary if the machine has none or does not have
// the name.
package zone

import (
	"errors"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // images have no tz database
)

// ErrUnknown means that a name is not a zone.
var ErrUnknown = errors.New("not a zone of the tz database")

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

// Find returns the zone of that name, exactly as the tz database writes it, or [ErrUnknown].
func (t *Table) Find(name string) (Zone, error) {
	if z, ok := t.known.Load(name); ok {
		return z.(Zone), nil
	}
	if !wellFormed(name) {
		return Zone{}, ErrUnknown
	}
	location, err := time.LoadLocation(name)
	if err != nil {
		return Zone{}, ErrUnknown
	}
	z := Zone{name: name, location: location}
	t.known.Store(name, z)
	return z, nil
}

// wellFormed refuses names whose meaning depends on the machine: those that Go's time package treats specially, and
// those of other files in the database's folder. It allows only letters, digits and the marks in names of zones, so
// that no path leads out of the database.
func wellFormed(name string) bool {
	switch name {
	case "", "Local", "localtime", "posixrules":
		return false
	}
	// Debian has the zones again in posix/, and in right/ with leap seconds counted.
	if strings.HasPrefix(name, "posix/") || strings.HasPrefix(name, "right/") || strings.Contains(name, "//") {
		return false
	}
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '_', c == '-', c == '+', c == '/':
		default:
			return false
		}
	}
	return true
}
