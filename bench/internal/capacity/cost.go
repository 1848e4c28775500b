// Package capacity owns the capacity model: the measured costs of operations, and the processors, memory, disk and
// connections that a demand needs. It predicts and sizes; it measures nothing.
//
// The model is small on purpose. A read costs each program a part of its own and a part for each row, and Postgres
// one for each look-up within a statement. These parts come from four measured operations, and everything else is
// predicted from them. How far the predictions are off is part of the model: see [Model.Compare].
package capacity

import (
	"fmt"
)

// Measured holds the measured costs of one operation, from the rows cost_… of the benchmarks.
type Measured struct {
	// Service, Postgres and Redis are processor time in µs, of a request, or of a record of an ingest.
	Service, Postgres, Redis float64
	// Bytes is the size of the answer, or of an ingested record.
	Bytes float64
}

// Shape describes the reads and the answer of an operation.
type Shape struct {
	// Statements is how many statements Postgres runs for it.
	Statements float64
	// Point reports whether the statement finds one row by its key, instead of a list.
	Point bool
	// Rows is how many rows it reads, including the one that shows whether there are more.
	Rows float64
	// Lookups is how many look-ups in a further table it makes, one for each record of a list.
	Lookups float64
	// Index is how many further index rows it passes on the way to the end of a long page.
	Index float64
	// Bytes is the size of the answer.
	Bytes float64
}

// Model holds the costs of a read, in µs of one processor of the measured machine.
type Model struct {
	// Request, ServiceRow and KB are the service's time for a request, for each row, and for each 1,000 bytes of its
	// answer.
	Request, ServiceRow, KB float64
	// Point and Statement are Postgres' time to find one row by its key, and to begin a list. Row is its time for each row
	// of a list, and Lookup for each lookup within a statement.
	Point, Statement, Row, Lookup float64
	// IndexRow is Postgres' time for each row of an index that it passes over.
	IndexRow float64
	// RedisRequest is Redis' time for a request.
	RedisRequest float64
	// Ingest is the measured cost of ingesting an entry.
	Ingest Measured
	// Entry and Event are bytes on disk of a record with its part of the indexes.
	Entry, Event float64
}

// Names of the operations that the model is made from. All others are predicted.
const (
	onePoint  = "get_one"
	shortList = "list_10"
	longList  = "list_400"
	nested    = "page_views_100"
)

// indexRow is µs for a row of an index-only scan: 13 ms for 100,000 rows, from the first byte of an export.
const indexRow = 0.13

// New makes the model from measurements: of four reads, the ingest, and the sizes of records.
func New(p Points) (Model, error) {
	shapes := Shapes(p)
	for _, name := range []string{onePoint, shortList, longList, nested, "ingest"} {
		if m := p.Operations[name]; m.Service <= 0 || m.Postgres <= 0 || m.Bytes <= 0 {
			return Model{}, fmt.Errorf("capacity: %s was not measured", name)
		}
	}
	one, list, views := p.Operations[onePoint], p.Operations[longList], p.Operations[nested]
	a, b, c := shapes[onePoint], shapes[longList], shapes[nested]
	m := Model{
		IndexRow: indexRow, Point: one.Postgres, RedisRequest: one.Redis,
		Ingest: p.Operations["ingest"], Entry: p.Sizes["entries"], Event: p.Sizes["events"],
	}
	// Three equations for the service: request + row·rows + kb·bytes.
	m.KB, m.ServiceRow = solve(
		(b.Bytes-a.Bytes)/1000, b.Rows-a.Rows, list.Service-one.Service,
		(c.Bytes-a.Bytes)/1000, c.Rows-a.Rows, views.Service-one.Service)
	if m.KB < 0 { // what bytes cost drowns in what rows cost
		m.KB, m.ServiceRow = 0, (list.Service-one.Service)/(b.Rows-a.Rows)
	}
	m.Request = one.Service - m.ServiceRow*a.Rows - m.KB*a.Bytes/1000
	short := p.Operations[shortList]
	m.Row = (list.Postgres - short.Postgres) / (b.Rows - shapes[shortList].Rows)
	m.Statement = short.Postgres - m.Row*shapes[shortList].Rows
	m.Lookup = (views.Postgres - m.Statement - m.Row*c.Rows) / c.Lookups
	return m, nil
}

// solve returns x and y of a·x + b·y = c and d·x + e·y = f.
func solve(a, b, c, d, e, f float64) (x, y float64) {
	det := a*e - b*d
	return (c*e - b*f) / det, (a*f - c*d) / det
}

// Cost returns the processor time that an operation of that shape takes of each program, in µs.
func (m Model) Cost(s Shape) Measured {
	cost := Measured{
		Service:  m.Request + m.ServiceRow*s.Rows + m.KB*s.Bytes/1000,
		Postgres: m.Statement*s.Statements + m.Row*s.Rows + m.Lookup*s.Lookups + m.IndexRow*s.Index,
		Redis:    m.RedisRequest,
		Bytes:    s.Bytes,
	}
	if s.Point {
		cost.Postgres = m.Point * s.Statements
	}
	return cost
}

// Chunks of a long list: the first, the largest, and the bytes that one aims at.
const (
	firstChunk = 500
	mostRows   = 5000
	goalBytes  = 1 << 20
)

// ListShape returns the shape of a list of records with bytes in all.
func ListShape(records, bytes float64) Shape {
	if records < firstChunk {
		return Shape{Statements: 1, Rows: records + 1, Bytes: bytes}
	}
	each := bytes / records
	s := Shape{Statements: 2, Rows: firstChunk, Index: records - firstChunk, Bytes: bytes}
	for limit, left := 2.0*firstChunk, records-firstChunk; left > 0; limit *= 2 {
		limit = min(limit, mostRows, goalBytes/each)
		s.Statements++
		s.Rows += min(limit, left)
		left -= limit
	}
	return s
}
