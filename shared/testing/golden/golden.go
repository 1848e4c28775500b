// Package golden compares the output of tests with files. Production code does not import it; the linter checks this.
package golden

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files of the tests that run")

// Check fails t unless the file has the content got. The failure names the command that writes the file: the test itself
// with the flag -update.
func Check(t testing.TB, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-file +test):\n%s\nIf the change is right, write the file: %s", file, diff, command(t))
	}
}

// EachVersion checks that what released versions have stored in a file is read. testdata/versions/VERSION/FILE has the
// content that a version wrote; EachVersion passes each to read, in a subtest. With LECTERN_DUMP_VERSION, which
// scripts/dump-version sets, EachVersion writes the file of that version instead, with the content that write returns.
func EachVersion(t *testing.T, file string, write func() string, read func(t *testing.T, content string)) {
	t.Helper()
	path := func(version string) string { return filepath.Join("testdata", "versions", version, file) }
	if version := os.Getenv("LECTERN_DUMP_VERSION"); version != "" {
		content := write()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path(version)), 0o755), os.WriteFile(path(version), []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
		return
	}
	files, err := filepath.Glob(path("*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s is not there: %v", path("*"), err)
	}
	for _, name := range files {
		t.Run(filepath.Base(filepath.Dir(name)), func(t *testing.T) {
			content, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			read(t, string(content))
		})
	}
}

// command returns the command that runs t with -update, from any folder of the repository.
func command(t testing.TB) string {
	test, _, _ := strings.Cut(t.Name(), "/")
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for root := folder; ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.work")); err == nil {
			if folder, err = filepath.Rel(root, folder); err != nil {
				t.Fatal(err)
			}
			return "go test ./" + filepath.ToSlash(folder) + " -run '^" + test + "$' -update"
		}
		if root == filepath.Dir(root) {
			return "go test . -run '^" + test + "$' -update"
		}
	}
}
