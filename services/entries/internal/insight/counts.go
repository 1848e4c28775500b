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

// MaxCounts is how many rows of counts an answer may have. More than MaxGroups groups make more rows than that: at most four
// groups become one row.
const (
	MaxCounts = 2000
	MaxGroups = 4 * MaxCounts
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

// Bounds returns when the intervals begin that the selected entries may be in, and when the last of them ends. They
// ascend. The interval All is the believed years.
func (q CountsQuestion) Bounds() []time.Time {
	if q.Interval == All {
		return []time.Time{FirstYear, AfterYear}
	}
	first, last := FirstYear, AfterYear
	for _, c := range q.Conditions {
		at, ok := c.Value.(int64)
		switch {
		case !ok || c.Field != "created_at":
		case c.Kind == entry.After:
			first = later(first, time.UnixMicro(at))
		case c.Kind == entry.Before:
			last = earlier(last, time.UnixMicro(at))
		}
	}
	return intervals(q.Interval, q.Zone, first, last)
}

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

func earlier(a, b time.Time) time.Time { return slices.MinFunc([]time.Time{a, b}, time.Time.Compare) }

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
	// The date begins less than that before and after midnight in UTC, wherever the zone is.
	const most = 26 * time.Hour
	offset := func(at time.Time) time.Duration {
		_, seconds := at.In(zone).Zone()
		return time.Duration(seconds) * time.Second
	}
	before := offset(midnight.Add(-most))
	if before == offset(midnight.Add(most)) {
		return midnight.Add(-before)
	}
	// Clocks change. Since 2000 they have done so at, and by, quarters of an hour.
	at := midnight.Add(-most)
	for at.Add(offset(at)).Before(midnight) {
		at = at.Add(15 * time.Minute)
	}
	return at
}

// Group counts entries of an interval: all of them, those of an embeddable or those with views of a version.
type Group struct {
	// Interval is the number of an interval of [CountsQuestion.Bounds], from 1 on. Nil: no believed clock.
	Interval     *int
	EmbeddableID *string
	Version      *int64
	Entries      int
	Started      int
	Completed    int
	// Twice is how many of the entries count again in the group without a version.
	Twice int
	// First and Last are when the first and the last entry were created. They are set for the interval All.
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
// last. The interval All has them too, if any entry has a believed clock. Without a split, an interval without entries has a
// row of zeros. More than MaxCounts rows are not complete.
func (q CountsQuestion) Counts(bounds []time.Time, groups []Group) []Count {
	if q.Interval == All {
		bounds, groups = q.merge(groups)
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

// merge merges the groups of all times. Their one interval goes from the day of the first entry with a believed clock to that
// of the last.
func (q CountsQuestion) merge(groups []Group) (bounds []time.Time, merged []Group) {
	var first, last time.Time
	for _, g := range groups {
		if g.Interval == nil {
			continue
		}
		if first.IsZero() || g.First.Before(first) {
			first = *g.First
		}
		last = later(last, *g.Last)
	}
	if first.IsZero() {
		return nil, groups
	}
	days := intervals("day", q.Zone, first, last)
	one := 1
	type name struct {
		embeddable string
		version    int64
	}
	all := map[name]*Group{}
	for _, g := range groups {
		n := name{version: NoVersion}
		if g.EmbeddableID != nil {
			n.embeddable = *g.EmbeddableID
		}
		if g.Version != nil {
			n.version = *g.Version
		}
		sum := all[n]
		if sum == nil {
			sum = &Group{Interval: &one, EmbeddableID: g.EmbeddableID, Version: g.Version}
			all[n] = sum
		}
		sum.Entries, sum.Started, sum.Completed, sum.Twice = sum.Entries+g.Entries, sum.Started+g.Started, sum.Completed+g.Completed, sum.Twice+g.Twice
	}
	for _, g := range all {
		merged = append(merged, *g)
	}
	return []time.Time{days[0], days[len(days)-1]}, merged
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
