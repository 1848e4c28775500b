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

// WhiteSpace has the characters of Unicode's property White_Space. A text of them alone is no answer.
const WhiteSpace = "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"

// AnswersQuestion asks for the top-level keys of entry_data, or for the values of one key.
type AnswersQuestion struct {
	Selection
	Key string // "": for the keys
}
