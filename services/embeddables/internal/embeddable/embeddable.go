// Package embeddable defines the records of the service: embeddables, their versions and their definitions. The package
// also defines the bounds of lists, and does no I/O.
package embeddable

import (
	"iter"
	"strings"

	"github.com/lectern-dev/lectern/shared/postgres/lists"
	"github.com/lectern-dev/lectern/shared/wire"
)

// Embeddable is a flow that a project hosts, with the definition that is in production.
type Embeddable struct {
	ProjectID  string
	ID         string
	Title      string
	GroupID    string
	Definition string // JSON, byte for byte as it was received
}

// Version is a saved state of an embeddable, which never changes. SavedAt is in Unix microseconds.
type Version struct {
	ProjectID    string
	EmbeddableID string
	Number       int64
	SavedAt      int64
	Definition   string // JSON, byte for byte as it was received
}

// MaxVersion is the greatest number of a version; the least is 0. JSON readers that read numbers as floating point read
// numbers up to MaxVersion without rounding.
const MaxVersion = 1<<53 - 1

// Document is one embeddable or one version with its definition, as JSON.
type Document struct {
	// Whole is the document, or nil if the document is long.
	Whole []byte
	// Pieces yields a long document piece by piece, and can be iterated once. A piece is valid until the next one. Nil
	// if Whole is set.
	Pieces iter.Seq2[[]byte, error]
	// Name identifies the content of a long document. Nil if Whole is set.
	Name []byte
}

// Embeddables are listed by their id alone: the key of a position is 0.

// Bounds returns the start and the end of the list of embeddables, which is in the order of the ids. No id is empty. No
// id is greater than the greatest character, repeated up to the length of an identifier.
func Bounds() (start, end lists.Position) {
	const greatest = "\U0010FFFF"
	return lists.Position{}, lists.Position{ID: strings.Repeat(greatest, wire.MaxIdentifierBytes/len(greatest))}
}

// Versions are listed by their number alone: the id of a position is empty.

// VersionBounds returns the start and the end of a list of versions: before the least number and after the greatest
// number. If descending, the start is after the greatest number, and the end is before the least number.
func VersionBounds(descending bool) (start, end lists.Position) {
	low, high := lists.Position{Key: -1}, lists.Position{Key: MaxVersion + 1}
	if descending {
		return high, low
	}
	return low, high
}

// Removed counts the records that one removal of a project removed. With More, the client must repeat the removal.
type Removed struct {
	Embeddables int  `json:"embeddables"`
	Versions    int  `json:"versions"`
	Definitions int  `json:"definitions"` // stored parts of definitions
	More        bool `json:"more,omitzero"`
}

// PurgedDefinitions counts the definitions that a purge removed, or would remove. With More, the client must repeat the
// purge.
type PurgedDefinitions struct {
	Definitions int  `json:"definitions"`
	More        bool `json:"more,omitzero"`
}
