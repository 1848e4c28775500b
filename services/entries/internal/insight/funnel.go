package insight

import (
	"errors"
	"maps"
	"math"
	"slices"
)

// ErrTooMany means that the funnels of a question have more different times, pages and versions than maxSize allows.
var ErrTooMany = errors.New("too many different times, pages and versions")

// maxSize limits the memory of a [Funnels], in units of some 30 bytes. Each different time counts 1, and each page or
// version counts 10.
const maxSize = 1_000_000

// NoVersion stands for page views without a version. Ingest refuses an event whose version has this number.
const NoVersion = math.MinInt64

// Funnel says how far entries came in an embeddable: all entries, or the entries of one version. Version is nil for all
// entries, and for page views without a version. MedianSeconds is the median time until the last page, or nil if no
// entry came there.
type Funnel struct {
	Version       *int64        `json:"version_number"`
	Entries       int           `json:"entries"`
	Started       int           `json:"started"`
	Completed     int           `json:"completed"`
	MedianSeconds *float64      `json:"median_seconds"`
	Pages         []*FunnelPage `json:"pages"`

	pages map[int64]*FunnelPage
	times histogram
}

// FunnelPage is a page of a funnel. Reached counts the entries that came to the page or to a later page. Dropped counts
// the entries that came no further, unless the page is the last. MedianSeconds is the median time on the page, or nil
// if no time is known.
type FunnelPage struct {
	Index         int64    `json:"page_index"`
	Key           string   `json:"page_key"`
	Reached       int      `json:"reached"`
	Dropped       int      `json:"dropped"`
	MedianSeconds *float64 `json:"median_seconds"`

	// EntryID and Version name the page views from which the caller reads Key.
	EntryID string `json:"-"`
	Version int64  `json:"-"`

	stopped int // how many entries came no further than this page
	times   histogram
}

// histogram counts entries by a duration in tenths of a second: on a page, or until the last page.
type histogram map[int64]int

// median returns the median in seconds, or nil if the histogram is empty.
func (t histogram) median() *float64 {
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

// Funnels computes funnels from the progress of entries. The caller calls Add for each row of progress, and Answer
// last.
type Funnels struct {
	byVersion bool
	funnels   map[int64]*Funnel
	size      int // see maxSize

	all    *int // how many entries there are; nil if SetEntries was not called
	wholes int  // entries with progress
}

// NewFunnels returns a Funnels without entries. If byVersion is true, the Funnels computes a funnel for each version,
// and otherwise one funnel of all entries.
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
		one = &Funnel{pages: map[int64]*FunnelPage{}, times: histogram{}}
		if version != NoVersion {
			one.Version = &version
		}
		f.funnels[version] = one
		f.size += 10
	}
	return one
}

func (f *Funnels) page(of *Funnel, index int64) *FunnelPage {
	p := of.pages[index]
	if p == nil {
		p = &FunnelPage{Index: index, Version: NoVersion, times: histogram{}}
		of.pages[index] = p
		f.size += 10
	}
	return p
}

func (f *Funnels) count(t histogram, time int64) {
	n := t[time]
	t[time] = n + 1
	if n == 0 {
		f.size++
	}
}

// SetEntries sets how many entries there are, with and without progress. If the caller does not call SetEntries, only
// entries with progress count.
func (f *Funnels) SetEntries(n int) { f.all = &n }

// Add adds one row of the progress of an entry. whole says whether the row covers the whole entry, or only one of
// several versions. Add returns ErrTooMany if the answer would take too much memory.
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
		furthest := f.page(one, r.Furthest)
		furthest.stopped++
		if !r.Ended {
			furthest.Dropped++
		}
	}
	r.Cells.Each(func(c Cell) {
		p := f.page(one, c.Page)
		if counts && c.Time >= 0 {
			f.count(p.times, c.Time)
		}
		if names && (version > p.Version || version == p.Version && string(entryID) > p.EntryID) {
			p.Version, p.EntryID = version, string(entryID)
		}
	})
	if f.size > maxSize {
		return ErrTooMany
	}
	return nil
}

// Answer returns the funnels in the order of their versions, each with at most MaxPages pages. The pages lack their
// keys. Answer releases the memory of the times, so the caller calls Answer last.
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
			p.times = nil
			if p.EntryID != "" && len(one.Pages) < MaxPages {
				one.Pages = append(one.Pages, p)
			}
		}
		one.pages, one.times = nil, nil
		list = append(list, one)
	}
	return list
}
