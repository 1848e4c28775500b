package zone_test

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/services/region/internal/zone"
)

// offsets lists zones and times with offsets that were checked by hand, for machines without GNU date.
var offsets = []struct {
	zone, at string
	want     int // minutes
}{
	{"UTC", "2022-01-01T00:00:00Z", 0},
	{"America/Los_Angeles", "2022-01-01T00:00:00Z", -480},
	{"America/Los_Angeles", "2022-03-13T09:59:59Z", -480}, // the last second of standard time
	{"America/Los_Angeles", "2022-03-13T10:00:00Z", -420},
	{"America/Los_Angeles", "2022-11-06T08:59:59Z", -420},
	{"America/Los_Angeles", "2022-11-06T09:00:00Z", -480},
	{"America/Los_Angeles", "2050-07-01T00:00:00Z", -420}, // by the zone's rule, after the end of all tables
	{"America/Los_Angeles", "1943-01-15T00:00:00Z", -420}, // war time, all year
	{"America/Los_Angeles", "1883-01-01T00:00:00Z", -472}, // local mean time, -7:52:58
	{"America/New_York", "2006-04-02T06:59:59Z", -300},    // the rule before 2007
	{"America/New_York", "2006-04-02T07:00:00Z", -240},
	{"America/New_York", "2007-03-11T07:00:00Z", -240},
	{"America/St_Johns", "2022-01-01T00:00:00Z", -210},
	{"America/St_Johns", "2022-07-01T00:00:00Z", -150},
	{"America/St_Johns", "1988-07-01T00:00:00Z", -90}, // double daylight saving
	{"America/Caracas", "2010-01-01T00:00:00Z", -270},
	{"America/Caracas", "2020-01-01T00:00:00Z", -240},
	{"America/Sao_Paulo", "2018-12-01T00:00:00Z", -120},
	{"America/Sao_Paulo", "2022-12-01T00:00:00Z", -180}, // abolished in 2019
	{"America/Santiago", "2022-01-01T00:00:00Z", -180},
	{"America/Santiago", "2022-07-01T00:00:00Z", -240},
	{"Pacific/Marquesas", "2022-01-01T00:00:00Z", -570},
	{"Pacific/Honolulu", "1940-01-01T00:00:00Z", -630},
	{"Pacific/Pago_Pago", "2022-01-01T00:00:00Z", -660},
	{"Pacific/Apia", "2011-12-30T09:59:59Z", -600}, // the day before the day that was skipped
	{"Pacific/Apia", "2011-12-30T10:00:00Z", 840},
	{"Pacific/Kiritimati", "2022-01-01T00:00:00Z", 840},
	{"Pacific/Chatham", "2022-01-01T00:00:00Z", 825},
	{"Pacific/Chatham", "2022-07-01T00:00:00Z", 765},
	{"Pacific/Auckland", "2022-04-02T13:59:59Z", 780},
	{"Pacific/Auckland", "2022-04-02T14:00:00Z", 720},
	{"Pacific/Auckland", "2022-09-24T14:00:00Z", 780},
	{"Australia/Eucla", "2022-01-01T00:00:00Z", 525},
	{"Australia/Adelaide", "2022-01-01T00:00:00Z", 630},
	{"Australia/Adelaide", "2022-07-01T00:00:00Z", 570},
	{"Australia/Lord_Howe", "2022-01-01T00:00:00Z", 660}, // daylight saving of half an hour
	{"Australia/Lord_Howe", "2022-07-01T00:00:00Z", 630},
	{"Australia/Lord_Howe", "2060-07-01T00:00:00Z", 630},
	{"Asia/Kathmandu", "2022-01-01T00:00:00Z", 345},
	{"Asia/Kathmandu", "1985-01-01T00:00:00Z", 330},
	{"Asia/Kolkata", "2022-07-01T00:00:00Z", 330},
	{"Asia/Kolkata", "1943-07-01T00:00:00Z", 390},
	{"Asia/Tehran", "2022-07-01T00:00:00Z", 270},
	{"Asia/Tehran", "2023-07-01T00:00:00Z", 210},
	{"Asia/Kabul", "2022-01-01T00:00:00Z", 270},
	{"Asia/Yangon", "2022-01-01T00:00:00Z", 390},
	{"Asia/Pyongyang", "2016-01-01T00:00:00Z", 510},
	{"Asia/Pyongyang", "2022-01-01T00:00:00Z", 540},
	{"Asia/Manila", "1840-01-01T00:00:00Z", -956}, // east of the date line at that time; about -15:56:08
	{"Europe/Berlin", "2022-03-27T00:59:59Z", 60},
	{"Europe/Berlin", "2022-03-27T01:00:00Z", 120},
	{"Europe/Berlin", "2022-10-30T00:59:59Z", 120},
	{"Europe/Berlin", "2022-10-30T01:00:00Z", 60},
	{"Europe/Berlin", "1945-07-01T00:00:00Z", 180}, // double summer time
	{"Europe/Berlin", "2099-07-01T00:00:00Z", 120},
	{"Europe/London", "1970-01-01T00:00:00Z", 60}, // British standard time
	{"Europe/Dublin", "2022-01-01T00:00:00Z", 0},  // there, winter time is the saving
	{"Europe/Dublin", "2022-07-01T00:00:00Z", 60},
	{"Europe/Lisbon", "1993-01-01T00:00:00Z", 60},
	{"Europe/Istanbul", "2022-01-01T00:00:00Z", 180},
	{"Europe/Moscow", "2012-01-01T00:00:00Z", 240},
	{"Europe/Moscow", "2022-01-01T00:00:00Z", 180},
	{"Africa/Monrovia", "1970-01-01T00:00:00Z", -44}, // -0:44:30 until 1972
	{"Africa/Monrovia", "2022-01-01T00:00:00Z", 0},
	{"Africa/Casablanca", "2022-01-01T00:00:00Z", 60},
	{"Africa/Casablanca", "2022-04-10T00:00:00Z", 0}, // suspended for Ramadan
	{"Africa/Cairo", "2023-07-01T00:00:00Z", 180},
	{"Antarctica/Troll", "2022-01-01T00:00:00Z", 0},
	{"Antarctica/Troll", "2022-07-01T00:00:00Z", 120},
	{"Atlantic/Azores", "2022-07-01T00:00:00Z", 0},
	{"Etc/GMT+12", "2022-01-01T00:00:00Z", -720},
	{"Africa/Johannesburg", "1943-01-01T00:00:00Z", 180},
	{"America/Anchorage", "2022-07-01T00:00:00Z", -480},
	{"America/Argentina/San_Luis", "2008-02-01T00:00:00Z", -180},
	{"America/Havana", "2022-07-01T00:00:00Z", -240},
	{"America/Nuuk", "2022-01-01T00:00:00Z", -180},
	{"America/Phoenix", "2022-07-01T00:00:00Z", -420},
	{"Asia/Dhaka", "2009-07-01T00:00:00Z", 420},
	{"Asia/Gaza", "2022-07-01T00:00:00Z", 180},
	{"Asia/Jerusalem", "2022-07-01T00:00:00Z", 180},
	{"Asia/Tokyo", "1950-07-01T00:00:00Z", 600},
	{"Indian/Cocos", "2022-01-01T00:00:00Z", 390},
	{"Pacific/Norfolk", "2014-01-01T00:00:00Z", 690},
	{"US/Pacific", "2022-01-01T00:00:00Z", -480},
}

