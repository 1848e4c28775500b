package insight

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

// View is a page view. Version and TotalPages are nil if the event does not have them. At is in Unix microseconds.
type View struct {
	Version    *int64
	Page       int64
	TotalPages *int64
	At         int64
}

// last reports whether v is a view of the last page, by the number of pages in v.
func (v View) last() bool {
	return v.TotalPages != nil && v.Page != math.MaxInt64 && *v.TotalPages == v.Page+1
}

// Progress is how far an entry came in all its page views, or in those of one version.
type Progress struct {
	Version *int64 // of the views; nil if they have none or several
	Several bool   // the entry has views of several versions

	Furthest       int64  // the greatest page
	Ended          bool   // Furthest is the last page
	CompletedAfter *int64 // from the first view to the first view of the last page, in tenths of a second; nil: no such view
	Cells          Cells  // the pages

	// First and Latest are the times of the first and the latest view, in Unix microseconds. Waits is the time of the
	// first view of the page whose time is not known yet, or nil. [Add] needs these fields to add a later view.
	First, Latest int64
	Waits         *int64
}

// Cell is a page, and the time from its first view to the next view of another page, in tenths of a second. Time is
// -1 if there is no such view.
type Cell struct{ Page, Time int64 }

// Cells holds encoded [Cell] values in the order of their pages, at most [MaxPages]. The encoding of a cell is a varint
// of the distance to the page before, and a varint of the time plus 1 (package encoding/binary). The store must read
// Cells in the binary form of bytea, not in the text form.
type Cells []byte

// Each decodes c and calls do for each cell, in the order of the pages.
func (c Cells) Each(do func(Cell)) {
	page := int64(0)
	for len(c) > 0 {
		distance, n := binary.Varint(c)
		time, m := binary.Uvarint(c[n:])
		page += distance
		do(Cell{page, int64(time) - 1})
		c = c[n+m:]
	}
}

func (c Cells) list() (list []Cell) {
	c.Each(func(cell Cell) { list = append(list, cell) })
	return list
}

func cellsOf(list []Cell) (c Cells) {
	page := int64(0)
	for _, cell := range list[:min(len(list), MaxPages)] { // no funnel shows more
		c = binary.AppendVarint(c, cell.Page-page)
		c = binary.AppendUvarint(c, uint64(cell.Time+1))
		page = cell.Page
	}
	return c
}

// tenth is a tenth of a second in microseconds.
const tenth = 100_000

// Add adds a page view to the progress of its entry and returns the result. parts is empty before the first view, and
// Add may change its elements. The view must not be earlier than the views before. The first element of the result
// covers all views. If the views are of several versions, an element for each version follows.
func Add(parts []Progress, v View) []Progress {
	same := func(p Progress) bool {
		return p.Version == v.Version || p.Version != nil && v.Version != nil && *p.Version == *v.Version
	}
	if len(parts) == 0 {
		return []Progress{begin(v)}
	}
	if len(parts) == 1 && !same(parts[0]) {
		parts = append(parts, parts[0])
		parts[0].Version, parts[0].Several, parts[1].Several = nil, true, true
	}
	parts[0].add(v)
	if !parts[0].Several {
		return parts
	}
	if i := slices.IndexFunc(parts[1:], same); i >= 0 {
		parts[1+i].add(v)
		return parts
	}
	p := begin(v)
	p.Several = true
	return append(parts, p)
}

func begin(v View) Progress {
	p := Progress{Version: v.Version, Furthest: v.Page, First: v.At}
	p.add(v)
	return p
}

func (p *Progress) add(v View) {
	p.Latest = v.At
	if v.Page > p.Furthest {
		p.Furthest, p.Ended = v.Page, false
	}
	if v.last() {
		p.Ended = p.Ended || v.Page == p.Furthest
		if p.CompletedAfter == nil {
			after := (v.At - p.First) / tenth
			p.CompletedAfter = &after
		}
	}
	cells := p.Cells.list()
	if p.Waits != nil {
		i := slices.IndexFunc(cells, func(c Cell) bool { return c.Time < 0 })
		if cells[i].Page == v.Page {
			return
		}
		cells[i].Time, p.Waits = (v.At-*p.Waits)/tenth, nil
	}
	i, seen := slices.BinarySearchFunc(cells, v.Page, func(c Cell, page int64) int { return cmp.Compare(c.Page, page) })
	if !seen && i < MaxPages {
		cells, p.Waits = slices.Insert(cells, i, Cell{v.Page, -1}), &v.At
	}
	p.Cells = cellsOf(cells)
}
