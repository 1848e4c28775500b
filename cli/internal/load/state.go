package load

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/lectern-dev/lectern/cli/internal/csvrow"
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

// position is a place in a file: the next byte, line and row of CSV, and the hash of the bytes before it. The dialect is that of
// the rows before it.
type position struct {
	Offset  int64          `json:"offset"`
	Line    int            `json:"line"`
	Row     int            `json:"row"`
	SHA256  string         `json:"sha256"`
	Dialect csvrow.Dialect `json:"dialect"`
}

// readState returns the state at path: an empty one if there is none.
func readState(path string) (s state, err error) {
	b, err := os.ReadFile(path)
	if path == "" || errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("%s is damaged (%w): start over with --restart", path, err)
	}
	return s, nil
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
