package scrub_test

import (
	"strings"
	"testing"

	"golang.org/x/text/transform"

	"github.com/lectern-dev/lectern/proxy/internal/scrub"
)

// TestFindsLinesOfAKey finds a value of several lines whose lines are indented or numbered, or have other line breaks.
func TestFindsLinesOfAKey(t *testing.T) {
	const key = "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEAx7\nq9Zf0yTtLw3uYvB2nQ\n-----END KEY-----\n"
	m := scrub.NewMatcher([]byte(key))
	for _, end := range []string{"\n", "\r\n", "\n    ", "\ndata: ", "<br>\n"} {
		for name, stream := range map[string]*scrub.Stream{"by length": scrub.NewStream(m), "by line": scrub.NewLineStream(m)} {
			got, _, err := transform.String(stream, strings.ReplaceAll(key, "\n", end))
			if err != nil || strings.Contains(got, "MIIE") || strings.Contains(got, "q9Zf") {
				t.Errorf("%s, lines that end in %q: %q, %v", name, end, got, err)
			}
		}
	}
}
