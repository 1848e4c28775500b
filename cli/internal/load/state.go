package load

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/lectern-dev/lectern/cli/internal/durable"
)

// state is the position of an import. Everything before it was acknowledged.
type state struct {
	// Target and Files identify the import.
	Target string   `json:"target"`
	Files  []string `json:"files"`
	// File is the index of the current file, and position the place of the next read in it.
	File int `json:"file"`
	position
	// Done is the size of the files before it.
	Done int64 `json:"done"`
	// RejectsBytes is the length of the file of rejects.
	RejectsBytes int64 `json:"rejects_bytes"`
	Summary
}

// position is a place in a file: the next byte, line and row of CSV, and the hash of the bytes before it.
type position struct {
	Offset int64  `json:"offset"`
	Line   int    `json:"line"`
	Row    int    `json:"row"`
	SHA256 string `json:"sha256"`
}

// errOtherImport refuses the state of another import.
var errOtherImport = errors.New("is of another import")

// readState returns the state at path, and whether there is one.
func readState(path string) (state, bool, error) {
	var s state
	if path == "" {
		return s, false, nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, false, nil
	}
	if err != nil {
		return s, false, err
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, false, fmt.Errorf("%s is damaged (%w): start over with --restart", path, err)
	}
	return s, true, nil
}

func (s state) write(path string) error {
	if path == "" {
		return nil
	}
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := durable.WriteFile(path, append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("the state of the import: %w; name another place by --state", err)
	}
	return nil
}
