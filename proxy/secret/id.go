package secret

// The longest value of a credential, and the shortest value that the proxy can search for, in bytes.
const (
	// MaxBytes is the longest value of a credential, in bytes.
	MaxBytes = 16 << 10
	// MinSearchable is the shortest value that the proxy searches for in answers, in bytes. Ordinary text could match a
	// shorter value.
	MinSearchable = 8
)

// Bounds of the paths that a credential names in bodies.
const (
	// MaxBodyPaths is how many paths in bodies a credential may name.
	MaxBodyPaths = 32
	// MaxBodyPath is the longest path in bodies that a credential may name, in bytes.
	MaxBodyPath = 1024
)

// The form of a credential's id.
const (
	// IDPrefix begins every id of a credential.
	IDPrefix = "cred_"
	// MaxIDBytes is the longest id of a credential with its prefix, in bytes.
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

// IsIDByte reports whether the id of a credential may contain c after the prefix.
func IsIDByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}
