package wire

import (
	"unicode"
	"unicode/utf8"
)

// Printable reports whether s is valid UTF-8, and all its characters are printable as [unicode.IsPrint] defines.
func Printable(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}
