package read

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/lectern-dev/lectern/cli/internal/destination"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/copies"
)

// mostDifferences is the maximum number of differences that are printed. Further differences are only counted.
const mostDifferences = 1000

// verify compares the copy with its source, and prints the first [mostDifferences] differences as lines of JSON. With
// repair, verify also mends the copy. verify returns an error if differences remain.
func verify(s *shell.Session, o copies.Options, to destination.Destination, repair bool) error {
	printed, out := 0, json.NewEncoder(s.Out)
	found, err := copies.Verify(s.Context, copies.Verification{
		Options: o, Folder: os.TempDir(), Repair: repair,
		Name: func(d copies.Difference) error {
			if printed++; printed > mostDifferences {
				return nil
			}
			return out.Encode(d)
		},
	})
	if err != nil {
		return err
	}
	if printed > mostDifferences {
		s.Note("Only the first %d differences are printed.", mostDifferences)
	}
	for _, what := range found.NotCompared {
		s.Note("Not compared: %s.", what)
	}
	if len(found.Counts) == 0 {
		s.Note("The %s equals its source.", to)
		return nil
	}
	var list []string // such as 2 missing, 1 stale
	for _, fault := range slices.Sorted(maps.Keys(found.Counts)) {
		list = append(list, fmt.Sprintf("%d %s", found.Counts[fault], fault))
	}
	counts := strings.Join(list, ", ")
	if found.Left > 0 {
		return fmt.Errorf("the %s differs from its source: %s; to mend it, stop other syncs and add --repair", to, counts)
	}
	s.Note("The %s differed from its source: %s. It is mended.", to, counts)
	return nil
}
