package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"text/tabwriter"
)

// Table writes results for people. Its column spread has the least and the greatest over the rounds, of the ratio, or
// of the value if there is no limit.
func Table(w io.Writer, results []Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "name\tvalue\tunit\tlimit\tagainst\tratio\tspread\tfloor\t")
	for _, r := range results {
		limit, ratio := "–", "–"
		if r.Limit != nil {
			limit, ratio = figure(*r.Limit), fmt.Sprintf("%.3f", *r.Ratio)
		}
		verdict := ""
		if !r.Met() {
			verdict = "missed"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s – %s\t%s\t%s\n",
			r.Name, figure(r.Value), r.Unit, limit, r.Against, ratio, figure(r.Low), figure(r.High), r.Floor, verdict)
	}
	return t.Flush()
}

// Compare writes the figures of two runs side by side, with the change. It compares ratios where both runs have one,
// because ratios hold across machines. Otherwise it compares values.
func Compare(w io.Writer, before, after []Result) error {
	byName := make(map[string]Result, len(before))
	for _, r := range before {
		byName[r.Name] = r
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "name\tunit\told\tnew\told ratio\tnew ratio\tchange\t")
	for _, n := range after {
		o, ok := byName[n.Name]
		if !ok {
			fmt.Fprintf(t, "%s\t%s\t–\t%s\t–\t%s\tnew\t\n", n.Name, n.Unit, figure(n.Value), optional(n.Ratio))
			continue
		}
		was, is := o.Value, n.Value
		if o.Ratio != nil && n.Ratio != nil {
			was, is = *o.Ratio, *n.Ratio
		}
		change := "–"
		if was != 0 {
			change = fmt.Sprintf("%+.1f %%", 100*(is-was)/was)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n",
			n.Name, n.Unit, figure(o.Value), figure(n.Value), optional(o.Ratio), optional(n.Ratio), change)
	}
	return t.Flush()
}

func optional(ratio *float64) string {
	if ratio == nil {
		return "–"
	}
	return fmt.Sprintf("%.3f", *ratio)
}

// figure returns three or four significant digits.
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
