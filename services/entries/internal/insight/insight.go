// Package insight owns the questions about many entries, with their answers: counts over time, the funnel of an
// embeddable, and the distribution of an answer. It does no I/O.
package insight

import "github.com/lectern-dev/lectern/services/entries/internal/entry"

// Selection selects the entries of an insight.
type Selection struct {
	entry.Selection

	Version *int64 // entries with a page view of this version; nil for any
}

// MaxPages is how many pages a funnel has, from the first on. MaxFunnelRows is how many versions and pages an answer
// has together.
const (
	MaxPages      = 1000
	MaxFunnelRows = 20_000
)

// FunnelQuestion asks how far entries came.
type FunnelQuestion struct {
	Selection
	ByVersion bool
}

// AnswersQuestion asks for the top-level keys of entry_data, or for the values of one key.
type AnswersQuestion struct {
	Selection
	Key string // "": for the keys
}
