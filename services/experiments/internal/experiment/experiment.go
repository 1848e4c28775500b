// Package experiment defines experiments, their statuses and the changes of their statuses, and how a caller asks for a
// list of experiments. The package does no I/O.
package experiment

import (
	"github.com/lectern-dev/lectern/shared/postgres/lists"
	"github.com/lectern-dev/lectern/shared/wire"
)

// Experiment is a split test on flows. A nil field is null in the API. Times are Unix microseconds.
type Experiment struct {
	ProjectID            string
	ID                   string
	ExperimentID         string // the same as ID
	FlowID               string
	Name                 *string
	Hypothesis           *string
	ImpactMetrics        []string // nil is null, which differs from an empty array, as in the other []string fields
	NoImpactMetrics      []string
	CreatedAt            int64
	UpdatedAt            int64
	Observations         *string
	Outcome              *string
	Attachments          *string // a JSON array, byte for byte as it was received
	Variants             *string // a JSON object, byte for byte as it was received
	FlowIDs              []string
	PausedShowingVariant *string // a variant's key
	WinnerVariant        *string // a variant's key
	Status               *string // one of Statuses
}

// Statuses returns all statuses that an experiment can have. An experiment can also have no status. The source decides
// in which order an experiment takes its statuses.
func Statuses() []string {
	return []string{"draft", "running", "paused", "winner_picked", "completed", "discarded"}
}

// List asks for the experiments of a project, in descending order of creation and then of id.
type List struct {
	ProjectID string
	Status    string // empty: of any status or none
}

// Bounds returns the start and the end of a list of all experiments, from the latest creation to the earliest. Both
// positions have an empty id, which is less than the id of any experiment.
func Bounds() (start, end lists.Position) {
	return lists.Position{Key: wire.AfterAll}, lists.Position{Key: wire.BeforeAll}
}

// A position in the list of status changes has the number of a change as its key, counted from 1, and an empty id.

// ChangeBounds returns the start and the end of the list of all changes of an experiment's status, the oldest first.
// The key of a position is the number of a change, counted from 1.
func ChangeBounds() (start, end lists.Position) {
	return lists.Position{}, lists.Position{Key: wire.AfterAll}
}

// Removed counts the removed records of a project. More is true if there may be more records to remove.
type Removed struct {
	Experiments   int  `json:"experiments"`
	StatusChanges int  `json:"status_changes"`
	More          bool `json:"more,omitzero"`
}
