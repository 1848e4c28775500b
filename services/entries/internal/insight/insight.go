// Package insight defines the questions about many entries: counts over time, the overview, the funnel of an
// embeddable, and the distribution of an answer. The package computes answers from what the store has read, and does no
// I/O.
package insight

import "github.com/lectern-dev/lectern/services/entries/internal/entry"

// MaxPages is how many pages a funnel has at most, from the first page on. MaxFunnelRows is how many versions and
// pages an answer may have together.
const (
	MaxPages      = 1000
	MaxFunnelRows = 20_000
)

// FunnelQuestion asks how many of the selected entries reached each page. With ByVersion, each version has a funnel
// of its own.
type FunnelQuestion struct {
	entry.Selection
	ByVersion bool
}
