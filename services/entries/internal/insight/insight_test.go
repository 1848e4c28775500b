package insight

import (
	"errors"
	"math"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// views returns page views in their order, one a second, without a version.
func views(of int64, pages ...int64) []View {
	list := make([]View, len(pages))
	for i, page := range pages {
		list[i] = View{Page: page, TotalPages: &of, At: int64(i) * 1e6}
	}
	return list
}

// versioned gives views a version.
func versioned(version int64, list []View) []View {
	for i := range list {
		list[i].Version = &version
	}
	return list
}

// progressOf adds the views of an entry one by one.
func progressOf(list ...View) (parts []Progress) {
	for _, v := range list {
		parts = Add(parts, v)
	}
	return parts
}

func TestProgress(t *testing.T) {
	second := func(n int64) *int64 { n *= 10; return &n }
	two, later := int64(2), int64(math.MaxInt64)
	for _, tt := range []struct {
		name      string
		views     []View
		furthest  int64
		ended     bool
		completed *int64
		cells     []Cell
	}{
		{"one page", views(3, 0), 0, false, nil, []Cell{{0, -1}}},
		{"to the end", views(3, 0, 1, 2), 2, true, second(2), []Cell{{0, 10}, {1, 10}, {2, -1}}},
		{"a page twice counts its first time", views(9, 1, 0, 1, 2), 2, false, nil, []Cell{{0, 10}, {1, 10}, {2, -1}}},
		{"a page seen again at once waits on", views(9, 0, 0, 1), 1, false, nil, []Cell{{0, 20}, {1, -1}}},
		{"back from the end", views(2, 0, 1, 0), 1, true, second(1), []Cell{{0, 10}, {1, 10}}},
		{"further than the end", append(views(2, 0, 1), View{Page: 2, TotalPages: &two, At: 2e6}), 2, false, second(1), []Cell{{0, 10}, {1, 10}, {2, -1}}},
		{"far apart", views(9, -7, math.MaxInt64), math.MaxInt64, false, nil, []Cell{{-7, 10}, {math.MaxInt64, -1}}},
		{"no page after the greatest", []View{{Page: math.MaxInt64, TotalPages: &later}}, math.MaxInt64, false, nil, []Cell{{math.MaxInt64, -1}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			parts := progressOf(tt.views...)
			got := parts[0]
			if len(parts) != 1 || got.Furthest != tt.furthest || got.Ended != tt.ended || !cmp.Equal(got.CompletedAfter, tt.completed) {
				t.Errorf("%d parts, %+v", len(parts), got)
			}
			if diff := cmp.Diff(tt.cells, got.Cells.list()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestProgressOfVersions checks that an entry with views of several versions has a part for all views and one for each version.
func TestProgressOfVersions(t *testing.T) {
	one, two := int64(1), int64(2)
	parts := progressOf(append(append(versioned(one, views(3, 0)), views(3, 1)...), versioned(two, views(3, 2))...)...)
	if len(parts) != 4 || parts[0].Version != nil || *parts[1].Version != one || parts[2].Version != nil || *parts[3].Version != two {
		t.Fatalf("%+v", parts)
	}
	for i, furthest := range []int64{2, 0, 1, 2} {
		if !parts[i].Several || parts[i].Furthest != furthest {
			t.Errorf("part %d: %+v", i, parts[i])
		}
	}
}

// TestProgressIsBounded checks that an entry keeps at most MaxPages pages, the first ones.
func TestProgressIsBounded(t *testing.T) {
	pages := make([]int64, MaxPages+50)
	for i := range pages {
		pages[i] = int64(len(pages) - i) // from the last to the first
	}
	p := progressOf(views(1, pages...)...)[0]
	cells := p.Cells.list()
	if len(cells) != MaxPages || cells[0].Page != 1 || p.Furthest != int64(len(pages)) {
		t.Errorf("%d pages from %d on, furthest %d", len(cells), cells[0].Page, p.Furthest)
	}
}

// answer adds the progress of entries, named a, b and so on, to a funnel.
func answer(t *testing.T, byVersion bool, entries int, of ...[]Progress) []*Funnel {
	t.Helper()
	f := NewFunnels(byVersion)
	f.SetEntries(entries)
	for i, parts := range of {
		for n, p := range parts {
			if err := f.Add([]byte{'a' + byte(i)}, n == 0, p); err != nil {
				t.Fatal(err)
			}
		}
	}
	return f.Answer()
}

func TestFunnels(t *testing.T) {
	one, two := int64(1), int64(2)
	half, second, both := 0.5, 1.0, 2.0
	quick := versioned(one, []View{{Page: 0}, {Page: 1, At: 5e5}})
	slow := versioned(two, views(3, 0, 1, 2))
	moved := append(versioned(one, views(3, 0)), versioned(two, []View{{Page: 1, At: 1e6}})...)
	page := func(index int64, reached, dropped int, median *float64, entry string, version int64) *FunnelPage {
		return &FunnelPage{Index: index, Reached: reached, Dropped: dropped, MedianSeconds: median, EntryID: entry, Version: version}
	}
	threeQuarters := (half + second) / 2
	for _, tt := range []struct {
		name      string
		byVersion bool
		entries   int
		of        [][]Progress
		want      []*Funnel
	}{
		{"nothing", false, 0, nil, []*Funnel{{Pages: []*FunnelPage{}}}},
		{"nothing by version", true, 0, nil, []*Funnel{}},
		{"all", false, 5, [][]Progress{progressOf(quick...), progressOf(slow...)}, []*Funnel{{
			Entries: 5, Started: 2, Completed: 1, MedianSeconds: &both, Pages: []*FunnelPage{
				page(0, 2, 0, &threeQuarters, "b", 2), page(1, 2, 1, &second, "b", 2), page(2, 1, 0, nil, "b", 2),
			},
		}}},
		{"by version", true, 3, [][]Progress{progressOf(quick...), progressOf(moved...)}, []*Funnel{
			{Entries: 1, Pages: []*FunnelPage{}},
			{Version: &one, Entries: 2, Started: 2, Pages: []*FunnelPage{page(0, 2, 1, &half, "b", 1), page(1, 1, 1, nil, "a", 1)}},
			{Version: &two, Entries: 1, Started: 1, Pages: []*FunnelPage{page(1, 1, 1, nil, "b", 2)}},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := answer(t, tt.byVersion, tt.entries, tt.of...)
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreUnexported(Funnel{}, FunnelPage{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFunnelsAreBounded(t *testing.T) {
	f := NewFunnels(false)
	f.size = maxSize - 100
	added, err := int64(0), error(nil)
	for ; err == nil && added < 200; added++ {
		err = f.Add([]byte("a"), true, progressOf(View{Page: 0}, View{Page: 1, At: added * tenth})[0])
	}
	if !errors.Is(err, ErrTooMany) || added < 50 {
		t.Errorf("after %d different times: %v", added, err)
	}
}

func TestWhiteSpace(t *testing.T) {
	var all strings.Builder
	for r := range rune(unicode.MaxRune) {
		if unicode.Is(unicode.White_Space, r) {
			all.WriteRune(r)
		}
	}
	if diff := cmp.Diff(all.String(), WhiteSpace); diff != "" {
		t.Error(diff)
	}
}