func TestOffsetMinutes(t *testing.T) {
	table := zone.NewTable()
	for _, tt := range offsets {
		t.Run(tt.zone+" "+tt.at, func(t *testing.T) {
			z, at := find(t, table, tt.zone), moment(t, tt.at)
			if got := z.OffsetMinutes(at); got != tt.want {
				t.Errorf("%d minutes, want %d", got, tt.want)
			}
		})
	}
}

// TestOffsetMinutesEqualDate checks that OffsetMinutes equals the offset of the system's date command with the same tz
// database.
func TestOffsetMinutesEqualDate(t *testing.T) {
	if _, err := time.LoadLocation("Europe/Berlin"); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "date", "-u", "-d", "@0", "+%::z").Output(); err != nil || string(out) != "+00:00:00\n" {
		t.Skipf("needs GNU date: %q %v", out, err)
	}
	table := zone.NewTable()
	compared := 0
	zones := map[string]bool{}
	for _, tt := range offsets {
		zones[tt.zone] = true
		at := moment(t, tt.at)
		for _, m := range []time.Time{at, at.Add(-time.Second), at.AddDate(0, 6, 0), at.AddDate(30, 0, 0)} {
			compare(t, table, tt.zone, m)
			compared++
		}
	}
	if len(zones) < 40 || compared < 200 {
		t.Errorf("%d zones at %d times: too few", len(zones), compared)
	}
}

func compare(t *testing.T, table *zone.Table, name string, at time.Time) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "date", "-d", fmt.Sprintf("@%d", at.Unix()), "+%::z")
	cmd.Env = []string{"TZ=" + name, "LC_ALL=C"}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := minutes(t, strings.TrimSpace(string(out)))
	if got := find(t, table, name).OffsetMinutes(at); got != want {
		t.Errorf("%s at %s: %d minutes, date printed %s, which is %d", name, at.Format(time.RFC3339), got, strings.TrimSpace(string(out)), want)
	}
}

// minutes parses +hh:mm:ss and truncates the seconds toward zero.
func minutes(t *testing.T, offset string) int {
	t.Helper()
	parts := strings.Split(offset[1:], ":")
	if len(parts) != 3 {
		t.Fatalf("date printed %q", offset)
	}
	n := 0
	for i, factor := range []int{60, 1} {
		part, err := strconv.Atoi(parts[i])
		if err != nil {
			t.Fatalf("date printed %q", offset)
		}
		n += part * factor
	}
	if offset[0] == '-' {
		return -n
	}
	return n
}

func find(t *testing.T, table *zone.Table, name string) zone.Zone {
	t.Helper()
	z, err := table.Find(name)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if z.Name() != name {
		t.Fatalf("%s is called %s", name, z.Name())
	}
	return z
}

func moment(t *testing.T, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func BenchmarkOffsetMinutes(b *testing.B) {
	table := zone.NewTable()
	at := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
	for b.Loop() {
		z, err := table.Find("Europe/Berlin")
		if err != nil || z.OffsetMinutes(at) != 120 {
			b.Fatal(z, err)
		}
	}
}
