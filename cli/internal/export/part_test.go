package export

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/testing/golden"
)

// TestPartThatIsALink checks that an export does not write through a link that someone has put in the place of its part.
func TestPartThatIsALink(t *testing.T) {
	for _, exists := range []bool{true, false} {
		folder := t.TempDir()
		other, out := filepath.Join(folder, "other"), filepath.Join(folder, "out.json")
		if exists {
			if err := os.WriteFile(other, []byte("kept"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(other, partPath(out)); err != nil {
			t.Skip(err) // Windows needs a right for links
		}
		if _, err := openPart(out, Query{}, false); err == nil || !strings.Contains(err.Error(), "is a link") {
			t.Errorf("the other file exists: %v: %v", exists, err)
		}
		if text, err := os.ReadFile(other); string(text) != "kept" && exists || err == nil && !exists {
			t.Errorf("the other file has %q, %v", text, err)
		}
	}
}

// TestUpgrades checks that an export goes on that a process of each released version left.
func TestUpgrades(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	q := query(Entries, NDJSON)
	q.Limit, q.IncludeURLs = 24, true
	run := func(s *server) (Result, error) {
		return Run(t.Context(), Options{Query: q, Fetch: s.fetch, PageSize: 10, Path: path})
	}
	cut := func() string {
		if _, err := run(&server{total: 30, cutAt: 2}); err == nil {
			t.Fatal("the export was not cut")
		}
		return string(read(t, path+".part.json"))
	}
	golden.EachVersion(t, "part.json", cut, func(t *testing.T, state string) {
		cut() // which leaves the records
		if err := os.WriteFile(path+".part.json", []byte(state), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := run(&server{total: 30})
		if err != nil || !got.Resumed || got.Records != 24 {
			t.Fatalf("%+v, %v", got, err)
		}
		resumed := read(t, path)
		if _, err := run(&server{total: 30}); err != nil || string(read(t, path)) != string(resumed) {
			t.Errorf("%v; the export differs from one that nothing cut:\n%s", err, resumed)
		}
	})
}
