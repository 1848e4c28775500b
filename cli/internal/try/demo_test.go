package try_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/cli/internal/demo"
)

func TestDemo(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		resource string
		want     int // records
	}{
		{"projects", 1},
		{"embeddables", len(demo.Embeddables())},
		{"embeddable-versions", len(demo.Versions())},
		{"entries", demo.EntryCount},
	} {
		t.Run(tt.resource, func(t *testing.T) {
			out := clitest.Must(t, nil, "", "demo", tt.resource)
			lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
			if len(lines) != tt.want {
				t.Errorf("%d records; want %d", len(lines), tt.want)
			}
			for _, line := range []string{lines[0], lines[len(lines)-1]} {
				if !json.Valid([]byte(line)) {
					t.Errorf("no JSON: %.200s", line)
				}
			}
		})
	}
}
