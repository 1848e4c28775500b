package read

import (
	"os"

	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/copies/columns"
)

// tooManyKeys is the format of the message for keys of entry_data that get no column. Its argument is the maximum
// number of columns.
const tooManyKeys = "Some keys of entry_data have no column, because there are %d already; their values are in entry_data."

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
