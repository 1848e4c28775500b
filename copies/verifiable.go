package copies

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/lectern-dev/lectern/client"
)

// Verifiable is a [Destination] whose copy [Verify] can compare with the source and repair.
type Verifiable interface {
	Destination
	// Look returns the current state of the copy, and the state's position. Look takes no lock, so another process may
	// write meanwhile.
	Look(ctx context.Context) (State, Position, error)
	// Mend removes and adds rows so that the copy equals its source, in one commit. The caller has opened the copy.
	Mend(ctx context.Context, m *Mending) error
	// SetVerified stores the result of a verification with the copy. The caller does not need to open the copy.
	SetVerified(ctx context.Context, v Verified) error
	// Status returns the source, the position and the last verification that the copy has stored. The copy may have
	// another source than the options. The caller does not need to open the copy.
	Status(ctx context.Context) (Status, error)
}

// Status has the facts that a copy stores about itself: its project, its position and its last verification.
type Status struct {
	ProjectID string   `json:"project_id"`
	Position  Position `json:"position"`
	Verified  Verified `json:"verified"`
	// Rewritten counts the files that erasures have rewritten since the copy began; nil for a copy without files.
	Rewritten *int `json:"files_rewritten"`
}

// State is a snapshot of a copy, which does not change while [Verify] reads it.
type State interface {
	// History reports whether the copy keeps a row after a later row of the same key, or a removal, has replaced it.
	History() bool
	// Rows returns the rows of entries and events in any order, and the removals if the copy has history. An error is
	// the last pair. After a [Temporary] error, the caller must call Look again.
	Rows(ctx context.Context) iter.Seq2[Row, error]
	// Stored returns the rows that the copy would have for changes of the feed, in the form of Rows.
	Stored(ctx context.Context, changes []client.Change) ([]Row, error)
	// Tables returns the tables of all other records. The caller must first read Rows to the end. p has the records of
	// the source.
	Tables(ctx context.Context, p *Project) []Table
	// NotCompared returns descriptions of the copy's contents that neither Rows nor Tables return.
	NotCompared(ctx context.Context) ([]string, error)
	// Close releases the resources of the state, such as a connection.
	Close() error
}

// Row is a row of a copy, in the form of the change of the feed that the row comes from.
type Row struct {
	client.Change
	// Columns is a text of the further values that the copy stores, such as values for keys of entry_data. Equal
	// values have equal texts.
	Columns string
}

// Table is a table of a copy for records that have no feed, together with the records that the table should have.
type Table struct {
	// Kind is the Type in the keys of the table's rows, such as "experiment".
	Kind string
	// Own reports that the copy alone decides what its records should be, such as the digests of its files.
	Own bool
	// Copy has the records in the copy, and Source the records at the source. Source is nil if the records at the
	// source are unknown.
	Copy, Source iter.Seq2[Record, error]
}

// Record is a row of a [Table]. Two Values are equal if their JSON is equal.
type Record struct {
	ID     string
	Values any
}

// Records returns an iterator over the records that record makes of list. Records returns nil if list is nil.
func Records[T, R any](list iter.Seq2[T, error], record func(T) R) iter.Seq2[R, error] {
	if list == nil {
		return nil
	}
	return func(yield func(R, error) bool) {
		for item, err := range list {
			var r R
			if err == nil {
				r = record(item)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// Key identifies a row of a copy, and the same record at the source.
type Key struct {
	Type client.ChangeType `json:"change"` // or the Kind of a [Table]
	ID   string            `json:"key"`    // such as the entry_id or event_key
}

// Mending has the rows that [Verifiable].Mend removes and adds to make a copy equal to its source.
type Mending struct {
	// Keys are the keys of the rows to remove, with their faults.
	Keys map[Key]Fault
	// Put has the rows to add after the removal, as changes of the feed in the order of their numbers. An error is the
	// last pair.
	Put iter.Seq2[[]client.Change, error]
	// Project has the records of the source that have no feed, which replace those of the copy. Digest is the digest
	// of Project for [Position].
	Project *Project
	Digest  string
	// Loss has the changes that the source has lost; nil if the source has the position of the copy.
	Loss *Loss
}

// Loss has the changes that the source of a copy has lost. [Verifiable].Mend sets the position of the copy to the number
// After, without a cursor, if the repair is the Last of the loss.
type Loss struct {
	*client.HistoryLostError
	// Aside are the keys of the entries and events whose state only the copy has. Mend stores them aside before it
	// removes their rows, in a form that lectern import reads. A later erasure of their entry removes them there, too.
	Aside map[Key]bool
	Last  bool
	text  string // for the user
}

// Note returns a sentence for the user about rows that were put aside. where is the place.
func (l *Loss) Note(where string, m *Mask) string {
	text := fmt.Sprintf("%d rows that only the copy has are in %s now: to send them again, see lectern import.", len(l.Aside), where)
	if m != nil {
		text = fmt.Sprintf("%d rows that only the copy has are in %s now. They cannot be imported, because of --without or --hash.", len(l.Aside), where)
	}
	return text
}

// Verified is the result of a verification, as the copy stores it.
type Verified struct {
	// At is when the verification ended; zero if the copy was never verified.
	At time.Time `json:"at"`
	// Differences is the number of keys whose rows differed from the source and were not repaired.
	Differences int64 `json:"differences"`
}

// Fault is the way in which the rows of a key in a copy differ from the source.
type Fault string

// The faults that a verification finds in the rows of a key, as the user sees them.
const (
	Missing Fault = "missing" // the copy lacks the row
	Doubled Fault = "doubled" // the copy has the row more than once
	Stale   Fault = "stale"   // the copy has another state of the row
	Extra   Fault = "extra"   // the source does not have the row, or not any more
	Foreign Fault = "foreign" // the row has the id of another project
)

// Difference is a key whose rows in the copy differ from the source, and the way in which they differ.
type Difference struct {
	Fault Fault `json:"fault"`
	Key
}
