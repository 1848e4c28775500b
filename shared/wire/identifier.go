package wire

import (
	"strings"
	"unicode/utf8"
)

// MaxIdentifierBytes is the length of the longest identifier of a record, in bytes.
const MaxIdentifierBytes = 256

// ValidIdentifier reports whether id can name a record: valid UTF-8 without NUL, 1 to [MaxIdentifierBytes] bytes.
func ValidIdentifier(id string) bool {
	return id != "" && len(id) <= MaxIdentifierBytes && utf8.ValidString(id) && strings.IndexByte(id, 0) < 0
}
