package insight

import (
	"cmp"
	"slices"
	"time"

	"github.com/lectern-dev/lectern/services/entries/internal/entry"
)

// By splits counts.
type By string

// The values of By.
const (
	ByNone       By = "none"
	ByEmbeddable By = "embeddable"
	ByVersion    By = "version" // and by the embeddable that the version is of
)

// All is the interval that has all entries.
const All = "all"

// MaxCounts is how many rows of counts an answer may have. More than MaxGroups groups make more rows than that: of two groups
// with one interval and embeddable, at most one has no row.
const (
	MaxCounts = 2000
	MaxGroups = 2 * MaxCounts
)

// CountsQuestion asks for the entries of each interval.
type CountsQuestion struct {
	Selection
	Interval string // day, week, month or All
	By       By
	Zone     *time.Location // where days begin
}

// Larger returns the next larger interval, or "" for the largest.
func (q CountsQuestion) Larger() string {
	return map[string]string{"day": "week", "week": "month", "month": All}[q.Interval]
}

// The years in which a clock is believed. An entry of another time is in no interval.
var (
	FirstYear = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	AfterYear = time.Date(2101, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Bounds returns when the intervals begin that the selected entries may be in, and when the last of them ends. The bounds
// ascend. For the interval All, which depends on the entries, there are none.
func (q CountsQuestion) Bounds() []time.Time {
	if q.Interval == All {
		return nil
	}
	first, last := FirstYear.UnixMicro(), AfterYear.UnixMicro()
	for _, c := range q.Conditions {
		at, ok := c.Value.(int64)
		switch {
		case !ok || c.Field != "created_at":
		case c.Kind == entry.After:
			first = max(first, at)
		case c.Kind == entry.Before:
			last = min(last, at)
		}
	}
	return intervals(q.Interval, q.Zone, time.UnixMicro(first), time.UnixMicro(last))
}

// intervals returns when the intervals from first to last begin, and when the last of them ends. There is at least one
// interval.
//
// A day begins at the first instant with its date. So the days of a zone follow each other without a gap, also where clocks
// go back over midnight. A date that a zone left out has no interval.
func intervals(size string, zone *time.Location, first, last time.Time) []time.Time {
	months, days := 0, 0
	y, m, d := first.In(zone).Date()
	switch size {
	case "week":
		days = 7
		d -= (int(first.In(zone).Weekday()) + 6) % 7 // Monday
	case "month":
		months, d = 1, 1
	default:
		days = 1
	}
	date := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	var bounds []time.Time
	for ; ; date = date.AddDate(0, months, days) {
		begin := beginOf(date, zone)
		if n := len(bounds); n == 0 || begin.After(bounds[n-1]) {
			bounds = append(bounds, begin)
		}
		if len(bounds) > 1 && begin.After(last) {
			return bounds
		}
	}
}

// beginOf returns the first instant whose date in the zone is that of a midnight in UTC, or a later date.
func beginOf(midnight time.Time, zone *time.Location) time.Time {
	// most is longer than the time from a midnight in UTC to the beginning of that date in any zone, and back.
	const most = 26 * time.Hour
	offset := func(at time.Time) time.Duration {
		_, seconds := at.In(zone).Zone()
		return time.Duration(seconds) * time.Second
	}
	before := offset(midnight.Add(-most))
	if before == offset(midnight.Add(most)) {
		return midnight.Add(-before)
	}
	// Since 2000, clocks have changed at quarters of an hour, by quarters of an hour.
	at := midnight.Add(-most)
	for at.Add(offset(at)).Before(midnight) {
		at = at.Add(15 * time.Minute)
	}
	return at
}

// Group counts entries of an interval: all of them, those of an embeddable or those with views of a version.
type Group struct {
	// Interval is the number of an interval of [CountsQuestion.Bounds], from 1 on. Nil: no believed clock, or the interval All.
	Interval     *int
	EmbeddableID *string
	Version      *int64
	Entries      int
	Started      int
	Completed    int
	// Twice is how many of the entries count again in the group without a version.
	Twice int
	// First and Last are when the first and the last entry with a believed clock were created. Nil: there is no such entry, or
	// the interval is not All.
	First, Last *time.Time
}

// Count is a row of counts. Its field names are those of the API.
type Count struct {
	From         *time.Time `json:"from"`
	To           *time.Time `json:"to"`
	EmbeddableID *string    `json:"embeddable_id"`
	Version      *int64     `json:"version_number"`
	Entries      int        `json:"entries"`
	Started      int        `json:"started"`
	Completed    int        `json:"completed"`
}

// Counts returns the rows of an answer, the oldest first. bounds are those of the question. Groups without an interval come
// last. Without a split, an interval without entries has a row of zeros. More than MaxCounts rows are not complete.
func (q CountsQuestion) Counts(bounds []time.Time, groups []Group) []Count {
	if q.Interval == All {
		bounds = q.whole(groups)
	}
	slices.SortFunc(groups, func(a, b Group) int {
		return cmp.Or(nullsLast(a.Interval, b.Interval), nullsLast(a.EmbeddableID, b.EmbeddableID), nullsLast(a.Version, b.Version))
	})
	counts := []Count{} // never null
	next := 0           // the interval after the last one that has a row
	twice := 0          // of the groups since the last one without a version
	for _, g := range groups {
		if len(counts) > MaxCounts {
			return counts
		}
		if twice += g.Twice; g.Version == nil {
			g.Entries -= twice
			twice = 0
		}
		if g.Entries == 0 {
			continue
		}
		c := Count{EmbeddableID: g.EmbeddableID, Version: g.Version, Entries: g.Entries, Started: g.Started, Completed: g.Completed}
		if g.Interval != nil {
			for ; q.By == ByNone && next > 0 && next < *g.Interval && len(counts) <= MaxCounts; next++ {
				counts = append(counts, Count{From: &bounds[next-1], To: &bounds[next]})
			}
			c.From, c.To = &bounds[*g.Interval-1], &bounds[*g.Interval]
			next = *g.Interval + 1
		}
		counts = append(counts, c)
	}
	return counts
}

// whole returns the bounds of the interval All, and puts all groups into the interval. The interval goes from the day of the first entry
// with a believed clock to that of the last. Without such an entry there are no bounds, and the groups have no interval.
func (q CountsQuestion) whole(groups []Group) []time.Time {
	var first, last *time.Time
	for _, g := range groups {
		if g.First != nil && (first == nil || g.First.Before(*first)) {
			first = g.First
		}
		if g.Last != nil && (last == nil || g.Last.After(*last)) {
			last = g.Last
		}
	}
	if first == nil {
		return nil
	}
	only := 1
	for i := range groups {
		groups[i].Interval = &only
	}
	days := intervals("day", q.Zone, *first, *last)
	return []time.Time{days[0], days[len(days)-1]}
}

// nullsLast compares two values of which nil is the greatest.
func nullsLast[T cmp.Ordered](a, b *T) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return cmp.Compare(*a, *b)
}
