package columns

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
)

// Choice selects the keys of entry_data that become columns: all, the listed keys, or none. The zero value selects
// none.
type Choice struct {
	// All makes columns of the keys that occur in entry_data, at most [Most].
	All bool
	// Listed are the columns that a user named in a file, which [Parse] reads.
	Listed []Column
}

// Set returns the set of columns with which a new copy begins: the listed columns.
func (c Choice) Set() *Set { return c.Restore(c.Listed) }

// Restore returns the set of columns of an existing copy. list has the columns that the copy stored.
func (c Choice) Restore(list []Column) *Set { return NewSet(list, !c.All) }

// String returns a text that identifies the choice. A copy stores the text, and only continues with the same choice.
func (c Choice) String() string {
	switch {
	case c.All:
		return "auto"
	case len(c.Listed) == 0:
		return "none"
	}
	list, _ := json.Marshal(c.Listed) // never fails: it only contains strings
	return fmt.Sprintf("a list with the digest %.8x", sha256.Sum256(list))
}
