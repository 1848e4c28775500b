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

// WhiteSpace has the characters with Unicode's property White_Space. A text that has only such characters does not
// count as an answer.
const WhiteSpace = "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"

// MaxValues is how many values of a key an answer lists at most. MaxKeysWithValues is how many keys have values at most
// if a question is not about one key.
const (
	MaxValues         = 50
	MaxKeysWithValues = 100
)

// AnswersQuestion asks for the top-level keys of entry_data, or for the values of one key.
type AnswersQuestion struct {
	entry.Selection
	Key    string // "" asks for the keys
	Values int    // how many values of each of the first keys, at most MaxValues; 0: none; ignored with Key
}
