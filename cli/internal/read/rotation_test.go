package read_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// secret is a mounted Secret of an APIKey whose key is rotated.
type secret struct {
	folder string
	t      *testing.T
	s      *servicetest.Service
	id     string // of the key in it
}

func newSecret(t *testing.T, s *servicetest.Service) *secret {
	t.Helper()
	m := &secret{folder: t.TempDir(), t: t, s: s}
	m.write("url", s.URL)
	m.write("project-id", "pr_1")
	m.rotate()
	return m
}

// rotate puts a new key into the Secret, then revokes the old one.
func (m *secret) rotate() {
	m.t.Helper()
	key, record := m.s.Keys.Minted(pgkeys.MintOptions{ProjectID: "pr_1"})
	m.write("api-key", key)
	if m.id != "" {
		if _, err := m.s.Keys.Revoke(m.t.Context(), "pr_1", m.id); err != nil {
			m.t.Fatal(err)
		}
	}
	m.id = record.ID
}

// write replaces a file at once, as the kubelet does.
func (m *secret) write(name, value string) {
	m.t.Helper()
	next := filepath.Join(m.folder, ".next")
	if err := os.WriteFile(next, []byte(value), 0o600); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(m.folder, name)); err != nil {
		m.t.Fatal(err)
	}
}

// TestFollowThroughRotations checks that a follower with --api-key-file loses nothing and never stops while its key is
// rotated. TestExampleFollow checks the Go client with the Secret of an APIKey.
func TestFollowThroughRotations(t *testing.T) {
	t.Parallel()
	s, _ := clitest.Entries(t)
	m := newSecret(t, s)
	out, err := os.Create(filepath.Join(t.TempDir(), "changes.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	clitest.StartTo(t, out, "changes", "--follow", "--url", s.URL, "--api-key-file", filepath.Join(m.folder, "api-key"))
	for n := range 4 {
		id := fmt.Sprintf("en_%d", n)
		s.MustIngest(t, "entries", clitest.Entry(id, n))
		eventually.True(t, "the command gets "+id, func() bool {
			content := clitest.Text(t, out.Name())
			return strings.Count(content, id) == 1 && strings.Count(content, "\n") == n+1
		})
		m.rotate()
	}
}
