package embeddable

import (
	"crypto/sha256"
	"unicode/utf8"
)

// Hash names a definition within its project: the same content, the same hash.
type Hash = [sha256.Size]byte

// HashOf returns the hash of a definition.
func HashOf(definition string) Hash { return sha256.Sum256([]byte(definition)) }

// PartBytes is how long a part of a definition is at most. Parts are compressed one by one, and read
// some at a time, so that megabytes go out in little memory.
const PartBytes = 256 << 10

// Parts cuts a definition into parts, none within a character. One of no bytes has one part.
func Parts(definition string) []string {
	var parts []string
	for len(definition) > PartBytes {
		n := PartBytes
		for !utf8.RuneStart(definition[n]) {
			n--
		}
		parts = append(parts, definition[:n])
		definition = definition[n:]
	}
	return append(parts, definition)
}
