package export

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
