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
// The checksum is the CRC-32 (IEEE 802.3) of the 35 characters before it, in base62, most significant
// digit first, padded with zeros. The digits are 0-9, A-Z, a-z. It finds typing errors without a
// look-up, and lets scanners of leaked secrets know a key when they see one; it is no protection.
const (
	keyPrefix    = "rk_"
	keyRandom    = 32
	keyChecksum  = 6
	keyLength    = len(keyPrefix) + keyRandom + keyChecksum
	maxForeign   = 512
	base62Digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// Hash is the SHA-256 of a key's whole text: what is stored in a key's place.
type Hash [sha256.Size]byte

// String gives h in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// HashKey returns the hash of a key's text, whatever its form.
func HashKey(text string) Hash {
	// A copy on the stack: a conversion of the string would allocate.
	var buf [maxForeign]byte
	if len(text) > len(buf) {
		return sha256.Sum256([]byte(text))
	}
	n := copy(buf[:], text)
	return sha256.Sum256(buf[:n])
}

// Mint makes a new key from the system's randomness, and its hash.
func Mint() (config.Secret, Hash) {
	b := make([]byte, 0, keyLength)
	b = append(b, keyPrefix...)
	b = appendRandom62(b, keyRandom)
	sum := checksum(string(b))
	b = append(b, sum[:]...)
	return config.NewSecret(string(b)), sha256.Sum256(b)
}

// ParseKey returns the hash of a key of the form that [Mint] gives. Text of any other form, or with a
// wrong checksum, is [ErrMalformed].
func ParseKey(text string) (Hash, error) {
	if !hasKeyForm(text) || !checksumFits(text) {
		return Hash{}, ErrMalformed
	}
	return HashKey(text), nil
}

// ParseForeignKey returns the hash of an imported key: 1 to 512 printable ASCII
// characters. Text of Mint's form with a wrong checksum is [ErrMalformed] here too.
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

// IsForeign reports whether text is not of the form that [Mint] gives.
func IsForeign(text string) bool { return !hasKeyForm(text) }

// NewKeyID makes the public id of a key: "key_" and 20 random base62 characters (119 bits), so that no
// two keys of any projects share one.
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

// checksumFits expects a text that has the key's form.
func checksumFits(text string) bool {
	const body = keyLength - keyChecksum
	sum := checksum(text[:body])
	return string(sum[:]) == text[body:]
}

// checksum goes through the bytes by itself, as crc32's functions would have the string copied to the
// heap for each request.
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

// appendRandom62 appends n digits, each equally likely: bytes of the last, incomplete run of 62 are
// thrown away.
func appendRandom62(b []byte, n int) []byte {
	const whole = 256 / 62 * 62
	var random [64]byte
	for want := len(b) + n; len(b) < want; {
		_, _ = rand.Read(random[:]) // never fails: it ends the program instead
		for _, r := range random {
			if r < whole && len(b) < want {
				b = append(b, base62Digits[r%62])
			}
		}
	}
	return b
}
