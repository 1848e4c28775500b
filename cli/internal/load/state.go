package load

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/lectern-dev/lectern/cli/internal/csvrow"
	"github.com/lectern-dev/lectern/copies/durable"
)

// state is the content of the state file: the position of an import. Each record before the position was acknowledged
// by the ingest endpoint or rejected.
type state struct {
	// Target and Files identify the import to which the state belongs.
	Target string   `json:"target"`
	Files  []string `json:"files"`
	// File is the index in Files of the current file. position is the place of the next read in that file.
	File int `json:"file"`
	position
	// Done is the total length of the files before the current file, in bytes.
	Done int64 `json:"done"`
	// RejectsBytes is the length of the file of rejects at this position, in bytes.
	RejectsBytes int64 `json:"rejects_bytes"`
	Summary
}

// position is a place in a file: the next byte, line and row of CSV, and the hash of all bytes before that place.
// Dialect is the dialect of the rows before that place.
type position struct {
	Offset  int64          `json:"offset"`
	Line    int            `json:"line"`
	Row     int            `json:"row"`
	SHA256  string         `json:"sha256"`
	Dialect csvrow.Dialect `json:"dialect"`
}

// readState returns the state in the file at path. The state is empty if path is "" or there is no such file. A
// damaged file is an error.
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
	if err := durable.WriteJSON(path, s); err != nil {
		return fmt.Errorf("the state of the import: %w; name another place by --state", err)
	}
	return nil
}
