// Package report holds the results of the benchmarks and writes them as tables.
package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Units of a result. A duration is better when it is short, a size when it is small, a rate when it is high.
const (
	Milliseconds = "ms"
	Mebibytes    = "MiB"
	RowsRate     = "rows/s"
	RequestsRate = "req/s"
	BytesRate    = "MB/s" // 10⁶ bytes
	Percent      = "%"    // of one core
	Connections  = "connections"
)

// Figures are the measurements of one server or reference: one value for each round.
type Figures struct {
	Values []float64 // in the result's unit
	CPU    []float64 // processor time of an operation in ns; nil if it was not measured
}

// Result is a line of the tables: a measured figure of the working tree, with the figures and the bound to compare it
// with.
type Result struct {
	// Name is the row's, with a suffix where a row has several figures.
	Name, Unit string
	// Floor is the bound for the ratio of New to Limit, or for the value of New if Limit is nil.
	Floor Floor
	// New is measured on the working tree, and Old on the other version of the source. Limit is measured on the
	// reference that Against names. Old and Limit are nil if they were not measured.
	New        Figures
	Old, Limit *Figures
	Against    string
}

// Floor is a bound that a figure must meet. The zero value is no bound.
type Floor struct {
	Bound  float64
	AtMost bool // the figure must be at most Bound; otherwise at least Bound
}

// AtLeast returns a floor for a figure that must be bound or more, such as a rate.
func AtLeast(bound float64) Floor { return Floor{Bound: bound} }

// AtMost returns a floor for a figure that must be bound or less, such as a time or a size.
func AtMost(bound float64) Floor { return Floor{Bound: bound, AtMost: true} }

// String returns the bound for the table, such as "≥ 0.7", and adds "missed" if figure does not meet the bound. The
// zero Floor returns "".
func (f Floor) String(figure float64) string {
	switch {
	case f == Floor{}:
		return ""
	case f.AtMost && figure > f.Bound:
		return fmt.Sprintf("≤ %g missed", f.Bound)
	case f.AtMost:
		return fmt.Sprintf("≤ %g", f.Bound)
	case figure < f.Bound:
		return fmt.Sprintf("≥ %g missed", f.Bound)
	}
	return fmt.Sprintf("≥ %g", f.Bound)
}

func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

// ratios returns a[i]/b[i] for each round that both a and b have.
func ratios(a, b []float64) []float64 {
	each := make([]float64, min(len(a), len(b)))
	for i := range each {
		each[i] = a[i] / b[i]
	}
	return each
}

// Table writes one line for each result, with its limit. The values are medians over the rounds. The column spread has
// the least and the greatest ratio to the limit, or value if there is no limit.
func Table(w io.Writer, results []Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "name\tvalue\tunit\tlimit\tagainst\tratio\tspread\tasked for\tµs cpu\tlimit's µs")
	for _, r := range results {
		value := median(r.New.Values)
		limit, ratio, judged, spread, limitCPU := "–", "–", value, r.New.Values, "–"
		if r.Limit != nil {
			judged, spread = value/median(r.Limit.Values), ratios(r.New.Values, r.Limit.Values)
			limit, ratio, limitCPU = figure(median(r.Limit.Values)), figure(judged), micros(r.Limit.CPU)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			r.Name, figure(value), r.Unit, limit, cmp.Or(r.Against, "–"), ratio, extent(spread), r.Floor.String(judged), micros(r.New.CPU), limitCPU)
	}
	return t.Flush()
}

// Compare writes the old and the new value of each result that has Old, and their ratio round by round. A ratio above
// 1 means that the working tree takes more time, memory or processor time.
func Compare(w io.Writer, results []Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "name\tunit\told\tnew\ttime\tspread\told µs cpu\tnew µs cpu\tcpu\tspread")
	for _, r := range results {
		if r.Old == nil {
			continue
		}
		times := ratios(r.New.Values, r.Old.Values)
		if strings.HasSuffix(r.Unit, "/s") {
			times = ratios(r.Old.Values, r.New.Values)
		}
		cpu, spread := "–", "–"
		if len(r.New.CPU) > 0 {
			each := ratios(r.New.CPU, r.Old.CPU)
			cpu, spread = figure(median(each)), extent(each)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, r.Unit, figure(median(r.Old.Values)), figure(median(r.New.Values)),
			figure(median(times)), extent(times), micros(r.Old.CPU), micros(r.New.CPU), cpu, spread)
	}
	return t.Flush()
}

func micros(ns []float64) string {
	if len(ns) == 0 {
		return "–"
	}
	return figure(median(ns) / 1000)
}

func extent(values []float64) string {
	return figure(slices.Min(values)) + " – " + figure(slices.Max(values))
}

// figure formats v for a table: without decimals from 100, with one from 10, otherwise with three.
func figure(v float64) string {
	switch a := math.Abs(v); {
	case v == 0:
		return "0"
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}
