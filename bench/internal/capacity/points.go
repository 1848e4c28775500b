package capacity

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Points holds the measured values.
type Points struct {
	// Operations by name: get_one, list_10, …, export, and ingest, which is of one record.
	Operations map[string]Measured
	// Sizes are bytes on disk of a record with its part of the indexes, by table.
	Sizes map[string]float64
}

// Read takes the cost_… and size_… rows of a results.json.
func Read(results []byte) (Points, error) {
	var rows []struct {
		Name  string
		Value float64
	}
	p := Points{Operations: map[string]Measured{}, Sizes: map[string]float64{}}
	if err := json.Unmarshal(results, &rows); err != nil {
		return p, fmt.Errorf("capacity: read results: %w", err)
	}
	for _, r := range rows {
		if table, ok := strings.CutPrefix(r.Name, "size_"); ok {
			p.Sizes[table] = r.Value
		}
		rest, ok := strings.CutPrefix(r.Name, "cost_")
		i := strings.LastIndexByte(rest, '_')
		if !ok || i < 0 {
			continue
		}
		m := p.Operations[rest[:i]]
		switch rest[i+1:] {
		case "service":
			m.Service = r.Value
		case "postgres":
			m.Postgres = r.Value
		case "redis":
			m.Redis = r.Value
		case "bytes":
			m.Bytes = r.Value
		}
		p.Operations[rest[:i]] = m
	}
	if len(p.Operations) == 0 {
		return p, fmt.Errorf("capacity: the results have no row cost_…: run the benchmark costs")
	}
	return p, nil
}

// The data that the operations were measured on.
const (
	eventsOf   = 5 // of an entry
	viewsOf    = 4 // of these
	exportRows = 100_000
)

// Shapes returns the shapes of the measured operations, with the bytes of their answers.
func Shapes(p Points) map[string]Shape {
	shapes := map[string]Shape{}
	for name, m := range p.Operations {
		switch name {
		case "get_one":
			shapes[name] = Shape{Statements: 1, Point: true, Rows: 1, Bytes: m.Bytes}
		case "entry_events":
			shapes[name] = Shape{Statements: 1, Rows: eventsOf, Bytes: m.Bytes}
		case "page_views_10":
			shapes[name] = Shape{Statements: 1, Rows: 10 * viewsOf, Lookups: 10, Bytes: m.Bytes}
		case "page_views_100":
			shapes[name] = Shape{Statements: 1, Rows: 100 * viewsOf, Lookups: 100, Bytes: m.Bytes}
		case "export":
			shapes[name] = ListShape(exportRows, m.Bytes)
		case "ingest":
		default:
			var n float64
			if _, err := fmt.Sscanf(name, "list_%f", &n); err == nil {
				shapes[name] = ListShape(n, m.Bytes)
			}
		}
	}
	return shapes
}

// Prediction is a predicted and a measured value.
type Prediction struct {
	Operation, Program  string
	Predicted, Measured float64 // µs of a processor
	Fitted              bool    // the model was made from it
}

// Error returns how far the prediction is off, relative to the measured value.
func (p Prediction) Error() float64 { return p.Predicted/p.Measured - 1 }

// Compare predicts every measured read, sorted by operation.
func (m Model) Compare(p Points) []Prediction {
	var all []Prediction
	for name, shape := range Shapes(p) {
		predicted, measured := m.Cost(shape), p.Operations[name]
		all = append(all,
			Prediction{name, "service", predicted.Service, measured.Service, name == onePoint || name == longList || name == nested},
			Prediction{name, "postgres", predicted.Postgres, measured.Postgres,
				name == onePoint || name == shortList || name == longList || name == nested})
	}
	slices.SortFunc(all, func(a, b Prediction) int {
		return cmp.Or(strings.Compare(a.Operation, b.Operation), strings.Compare(b.Program, a.Program))
	})
	return all
}
