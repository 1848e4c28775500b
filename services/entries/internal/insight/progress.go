package insight

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// View is a page view. The time is in Unix microseconds.
type View struct {
	Version    *int64
	Page       int64
	TotalPages *int64
	At         int64
}

// last reports whether v is of the last page.
func (v View) last() bool {
	return v.TotalPages != nil && v.Page != math.MaxInt64 && *v.TotalPages == v.Page+1
}

// Progress is how far an entry came: in all its views, or in those of one version. Times are in tenths of a second.
type Progress struct {
	// Part is 0 for all views. An entry with views of several versions has further parts from 1 on, one for each.
	Part     int64
	Version  *int64  // of the views; nil if they have none or several
	Versions []int64 // of all the entry's views if these are of several, or else nil

	Furthest       int64  // the greatest page
	Ended          bool   // Furthest is the last page
	CompletedAfter *int64 // from the first view to the first one of the last page
	// Cells has the pages, each with the time from its first view to the next view of another page.
	Cells []int64
}

// A cell is a page and a time in one number. It is the page times 2^CellBits, plus the time and 1, or plus 0 without a
// time. So Postgres passes one number for a page. Pages beyond a million have no cell.
const (
	CellBits = 42 // of tenths: more than the years 1 to 9999
	maxPage  = 1_000_000
)

// ProgressOf returns the parts of an entry with these views, at least one, in the order of their time.
func ProgressOf(views []View) []Progress {
	type number struct {
		value int64
		known bool
	}
	of := func(v View) number {
		if v.Version == nil {
			return number{}
		}
		return number{*v.Version, true}
	}
	split := map[number][]View{}
	for _, v := range views {
		split[of(v)] = append(split[of(v)], v)
	}
	parts := []Progress{progressOf(views)}
	if len(split) == 1 {
		parts[0].Version = views[0].Version
		return parts
	}
	numbers := slices.SortedFunc(maps.Keys(split), func(a, b number) int { return cmp.Compare(a.value, b.value) })
	versions := []int64{}
	for _, n := range numbers {
		if n.known {
			versions = append(versions, n.value)
		}
	}
	for i, n := range numbers {
		p := progressOf(split[n])
		p.Part, p.Version = int64(i+1), split[n][0].Version
		parts = append(parts, p)
	}
	for i := range parts {
		parts[i].Versions = versions
	}
	return parts
}

// tenth is a tenth of a second in microseconds.
const tenth = 100_000

func progressOf(views []View) (p Progress) {
	p.Furthest = views[0].Page
	for _, v := range views {
		p.Furthest = max(p.Furthest, v.Page)
		if p.CompletedAfter == nil && v.last() {
			after := (v.At - views[0].At) / tenth
			p.CompletedAfter = &after
		}
	}
	for _, v := range views {
		p.Ended = p.Ended || v.last() && v.Page == p.Furthest
	}
	cells := map[int64]int64{}
	var begun, since int64
	waiting := false // page begun was seen for the first time, and no view of another page followed
	for _, v := range views {
		if waiting && v.Page != begun {
			cells[begun] += (v.At-since)/tenth + 1
			waiting = false
		}
		if _, seen := cells[v.Page]; !seen {
			cells[v.Page] = v.Page << CellBits
			begun, since, waiting = v.Page, v.At, true
		}
	}
	for _, page := range slices.Sorted(maps.Keys(cells)) {
		if -maxPage <= page && page <= maxPage && len(p.Cells) < MaxPages { // no funnel shows more
			p.Cells = append(p.Cells, cells[page])
		}
	}
	return p
}
