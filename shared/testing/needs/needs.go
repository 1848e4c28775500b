// Package needs says what a test needs of its run and of its machine.
package needs

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Long skips t unless LECTERN_LONG is 1, as make test-long sets it. Tests that call Long have names of the form
// TestLong…. Such a test takes over 20 seconds, or needs more of its machine than Go, Postgres and Redis.
func Long(t testing.TB) {
	t.Helper()
	if os.Getenv("LECTERN_LONG") != "1" {
		t.Skip("LECTERN_LONG=1 runs this test, as make test-long does")
	}
}

// Program returns the path of the first of names that is on PATH. If none is there, Program fails t and says how to
// install the program. A skipped test would look like one that passed.
func Program(t testing.TB, install string, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatalf("%s is not on PATH: %s", strings.Join(names, " or "), install)
	return ""
}

// Chromium returns the path of the browser, as Program does.
func Chromium(t testing.TB) string {
	t.Helper()
	return Program(t, "run scripts/setup browser", "chromium", "chromium-browser", "google-chrome")
}

// Node fails t if there is no npm, as Program does.
func Node(t testing.TB) {
	t.Helper()
	Program(t, "install Node.js 20.19 or later with npm", "npm")
}
