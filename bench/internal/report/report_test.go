package report_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lectern-dev/lectern/bench/internal/report"
)

func TestRatios(t *testing.T) {
	r := report.Ratios("list", report.RequestsRate, report.AtLeast(0.5), []float64{50, 10, 60}, "pgbench", []float64{100, 100, 80})
	if r.Value != 50 || *r.Limit != 100 || *r.Ratio != 0.5 || r.Low != 0.1 || r.High != 0.75 || r.Rounds != 3 {
		t.Errorf("%+v, limit %v, ratio %v", r, *r.Limit, *r.Ratio)
	}
	if even := report.Values("v", report.Milliseconds, report.Floor{}, []float64{4, 1, 2, 3}); even.Value != 2.5 {
		t.Errorf("the median of four is %v", even.Value)
	}
}

func TestMet(t *testing.T) {
	for _, tc := range []struct {
		name string
		in   report.Result
		want bool
	}{
		{"nothing asked", report.Values("v", "ms", report.Floor{}, []float64{9}), true},
		{"value at its bound", report.Values("v", "ms", report.AtMost(9), []float64{9}), true},
		{"value over its bound", report.Values("v", "ms", report.AtMost(9), []float64{9.1}), false},
		{"nothing of what may be nothing", report.Values("v", "allocs", report.AtMost(0), []float64{0}), true},
		{"something of what may be nothing", report.Values("v", "allocs", report.AtMost(0), []float64{1}), false},
		{"ratio reached", report.Ratios("v", "req/s", report.AtLeast(0.2), []float64{2}, "", []float64{10}), true},
		{"ratio missed", report.Ratios("v", "req/s", report.AtLeast(0.2), []float64{1.9}, "", []float64{10}), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.in.Met(); got != tc.want {
				t.Errorf("Met() = %v", got)
			}
		})
	}
}

func TestWriteAndRead(t *testing.T) {
	want := []report.Result{
		report.Ratios("list", report.RequestsRate, report.AtLeast(0.5), []float64{50}, "pgbench", []float64{100}),
		report.Values("memory", report.Mebibytes, report.Floor{}, []float64{27.5}),
	}
	file := filepath.Join(t.TempDir(), "results.json")
	if err := report.Write(file, want); err != nil {
		t.Fatal(err)
	}
	got, err := report.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	only := cmpopts.IgnoreFields(report.Result{}, "Against", "Floor", "Low", "High", "Rounds")
	if diff := cmp.Diff(want, got, only); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

func TestTableAndCompare(t *testing.T) {
	before := []report.Result{
		report.Ratios("list", report.RequestsRate, report.AtLeast(0.5), []float64{50}, "pgbench", []float64{100}),
		report.Values("memory", report.Mebibytes, report.Floor{}, []float64{20}),
	}
	after := []report.Result{
		report.Ratios("list", report.RequestsRate, report.AtLeast(0.5), []float64{80}, "pgbench", []float64{200}),
		report.Values("memory", report.Mebibytes, report.Floor{}, []float64{25}),
		report.Values("start", report.Milliseconds, report.AtMost(300), []float64{21.5}),
	}
	var table, compared strings.Builder
	if err := report.Table(&table, after); err != nil {
		t.Fatal(err)
	}
	if err := report.Compare(&compared, before, after); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, in string
		want     []string
	}{
		{"a ratio below its floor", line(table.String(), "list"), []string{"80.0", "200", "pgbench", "0.400", "≥ 0.5", "missed"}},
		{"a value", line(table.String(), "start"), []string{"21.5", "ms", "≤ 300"}},
		{"the ratio is what is compared", line(compared.String(), "list"), []string{"50.0", "80.0", "0.500", "0.400", "-20.0 %"}},
		{"values where there is no ratio", line(compared.String(), "memory"), []string{"+25.0 %"}},
		{"a new row", line(compared.String(), "start"), []string{"new"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, want := range tc.want {
				if !strings.Contains(tc.in, want) {
					t.Errorf("no %q in %q", want, tc.in)
				}
			}
		})
	}
}

// line returns the line that begins with name.
func line(text, name string) string {
	for l := range strings.Lines(text) {
		if strings.HasPrefix(l, name+" ") {
			return l
		}
	}
	return ""
}
