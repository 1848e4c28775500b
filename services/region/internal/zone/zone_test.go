package zone_test

import (
	"testing"
	"time"

	"github.com/lectern-dev/lectern/services/region/internal/zone"
)

// TestOffsetMinutes checks an offset of each kind that the tz database has.
func TestOffsetMinutes(t *testing.T) {
	table := zone.NewTable()
	for _, tt := range []struct {
		zone, at string
		want     int // minutes
	}{
		{"UTC", "2022-01-01T00:00:00Z", 0},
		{"America/Los_Angeles", "2022-03-13T09:59:59Z", -480}, // the last second of standard time
		{"America/Los_Angeles", "2022-03-13T10:00:00Z", -420},
		{"America/Los_Angeles", "2050-07-01T00:00:00Z", -420}, // by the zone's rule, after the end of all tables
		{"America/Los_Angeles", "1943-01-15T00:00:00Z", -420}, // war time, all year
		{"America/Los_Angeles", "1883-01-01T00:00:00Z", -472}, // local mean time, -7:52:58
		{"America/St_Johns", "1988-07-01T00:00:00Z", -90},     // half an hour, and double daylight saving
		{"Pacific/Apia", "2011-12-30T09:59:59Z", -600},        // the day before the day that was skipped
		{"Pacific/Apia", "2011-12-30T10:00:00Z", 840},
		{"Pacific/Chatham", "2022-01-01T00:00:00Z", 825},
		{"Australia/Lord_Howe", "2022-07-01T00:00:00Z", 630}, // daylight saving of half an hour
		{"Asia/Manila", "1840-01-01T00:00:00Z", -956},        // east of the date line at that time; about -15:56:08
		{"Europe/Dublin", "2022-07-01T00:00:00Z", 60},        // there, winter time is the saving
		{"Africa/Monrovia", "1970-01-01T00:00:00Z", -44},     // -0:44:30 until 1972
		{"Africa/Casablanca", "2022-04-10T00:00:00Z", 0},     // suspended for Ramadan
		{"Etc/GMT+12", "2022-01-01T00:00:00Z", -720},
		{"US/Pacific", "2022-01-01T00:00:00Z", -480}, // another name of a zone
	} {
		t.Run(tt.zone+" "+tt.at, func(t *testing.T) {
			at, err := time.Parse(time.RFC3339, tt.at)
			if err != nil {
				t.Fatal(err)
			}
			z, err := table.Find(tt.zone)
			if err != nil || z.Name() != tt.zone {
				t.Fatalf("%s is called %s, %v", tt.zone, z.Name(), err)
			}
			if got := z.OffsetMinutes(at); got != tt.want {
				t.Errorf("%d minutes, want %d", got, tt.want)
			}
		})
	}
}
