package telemetry_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	instrument = regexp.MustCompile(`(?:(?:Counter|Gauge|Histogram)\(|Total, )"(lectern\.[a-z_.]+)"`)
	documented = regexp.MustCompile("`(lectern_[a-z_]+)")
)

// TestMetricsAreDocumented checks that the pages name each metric of the code, and no others.
func TestMetricsAreDocumented(t *testing.T) {
	code := []string{"lectern_build_info"} // package telemetry writes it without an instrument
	for _, folder := range []string{"shared", "services", "proxy", "k8s", "cli"} {
		err := filepath.WalkDir(filepath.Join("../..", folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range instrument.FindAllSubmatch(text, -1) {
				code = append(code, strings.ReplaceAll(string(m[1]), ".", "_"))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var pages []string
	for _, path := range []string{"../../docs/reference/metrics.md", "../../docs/how-to/sync.md"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range documented.FindAllSubmatch(text, -1) {
			name := string(m[1])
			for _, suffix := range []string{"_total", "_bytes", "_seconds"} { // the exporter adds them
				name = strings.TrimSuffix(name, suffix)
			}
			pages = append(pages, name)
		}
	}
	slices.Sort(code)
	slices.Sort(pages)
	if diff := cmp.Diff(slices.Compact(code), slices.Compact(pages)); diff != "" {
		t.Errorf("the metrics of the pages (-code +pages):\n%s", diff)
	}
}
