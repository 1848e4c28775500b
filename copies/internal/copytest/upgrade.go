package copytest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies"
)

// Stored is a [Kind] whose copy, or whose position, outlives an upgrade.
type Stored interface {
	Kind
	// Save writes what the copy has stored into a folder. Load replaces what the copy has stored by the files of a folder.
	Save(t *testing.T, folder string)
	Load(t *testing.T, folder string)
}

// CheckUpgrades checks that copies of all released versions go on: testdata/versions/VERSION/NAME has the copy that a
// version made of a small source. With LECTERN_DUMP_VERSION, which scripts/dump-version sets, CheckUpgrades makes the
// copy of that version instead.
func CheckUpgrades(t *testing.T, name string, kind func(t *testing.T) Stored) {
	t.Helper()
	start := func(t *testing.T) (*Copy, Stored) {
		k := kind(t)
		c := &Copy{NewSource(t), k}
		c.fillVerified(t)
		return c, k
	}
	if version := os.Getenv("LECTERN_DUMP_VERSION"); version != "" {
		folder := filepath.Join("testdata", "versions", version, name)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		c, k := start(t)
		if d, ok := c.verifiable(t, false); ok {
			c.Verify(t, d, nil)
		}
		k.Save(t, folder)
		return
	}
	folders, err := filepath.Glob(filepath.Join("testdata", "versions", "*", name))
	if err != nil || len(folders) == 0 {
		t.Fatalf("there is no copy of a version: %v", err)
	}
	for _, folder := range folders {
		t.Run(name+" "+filepath.Base(filepath.Dir(folder)), func(t *testing.T) {
			c, k := start(t)
			k.Load(t, folder)
			goOn := func(want int64) {
				t.Helper()
				p, err := c.run(t, Options{Moved: true}, nil)
				if err != nil || p.Changes != want {
					t.Errorf("%d changes, %v; want %d", p.Changes, err, want)
				}
				c.check(t)
			}
			goOn(0)
			c.Put(Entry("en_1", 902, `{"again":true,"n":2}`), Event("en_1", 700))
			c.Remove(client.Erased, "en_2")
			c.Define("emb_1", 3, client.Paused, 2)
			goOn(3)
			d, ok := c.verifiable(t, false)
			if !ok {
				return
			}
			status, err := d.(copies.Verifiable).Status(t.Context())
			if err != nil || status.ProjectID != Project || status.Verified.At.IsZero() {
				t.Errorf("%+v, %v", status, err)
			}
			if names, left := c.Verify(t, d, nil); left != 0 {
				t.Errorf("differences %q", names)
			}
		})
	}
}
