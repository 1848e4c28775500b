package secret

// Bounds of a credential's value, in bytes.
const (
	// MaxBytes is the longest value.
	MaxBytes = 16 << 10
	// MinSearchable is the shortest value that the proxy searches for in answers. Ordinary text would match a shorter one.
	MinSearchable = 8
)

// Bounds of the paths that a credential names in bodies.
const (
	// MaxBodyPaths is how many a credential may name.
	MaxBodyPaths = 32
	// MaxBodyPath is the longest one, in bytes.
	MaxBodyPath = 1024
)

// The form of a credential's id.
const (
	// IDPrefix begins every id.
	IDPrefix = "cred_"
	// MaxIDBytes is the longest id, with its prefix.
	MaxIDBytes = len(IDPrefix) + 64
)

// IsID reports whether text is a credential's id: "cred_" and 1 to 64 letters, digits, "_" or "-".
func IsID(text string) bool {
	if len(text) <= len(IDPrefix) || len(text) > MaxIDBytes || text[:len(IDPrefix)] != IDPrefix {
		return false
	}
	for i := len(IDPrefix); i < len(text); i++ {
		if !IsIDByte(text[i]) {
			return false
		}
	}
	return true
}

// IsIDByte reports whether an id may contain c after its prefix.
func IsIDByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}
