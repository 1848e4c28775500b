package wire_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/wire"
)

func TestLoadZoneRefuses(t *testing.T) {
	for _, name := range []string{
		"", "Local", "local", "localtime", "posixrules", "posix/Europe/Berlin", "right/Europe/Berlin", "right/UTC",
		"Europe", "Europe/", "/Europe/Berlin", "Europe/Berlin/", "Europe//Berlin", "Europe/Atlantis", "Mars/Olympus_Mons",
		"europe/berlin", "EUROPE/BERLIN", " Europe/Berlin", "Europe/Berlin\n", "Europe/Berlin\x00", "..", ".", "../zoneinfo/UTC",
		"Europe/../UTC", `Europe\Berlin`, "/etc/localtime", "zone.tab", "tzdata.zi", "leap-seconds.list", "+02:00", "UTC+2", "CEST-", strings.Repeat("A", 10_000), "Zürich",
	} {
		if z, err := wire.LoadZone(name); !errors.Is(err, wire.ErrZone) {
			t.Errorf("%.40q is taken for the zone %v, %v", name, z, err)
		}
	}
}
