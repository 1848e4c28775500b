package embeddable

import (
	"crypto/sha256"
	"unicode/utf8"
)

// Hash identifies a definition within its project. Equal contents have equal hashes.
type Hash = [sha256.Size]byte

// HashOf returns the hash of a definition, which is its SHA-256.
func HashOf(definition string) Hash { return sha256.Sum256([]byte(definition)) }

// PartBytes is the greatest length of a part of a definition, in bytes. Parts are compressed one by one and read a few
// at a time. So a definition of megabytes is sent with little memory.
const PartBytes = 256 << 10

// Parts splits a definition in UTF-8 into parts of at most PartBytes bytes, never within a character. An empty
// definition has one part.
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
