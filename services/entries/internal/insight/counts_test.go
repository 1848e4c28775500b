package insight

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/wire"
)

// TestIntervals compares the bounds of all intervals with a walk by quarters of an hour. Its zones have clocks that went back
// over midnight, left out a midnight or a date, or are no whole hours from UTC.
func TestIntervals(t *testing.T) {
	first, last := time.Date(2005, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, name := range []string{
		"UTC", "America/Sao_Paulo", "America/Havana", "America/Scoresbysund", "Antarctica/Casey", "Antarctica/Vostok", "Africa/Cairo", "Asia/Amman",
		"Asia/Calcutta", "Asia/Katmandu", "Asia/Pyongyang", "Australia/Lord_Howe", "Pacific/Apia", "Pacific/Chatham", "US/Pacific",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zone, err := wire.LoadZone(name)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string][]time.Time{}
			begun := time.Date(2004, 11, 20, 0, 0, 0, 0, time.UTC) // the newest date so far
			for at := begun; !at.After(last.AddDate(0, 1, 2)); at = at.Add(15 * time.Minute) {
				if at.In(zone).Minute() == 0 {
					want["hour"] = append(want["hour"], at)
				}
				y, m, d := at.In(zone).Date()
				date := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
				if !date.After(begun) {
					continue
				}
				for _, size := range []struct {
					name   string
					begins bool
				}{
					{"day", true}, {"week", date.Weekday() == time.Monday || date.Sub(begun) > 24*time.Hour && date.Weekday() == time.Tuesday}, {"month", d == 1},
				} {
					if size.begins {
						want[size.name] = append(want[size.name], at)
					}
				}
				begun = date
			}
			if all := intervals("day", zone, FirstYear, AfterYear); !slices.IsSortedFunc(all, time.Time.Compare) || all[0].After(FirstYear) || !all[len(all)-1].After(AfterYear) {
				t.Errorf("the days of all years: %d, from %v to %v", len(all), all[0], all[len(all)-1])
			}
			for size, all := range want {
				for len(all) > 1 && !all[1].After(first) {
					all = all[1:]
				}
				for len(all) > 1 && all[len(all)-2].After(last) {
					all = all[:len(all)-1]
				}
				if diff := cmp.Diff(all, intervals(size, zone, first, last)); diff != "" {
					t.Errorf("%s (-walked +got):\n%s", size, diff)
				}
			}
		})
	}
}
