package insight

import (
	"time"

	"github.com/lectern-dev/lectern/shared/wire"

	"github.com/lectern-dev/lectern/services/entries/internal/entry"
)

// By says by which property an answer splits the counts of an interval into several rows.
type By string

// The ways to split counts. With ByNone, an interval has at most one row. With another value, an interval has a row for
// each embeddable or version that has entries.
const (
	ByNone       By = "none"
	ByEmbeddable By = "embeddable"
	ByVersion    By = "version" // and by the embeddable that the version is of
)

// All is the name of the only interval of a question that does not split the time.
const All = "all"

// MaxCounts is how many rows of counts an answer may have.
const MaxCounts = 2000

// CountsQuestion asks how many of the selected entries were created in each interval.
type CountsQuestion struct {
	entry.Selection

	Interval string // hour, day, week, month or All
	By       By
	Zone     *time.Location // the time zone in which days begin at midnight
	AtMost   int            // stop at this number of entries; 0: count all. Only with All and ByNone.
}

// Larger returns the next larger interval than the interval of q, or "" if q asks for the largest interval.
func (q CountsQuestion) Larger() string {
	return map[string]string{"hour": "day", "day": "week", "week": "month", "month": All}[q.Interval]
}

// FirstYear and AfterYear bound the plausible times of creation: the years 2000 to 2100. An entry with another time of
// creation is in no hour, day, week or month.
var (
	FirstYear = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	AfterYear = time.Date(2101, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Bounds returns when each interval begins that may have selected entries, and when the last interval ends, in
// ascending order. For the interval All, Bounds returns nil, because that interval depends on the entries.
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

// Earlier returns the time after which the earlier period begins, in Unix microseconds. The earlier period ends where
// the period of q begins, and is as long, but begins at [wire.MinTime] at the earliest. ok is false if q has no
// condition created_after, and then there is no earlier period. now ends a period that has no end.
func (q CountsQuestion) Earlier(now time.Time) (before int64, ok bool) {
	after, until := int64(0), now.UnixMicro()
	for _, c := range q.Conditions {
		switch {
		case c.Field != "created_at":
		case c.Kind == entry.After:
			after, ok = c.Value.(int64), true
		case c.Kind == entry.Before:
			until = c.Value.(int64)
		}
	}
	return max(after-max(until-after-1, 0), wire.MinTime), ok
}

// intervals returns when the intervals from first to last begin, and when the last interval ends. There is at least
// one interval.
//
// A day begins at the first instant with its date. So the days of a zone follow each other without a gap, even where
// clocks go back over midnight. A date that a zone skipped has no interval. An hour begins when the clocks of the zone
// show a full hour.
func intervals(size string, zone *time.Location, first, last time.Time) []time.Time {
	if size == "hour" {
		return hours(zone, first, last)
	}
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

// quarter is the least change of the clocks of any zone since 2000.
const quarter = 15 * time.Minute

// hours returns when the hours from first to last begin, and when the last hour ends.
func hours(zone *time.Location, first, last time.Time) []time.Time {
	full := func(at time.Time) bool { return at.In(zone).Minute() == 0 }
	begin := first.Truncate(quarter)
	for !full(begin) {
		begin = begin.Add(-quarter)
	}
	bounds := []time.Time{begin}
	for len(bounds) == 1 || !begin.After(last) {
		next := begin.Add(time.Hour)
		if !full(next) { // clocks change by a part of an hour
			for next = begin.Add(quarter); !full(next); {
				next = next.Add(quarter)
			}
		}
		begin = next
		bounds = append(bounds, begin)
	}
	return bounds
}

// beginOf returns the first instant of a date in the zone. midnight is the beginning of the same date in UTC. If the
// zone skipped the date, beginOf returns the first instant of a later date.
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
		at = at.Add(quarter)
	}
	return at
}

// Group counts the entries that the database has grouped by interval, embeddable and version, as far as the question
// splits its counts.
type Group struct {
	// Interval is the number of an interval of [CountsQuestion.Bounds], from 1 on. Nil: the time of creation is not
	// between FirstYear and AfterYear, or the interval is All.
	Interval     *int
	EmbeddableID *string
	Version      *int64
	Entries      int
	Started      int
	Completed    int
	// Twice is how many entries of the group are counted again in the group of the same interval and embeddable that
	// has no version. [CountsQuestion.Counts] subtracts these entries there.
	Twice int
	// First and Last are needed for the interval All alone: the first and the last time of creation between FirstYear
	// and AfterYear. Nil: no entry has such a time.
	First, Last *time.Time
}

// Count is one row of counts in an answer, with the field names of the API. From and To are nil for entries without
// an interval.
type Count struct {
	From         *time.Time `json:"from"`
	To           *time.Time `json:"to"`
	EmbeddableID *string    `json:"embeddable_id"`
	Version      *int64     `json:"version_number"`
	Entries      int        `json:"entries"`
	Started      *int       `json:"started"`
	Completed    *int       `json:"completed"`
	AtLeast      bool       `json:"at_least,omitempty"` // counting stopped here, so the fields that may be nil are nil
}

// Counts returns the rows of an answer, the oldest first, and groups without an interval last. bounds is the result of
// Bounds. Without a split, an empty interval between two other intervals has a row of zeros. After MaxCounts+1 rows,
// Counts leaves out the rest. groups must be sorted by interval, embeddable and version, with nil last. Counts may set the
// intervals of groups.
func (q CountsQuestion) Counts(bounds []time.Time, groups []Group) []Count {
	if q.Interval == All {
		bounds = q.whole(groups)
	}
	if q.AtMost > 0 && len(groups) > 0 && groups[0].Entries >= q.AtMost {
		return []Count{{Entries: groups[0].Entries, AtLeast: true}}
	}
	counts := []Count{} // never null
	none := 0
	next := 0  // the interval after the last one that has a row
	twice := 0 // of the groups since the last one without a version
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
		c := Count{EmbeddableID: g.EmbeddableID, Version: g.Version, Entries: g.Entries, Started: &g.Started, Completed: &g.Completed}
		if g.Interval != nil {
			for ; q.By == ByNone && next > 0 && next < *g.Interval && len(counts) <= MaxCounts; next++ {
				counts = append(counts, Count{From: &bounds[next-1], To: &bounds[next], Started: &none, Completed: &none})
			}
			c.From, c.To = &bounds[*g.Interval-1], &bounds[*g.Interval]
			next = *g.Interval + 1
		}
		counts = append(counts, c)
	}
	return counts
}

// whole returns the bounds of the interval All, and puts all groups into that interval. The interval goes from the day
// of the first entry with a plausible time of creation to the day of the last such entry. If there is no such entry,
// whole returns nil and leaves the groups without an interval.
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
