package insight

import (
	"errors"
	"maps"
	"math"
	"slices"
)

// ErrTooMany means that a funnel has more different times than the memory may hold.
var ErrTooMany = errors.New("too many different times")

// maxTimes is how many different times an answer may have. Each takes some 30 bytes.
const maxTimes = 4_000_000

// NoVersion stands for views without a version. No version has this number.
const NoVersion = math.MinInt64

// Funnel is how far entries came: all of them, or those of a version.
type Funnel struct {
	Version       *int64        `json:"version_number"`
	Entries       int           `json:"entries"`
	Started       int           `json:"started"`
	Completed     int           `json:"completed"`
	MedianSeconds *float64      `json:"median_seconds"`
	Pages         []*FunnelPage `json:"pages"`

	pages map[int64]*FunnelPage
	times times
}

// FunnelPage is a page of a funnel.
type FunnelPage struct {
	Index         int64    `json:"page_index"`
	Key           string   `json:"page_key"`
	Reached       int      `json:"reached"`
	Dropped       int      `json:"dropped"`
	MedianSeconds *float64 `json:"median_seconds"`

	// EntryID and Version are those of the page views that have the key. The caller reads it.
	EntryID string `json:"-"`
	Version int64  `json:"-"`

	stopped int // entries whose furthest page this is
	times   times
}

// times has how often each time occurs, in tenths of a second.
type times map[int64]int

// median returns the median in seconds, or nil without a time.
func (t times) median() *float64 {
	sum, passed := 0, 0
	for _, n := range t {
		sum += n
	}
	var low *int64
	for _, time := range slices.Sorted(maps.Keys(t)) {
		passed += t[time]
		if low == nil && passed > (sum-1)/2 {
			low = &time
		}
		if passed > sum/2 {
			median := float64(*low+time) / 20
			return &median
		}
	}
	return nil
}

// Funnels counts how far entries came.
type Funnels struct {
	byVersion bool
	funnels   map[int64]*Funnel
	times     int // different ones

	all    *int // entries
	wholes int  // entries with progress
}

// NewFunnels returns a funnel of all entries, or one for each version.
func NewFunnels(byVersion bool) *Funnels {
	f := &Funnels{byVersion: byVersion, funnels: map[int64]*Funnel{}}
	f.of(NoVersion)
	return f
}

func (f *Funnels) of(version int64) *Funnel {
	if !f.byVersion {
		version = NoVersion
	}
	one := f.funnels[version]
	if one == nil {
		one = &Funnel{pages: map[int64]*FunnelPage{}, times: times{}}
		if version != NoVersion {
			one.Version = &version
		}
		f.funnels[version] = one
	}
	return one
}

func (f *Funnel) page(index int64) *FunnelPage {
	p := f.pages[index]
	if p == nil {
		p = &FunnelPage{Index: index, Version: NoVersion, times: times{}}
		f.pages[index] = p
	}
	return p
}

func (f *Funnels) count(t times, time int64) {
	n := t[time]
	t[time] = n + 1
	if n == 0 {
		f.times++
	}
}

// AddEntries adds entries: n with and without progress.
func (f *Funnels) AddEntries(n int) { f.all = &n }

// Add adds the progress of an entry: that of the whole entry, or of a version. It returns ErrTooMany if the answer would take
// too much memory.
func (f *Funnels) Add(entryID []byte, whole bool, r Progress) error {
	counts, names := whole, !whole || !r.Several
	if whole {
		f.wholes++
	}
	if f.byVersion {
		counts = names
	}
	if !counts && !names {
		return nil
	}
	version := int64(NoVersion)
	if r.Version != nil {
		version = *r.Version
	}
	one := f.of(version)
	if counts {
		one.Entries++
		one.Started++
		if r.CompletedAfter != nil {
			one.Completed++
			f.count(one.times, *r.CompletedAfter)
		}
		furthest := one.page(r.Furthest)
		furthest.stopped++
		if !r.Ended {
			furthest.Dropped++
		}
	}
	r.Cells.Each(func(c Cell) {
		p := one.page(c.Page)
		if counts && c.Time >= 0 {
			f.count(p.times, c.Time)
		}
		if names && (version > p.Version || version == p.Version && string(entryID) > p.EntryID) {
			p.Version, p.EntryID = version, string(entryID)
		}
	})
	if f.times > maxTimes {
		return ErrTooMany
	}
	return nil
}

// Answer returns the funnels in the order of their versions. They lack the keys of their pages.
func (f *Funnels) Answer() []*Funnel {
	list := []*Funnel{} // never null
	if f.all != nil {
		f.of(NoVersion).Entries += *f.all - f.wholes
	}
	for _, version := range slices.Sorted(maps.Keys(f.funnels)) {
		one := f.funnels[version]
		if f.byVersion && one.Entries == 0 {
			continue
		}
		one.MedianSeconds = one.times.median()
		reached := one.Started
		one.Pages = []*FunnelPage{}
		for _, index := range slices.Sorted(maps.Keys(one.pages)) {
			p := one.pages[index]
			p.Reached, p.MedianSeconds = reached, p.times.median()
			reached -= p.stopped
			if p.EntryID != "" && len(one.Pages) < MaxPages {
				one.Pages = append(one.Pages, p)
			}
		}
		list = append(list, one)
	}
	return list
}
