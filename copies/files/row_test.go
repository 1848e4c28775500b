package files

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/parquet-go/parquet-go"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies/fields"
)

// TestRowsHaveAllFields checks that a file has a column for each field of the API, and the number of the change.
func TestRowsHaveAllFields(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		row  any
		want []string
	}{
		{entryRow{}, fields.Names[client.Entry]()},
		{eventRow{}, fields.Names[client.ChangedEvent]()},
	} {
		var got []string
		for _, f := range parquet.SchemaOf(tt.row).Fields() {
			got = append(got, f.Name())
		}
		if diff := cmp.Diff(append(tt.want, "seq"), got, cmpopts.SortSlices(func(a, b string) bool { return a < b })); diff != "" {
			t.Errorf("%T: %s", tt.row, diff)
		}
	}
}
