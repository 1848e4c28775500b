package wire

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"
)

// AppendText appends s to dst as a JSON string (RFC 8259, section 7). AppendText escapes quotes, backslashes and the
// control characters below U+0020, and nothing else. s must be valid UTF-8, as all text in the database is.
func AppendText(dst, s []byte) []byte {
	dst = append(slices.Grow(dst, len(s)+2), '"')
	dst = AppendTextPart(dst, s)
	return append(dst, '"')
}

// AppendTextPart escapes and appends s like [AppendText], without the quotes around the string, so that a caller can
// write a long string in parts.
func AppendTextPart(dst, s []byte) []byte {
	for {
		n := plain(s)
		dst = append(dst, s[:n]...)
		if n == len(s) {
			return dst
		}
		switch c := s[n]; c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			const hex = "0123456789abcdef"
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		s = s[n+1:]
	}
}

// plain returns how many leading bytes of s need no escape. plain looks at eight bytes at a time.
func plain(s []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	n := 0
	for ; len(s)-n >= 8; n += 8 {
		w := binary.LittleEndian.Uint64(s[n:])
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		// The lowest set high bit marks the first byte that is < 0x20, '"' or '\\'. A borrow can only set bits above
		// it.
		if hit := ((w-ones*0x20)&^w | (quote-ones)&^quote | (slash-ones)&^slash) & highs; hit != 0 {
			return n + bits.TrailingZeros64(hit)/8
		}
	}
	for ; n < len(s); n++ {
		if c := s[n]; c < 0x20 || c == '"' || c == '\\' {
			return n
		}
	}
	return n
}

// Shorten returns text for a message. Shorten cuts a text of more than longest bytes at the end of a character, to at
// most longest bytes, and appends "…".
func Shorten(text string, longest int) string {
	if len(text) <= longest {
		return text
	}
	return strings.ToValidUTF8(text[:longest], "") + "…"
}

// AppendNullableText appends s to dst as a JSON string, or null when s is nil.
func AppendNullableText(dst, s []byte) []byte {
	if s == nil {
		return append(dst, "null"...)
	}
	return AppendText(dst, s)
}
