package row_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/bench/internal/report"
	"github.com/lectern-dev/lectern/bench/internal/row"
)

// Rows are selected by name. The names of a cluster's rows differ from the others.
func TestNames(t *testing.T) {
	for _, tc := range []struct {
		name string
		in   row.Options
		want []string
		all  bool // begin with citus_
	}{
		{"one machine", row.Options{}, []string{"list_10", "grow_10x", "export", "ingest"}, false},
		{"a cluster", row.Options{Citus: "kit"}, []string{"citus_list_10", "citus_page_views_10", "citus_export", "citus_ingest", "citus_workers_3", "citus_projects_1000x"}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			names := row.New(nil, tc.in).Names()
			for _, want := range tc.want {
				if !slices.Contains(names, want) {
					t.Errorf("no %s in %v", want, names)
				}
			}
			seen := map[string]bool{}
			for _, name := range names {
				if seen[name] {
					t.Errorf("%s is there twice", name)
				}
				seen[name] = true
				if strings.HasPrefix(name, "citus_") != tc.all {
					t.Errorf("%s among %v", name, names)
				}
			}
		})
	}
}

func TestRunRefusesUnknownNames(t *testing.T) {
	err := row.New(nil, row.Options{}).Run(context.Background(), []string{"citus_list_10"}, func([]report.Result) {
		t.Error("something was measured")
	})
	if err == nil || !strings.Contains(err.Error(), "citus_list_10") {
		t.Errorf("got %v", err)
	}
}
