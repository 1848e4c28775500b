package wire

import (
	"errors"
	"strings"
	"time"
	_ "time/tzdata" // images have no tz database
)

// ErrZone is the error of [LoadZone] for a name that is not a zone of the tz database.
var ErrZone = errors.New("not a zone of the tz database")

// LoadZone returns the time zone with the name, exactly as the tz database writes the name, or [ErrZone]. LoadZone uses
// the machine's database, so that updates of the machine take effect. LoadZone uses the database in the binary if the
// machine has none or does not have the name.
func LoadZone(name string) (*time.Location, error) {
	if !isZoneName(name) {
		return nil, ErrZone
	}
	location, err := time.LoadLocation(name)
	if err != nil {
		return nil, ErrZone
	}
	return location, nil
}

// isZoneName reports whether name can be a zone whose meaning is the same on every machine. isZoneName refuses the
// empty name, names of the machine's own zone, and names of copies in the database's folder. isZoneName allows only
// letters, digits and the marks in names of zones, so that no path leads out of the database.
func isZoneName(name string) bool {
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
