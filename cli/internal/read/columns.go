package read

import (
	"os"

	"github.com/lectern-dev/lectern/cli/internal/columns"
	"github.com/lectern-dev/lectern/cli/internal/shell"
)

// tooManyKeys is the message for keys that get no column.
const tooManyKeys = "Some keys of entry_data have no column, because there are %d already; their values are in entry_data."

// readColumns returns the columns that the file of --columns lists. The flag also takes what allowed says.
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
