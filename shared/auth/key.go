package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"hash/crc32"

	"github.com/lectern-dev/lectern/shared/config"
)

// The form of a key:
//
//	rk_ + 32 base62 characters of randomness (190 bits) + 6 base62 characters of checksum
//
// The checksum is the CRC-32 (IEEE 802.3) of the 35 characters before it, in base62, most significant digit first,
// padded with zeros. The digits are 0-9, A-Z, a-z. The checksum finds typing errors without a look-up, and scanners of
// leaked secrets recognise a key by its checksum. The checksum protects nothing: anybody can compute it.
const (
	keyPrefix    = "rk_"
	keyRandom    = 32
	keyChecksum  = 6
	keyLength    = len(keyPrefix) + keyRandom + keyChecksum
	maxForeign   = 512
	base62Digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// Hash is the SHA-256 of a key's whole text. Stores hold the hash instead of the key.
type Hash [sha256.Size]byte

// String returns the hash in hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// HashKey returns the hash of a key's text. The text may have any form, because HashKey does not check it.
func HashKey(text string) Hash {
	if len(text) > maxForeign {
		return hashToken(text)
	}
	// A copy on the stack: a conversion of the string would allocate.
	var buf [maxForeign]byte
	n := copy(buf[:], text)
	return sha256.Sum256(buf[:n])
}

// hashToken is HashKey for tokens, most of which fit into its larger buffer. To clear such a buffer would slow HashKey down.
func hashToken(text string) Hash {
	var buf [2048]byte
	if len(text) > len(buf) {
		return sha256.Sum256([]byte(text))
	}
	n := copy(buf[:], text)
	return sha256.Sum256(buf[:n])
}

// Mint returns the text of a new random key, and its hash. Mint stores nothing.
func Mint() (config.Secret, Hash) {
	b := make([]byte, 0, keyLength)
	b = append(b, keyPrefix...)
	b = appendRandom62(b, keyRandom)
	sum := checksum(string(b))
	b = append(b, sum[:]...)
	return config.NewSecret(string(b)), sha256.Sum256(b)
}

// ParseKey returns the hash of a key of the form of [Mint]. ParseKey returns [ErrMalformed] for text of any other form
// or with a wrong checksum.
func ParseKey(text string) (Hash, error) {
	if !hasKeyForm(text) || !checksumFits(text) {
		return Hash{}, ErrMalformed
	}
	return HashKey(text), nil
}

// ParseForeignKey returns the hash of an imported key of 1 to 512 printable ASCII characters. The error is
// [ErrMalformed] for any other text, and for a text of the form of [Mint] with a wrong checksum.
func ParseForeignKey(text string) (Hash, error) {
	if text == "" || len(text) > maxForeign || hasKeyForm(text) && !checksumFits(text) {
		return Hash{}, ErrMalformed
	}
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return Hash{}, ErrMalformed
		}
	}
	return HashKey(text), nil
}

// IsForeign reports whether text can only be an imported key: text does not have the form of [Mint].
func IsForeign(text string) bool { return !hasKeyForm(text) }

// NewKeyID returns a new public id of a key: "key_" and 20 random base62 characters (119 bits). The ids are random
// enough to differ in all projects.
func NewKeyID() string {
	return string(appendRandom62([]byte("key_"), 20))
}

func hasKeyForm(text string) bool {
	if len(text) != keyLength || text[:len(keyPrefix)] != keyPrefix {
		return false
	}
	for i := len(keyPrefix); i < keyLength; i++ {
		c := text[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// checksumFits reports whether text ends with the checksum of the characters before. The caller has checked that text
// has the form of a key.
func checksumFits(text string) bool {
	const body = keyLength - keyChecksum
	sum := checksum(text[:body])
	return string(sum[:]) == text[body:]
}

// checksum returns the CRC-32 of text in 6 base62 digits. The loop is here because crc32's functions would copy the
// string to the heap for each request.
func checksum(text string) [keyChecksum]byte {
	sum := ^uint32(0)
	for i := range len(text) {
		sum = crc32.IEEETable[byte(sum)^text[i]] ^ sum>>8
	}
	sum = ^sum
	var out [keyChecksum]byte
	for i := keyChecksum - 1; i >= 0; i-- {
		out[i] = base62Digits[sum%62]
		sum /= 62
	}
	return out
}

// appendRandom62 appends n random base62 digits to b. Each digit is equally likely, because appendRandom62 drops random
// bytes of 248 (4 x 62) and more.
func appendRandom62(b []byte, n int) []byte {
	const whole = 256 / 62 * 62
	var random [64]byte
	for want := len(b) + n; len(b) < want; {
		_, _ = rand.Read(random[:]) // never fails: it would end the program
		for _, r := range random {
			if r < whole && len(b) < want {
				b = append(b, base62Digits[r%62])
			}
		}
	}
	return b
}
