package replicate

import (
	"context"
	"iter"
	"time"

	"github.com/lectern-dev/lectern/client"
)

// Verifiable is a copy that [Verify] can compare with its source.
type Verifiable interface {
	Destination
	// Look returns the state of the copy at this moment, and its position. It takes no lock, so another process may write
	// meanwhile.
	Look(ctx context.Context) (State, Position, error)
	// Mend makes the copy equal to its source, in one commit. The copy is open.
	Mend(ctx context.Context, m *Mending) error
	// SetVerified stores the result of a verification with the copy. It does not need Open.
	SetVerified(ctx context.Context, v Verified) error
	// Status returns what the copy says of itself, even if it has another source. It does not need Open.
	Status(ctx context.Context) (Status, error)
}

// Status has what a copy says of itself.
type Status struct {
	ProjectID string   `json:"project_id"`
	Position  Position `json:"position"`
	Verified  Verified `json:"verified"`
	// Rewritten counts the files that erasures have rewritten since the copy began; nil if the copy has no files.
	Rewritten *int `json:"files_rewritten"`
}

// State is a state of a copy that does not change while it is read.
type State interface {
	// History reports whether rows stay that a later row of the same key, or a removal, has replaced.
	History() bool
	// Rows returns all rows of entries and events in any order, and the removals if the copy has history. An error is the last
	// pair. A [Temporary] one says that the copy has changed too much, so that the caller must look again.
	Rows(ctx context.Context) iter.Seq2[Row, error]
	// Stored returns changes of the feed as Rows returns them.
	Stored(ctx context.Context, changes []client.Change) ([]Row, error)
	// Tables returns all other tables, after Rows has ended. p is the project as the source has it.
	Tables(ctx context.Context, p *Project) []Table
	// NotCompared names what neither Rows nor Tables have.
	NotCompared(ctx context.Context) ([]string, error)
	// Close ends the use of the state.
	Close() error
}

// Row is a row of a change.
type Row struct {
	client.Change
	// Columns has what the copy stores apart from the change, such as values for keys of entry_data.
	Columns string
}

// Table is a table of a copy, and what should be in it.
type Table struct {
	// Kind is the Type of the rows' keys.
	Kind string
	// Copy has the rows of the copy. Source is nil if the source's rows are unknown.
	Copy, Source iter.Seq2[Record, error]
}

// Record is a row of a [Table]. Values are equal if their JSON is.
type Record struct {
	ID     string
	Values any
}

// Records returns the rows of a table. It returns nil for nil.
func Records[T any](list iter.Seq2[T, error], record func(T) Record) iter.Seq2[Record, error] {
	if list == nil {
		return nil
	}
	return func(yield func(Record, error) bool) {
		for one, err := range list {
			r := Record{}
			if err == nil {
				r = record(one)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// Key identifies a row.
type Key struct {
	Type client.ChangeType `json:"change"` // or the Kind of a [Table]
	ID   string            `json:"key"`    // such as the entry_id or event_key
}

// Mending makes a copy equal to its source.
type Mending struct {
	// Keys are those of the rows to remove.
	Keys map[Key]Fault
	// Put has the rows to add then, as changes of the feed in the order of their numbers. An error is the last pair.
	Put iter.Seq2[[]client.Change, error]
	// Project replaces what the copy has of it. Digest is that of [Position].
	Project *Project
	Digest  string
}

// Verified is the result of a verification.
type Verified struct {
	// At is the time of the result; zero if the copy was never verified.
	At time.Time `json:"at"`
	// Differences is the number of keys whose rows differed and were not mended.
	Differences int64 `json:"differences"`
}

// Fault names a fault of the rows of a key in a copy.
type Fault string

// The faults.
const (
	Missing Fault = "missing" // the copy lacks the row
	Doubled Fault = "doubled" // the copy has it more than once
	Stale   Fault = "stale"   // the copy has another state of it
	Extra   Fault = "extra"   // the source does not have it, or not any more
	Foreign Fault = "foreign" // the row has the id of another project
)

// Difference is a key whose rows in the copy differ from the source.
type Difference struct {
	Fault Fault `json:"fault"`
	Key
}
