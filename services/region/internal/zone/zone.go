// Package zone owns what the service knows of time: which names are zones of the tz database, and how
// far a zone is from UTC at a moment. The database is the machine's, so that its updates count, and the
// one in the binary where the machine has none or does not know the name.
package zone

import (
	"errors"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // images have no tz database
)

// ErrUnknown says that a name is no zone.
var ErrUnknown = errors.New("not a zone of the tz database")

// Zone is a zone of the tz database.
type Zone struct {
	name     string
	location *time.Location
}

// Name returns the zone's name: "America/Los_Angeles".
func (z Zone) Name() string { return z.name }

// OffsetMinutes returns how many minutes the zone is east of UTC at a moment, daylight saving counted.
// Seconds, which zones had before there were standard times, are cut toward zero.
func (z Zone) OffsetMinutes(at time.Time) int {
	_, seconds := at.In(z.location).Zone()
	return seconds / 60
}

// Table finds zones by name and keeps them. It may be used by several goroutines.
type Table struct {
	known sync.Map // name → Zone; no more than the tz database has
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
	z := Zone{name, location}
	t.known.Store(name, z)
	return z, nil
}

// wellFormed refuses the names that mean something else on each machine: those that Go's time package
// reads in its own way, and those of files beside the zones. What is left is letters, digits and the
// marks that names of zones have, so that no path leads out of the database.
func wellFormed(name string) bool {
	switch name {
	case "", "Local", "localtime", "posixrules":
		return false
	}
	// Debian keeps the zones again below posix/, and below right/ with leap seconds counted.
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
