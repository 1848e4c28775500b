package read

import "fmt"

// memoryLimit is the soft limit of Go's memory for long commands, in bytes. With this limit, the process needs less
// than about 128 MiB, even when it writes Parquet.
const memoryLimit = 72 << 20

// counted returns the number n with a noun: one if n is 1, and many otherwise.
func counted(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// size returns a number of bytes as text, in the largest fitting unit from B to TiB.
func size(bytes int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	n, unit := float64(bytes), 0
	for n >= 1024 && unit < len(units)-1 {
		n /= 1024
		unit++
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", bytes)
	}
	return fmt.Sprintf("%.1f %s", n, units[unit])
}
