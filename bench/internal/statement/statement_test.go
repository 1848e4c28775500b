package statement_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/bench/internal/statement"
)

func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "statements.sql")
	text := "-- All statements.\n\n-- name: first\nSELECT a, b\nFROM t WHERE p = $1\n\n-- name: second\nSELECT c\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := statement.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	want := statement.Set{"first": "SELECT a, b\nFROM t WHERE p = $1", "second": "SELECT c"}
	if diff := cmp.Diff(want, set); diff != "" {
		t.Errorf("statements (-want +got):\n%s", diff)
	}
	if _, err := set.Get("gone"); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("a statement that is not there: %v", err)
	}
}

// The rows name statements of the services. The test finds a renamed one before a run does.
func TestServicesHaveTheStatements(t *testing.T) {
	for service, names := range map[string][]string{
		"entries":     {"entriesByUpdatedAtDescending.chunk", "getEntry", "eventsDescending.first", "pageViewsDescending"},
		"embeddables": {"embeddables.chunk", "versionsDescending.first"},
		"experiments": {"experiments.chunk"},
	} {
		set, err := statement.Read(filepath.Join("..", "..", "..", "services", service, "internal/store/testdata/statements.sql"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if sql, err := set.Get(name); err != nil || !strings.HasPrefix(sql, "SELECT ") {
				t.Errorf("%s: %s is %q, %v", service, name, sql, err)
			}
		}
	}
}

func TestForPgbench(t *testing.T) {
	for _, tc := range []struct {
		name  string
		in    string
		names []string
		want  string
		fault bool
	}{
		{"in order", "a = $1 AND b = $2", []string{"p", "e"}, "a = :p AND b = :e", false},
		{"one twice", "a = $1 AND b = $1", []string{"p"}, "a = :p AND b = :p", false},
		{"ten are told from one", "$1 $10", []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}, ":a :j", false},
		{"one too few", "a = $2", []string{"p"}, "", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := statement.ForPgbench(tc.in, tc.names...)
			if (err != nil) != tc.fault || !tc.fault && got != tc.want {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}
