// Package report owns the output of the benchmarks: results, the table for people, the file for programs, and the
// comparison with an earlier file.
package report

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
)

// Units of a result. A duration is better when it is short, a size when it is small, a rate when it is
// high.
const (
	Milliseconds = "ms"
	Nanoseconds  = "ns"
	Mebibytes    = "MiB"
	RowsRate     = "rows/s"
	RequestsRate = "req/s"
	BytesRate    = "MB/s" // 10⁶ bytes
	Allocations  = "allocs"
	Microseconds = "µs"
	Bytes        = "B"
	Percent      = "%" // of one core
	Connections  = "connections"
)

// Result is one measured figure.
type Result struct {
	// Name is the row's, with a suffix where a row has several figures.
	Name string `json:"name"`
	// Value is the median over the rounds, in Unit.
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	// Limit is the median of the reference that was measured in the same rounds, nil where there is none.
	Limit *float64 `json:"limit"`
	// Ratio is Value over Limit, nil where there is no limit.
	Ratio *float64 `json:"ratio"`

	// Against names the reference.
	Against string `json:"-"`
	// Floor is the bound that the ratio must meet, or the value if there is no limit.
	Floor Floor `json:"-"`
	// Low and High are the least and the greatest of that figure over the rounds.
	Low, High float64 `json:"-"`
	Rounds    int     `json:"-"`
}

// Floor is a bound that a figure must meet. The zero value is no bound.
type Floor struct {
	Bound  float64
	AtMost bool // else at least
}

// AtLeast returns the bound "bound or more".
func AtLeast(bound float64) Floor { return Floor{Bound: bound} }

// AtMost returns the bound "bound or less".
func AtMost(bound float64) Floor { return Floor{Bound: bound, AtMost: true} }

// String returns the floor as the table shows it.
func (f Floor) String() string {
	switch {
	case f == Floor{}:
		return ""
	case f.AtMost:
		return fmt.Sprintf("≤ %g", f.Bound)
	}
	return fmt.Sprintf("≥ %g", f.Bound)
}

// judged returns the figure that the floor applies to.
func (r Result) judged() float64 {
	if r.Ratio != nil {
		return *r.Ratio
	}
	return r.Value
}

// Met reports whether the floor is met; true if there is none.
func (r Result) Met() bool {
	switch {
	case r.Floor == Floor{}:
		return true
	case r.Floor.AtMost:
		return r.judged() <= r.Floor.Bound
	}
	return r.judged() >= r.Floor.Bound
}

// Values makes a result without a limit from the values of the rounds.
func Values(name, unit string, floor Floor, values []float64) Result {
	return Result{
		Name: name, Value: median(values), Unit: unit, Floor: floor,
		Low: slices.Min(values), High: slices.Max(values), Rounds: len(values),
	}
}

// Ratios makes a result from the values of the rounds and of the reference in the same rounds.
func Ratios(name, unit string, floor Floor, values []float64, against string, limits []float64) Result {
	each := make([]float64, len(values))
	for i := range values {
		each[i] = values[i] / limits[i]
	}
	r := Values(name, unit, floor, values)
	limit := median(limits)
	ratio := r.Value / limit
	r.Limit, r.Ratio, r.Against = &limit, &ratio, against
	r.Low, r.High = slices.Min(each), slices.Max(each)
	return r
}

func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	if n%2 == 1 {
		return s[n/2]
	}
	return (s[n/2-1] + s[n/2]) / 2
}

// Write puts results into a file, as a JSON list.
func Write(path string, results []Result) error {
	b, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}

// Read returns what [Write] put into a file.
func Read(path string) ([]Result, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var results []Result
	if err := json.Unmarshal(b, &results); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return results, nil
}
