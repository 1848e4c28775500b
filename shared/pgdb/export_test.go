package pgdb

// HashText is hashText, for tests that ask a server for the same.
func HashText(s string) uint32 { return hashText(s) }

// Share is share.
func Share(conns, n int) int { return share(conns, n) }
