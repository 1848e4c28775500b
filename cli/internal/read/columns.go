package read

import (
	"os"

	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/copies/columns"
)

// readColumns returns the columns that the file of --columns lists. allowed names the values that the flag takes, for
// the error about a missing file.
func readColumns(path, allowed string) (columns.Choice, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return columns.Choice{}, shell.Usagef("--columns takes %s: %w", allowed, err)
	}
	list, err := columns.Parse(data)
	if err != nil {
		return columns.Choice{}, shell.Usagef("--columns %s: %w", path, err)
	}
	return columns.Choice{Listed: list}, nil
}
