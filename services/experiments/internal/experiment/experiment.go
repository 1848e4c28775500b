// Package experiment owns the nouns of the service: experiments, their statuses and the changes of these. It also
// owns how a caller asks for a list of them. It does no I/O.
package experiment

import (
	"github.com/lectern-dev/lectern/shared/http/pagelist"
	"github.com/lectern-dev/lectern/shared/wire"
)

// Experiment is a split test on flows. A nil field is null. Times are Unix microseconds.
type Experiment struct {
	ProjectID            string
	ID                   string
	ExperimentID         string // the same as ID
	FlowID               string
	Name                 *string
	Hypothesis           *string
	ImpactMetrics        []string // nil differs from empty, here and below
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

// Statuses returns the statuses of an experiment. The source decides the order in which an experiment has them.
func Statuses() []string {
	return []string{"draft", "running", "paused", "winner_picked", "completed", "discarded"}
}

// List asks for experiments: by creation, then id, both descending.
type List struct {
	ProjectID string
	Status    string // empty: of any status or none
}

// Bounds returns the start and the end of a list of experiments in its order. No id is empty, so a position with an
// empty id is between two keys.
func Bounds() (start, end pagelist.Position) {
	return pagelist.Position{Key: wire.AfterAll}, pagelist.Position{Key: wire.BeforeAll}
}

// The changes of an experiment's status are counted from 1: the key of a position, whose id is empty.

// ChangeBounds returns the start and the end of the list of an experiment's changes.
func ChangeBounds() (start, end pagelist.Position) {
	return pagelist.Position{}, pagelist.Position{Key: wire.AfterAll}
}

// Removed counts the removed records of a project.
type Removed struct {
	Experiments   int  `json:"experiments"`
	StatusChanges int  `json:"status_changes"`
	More          bool `json:"more,omitzero"`
}
