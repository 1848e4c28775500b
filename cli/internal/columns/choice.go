package columns

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
)

// Choice selects the keys that become columns. The zero value selects none.
type Choice struct {
	// All makes a column of every key.
	All bool
	// Listed are the columns that a user named with [Parse].
	Listed []Column
}

// Set returns the set of a new copy.
func (c Choice) Set() *Set { return c.Restore(c.Listed) }

// Restore returns a set that had these columns when it was stored.
func (c Choice) Restore(list []Column) *Set { return NewSet(list, !c.All) }

// String identifies the choice. A copy stores it, and only continues with the same choice.
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
