package try_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
)

// blocks matches the blocks of commands that a page marks as run by TestUp.
var blocks = regexp.MustCompile("(?ms)^<!-- run by TestUp -->\n```sh\n(.*?)^```$")

// testPage runs the commands of a page one after the other, as a reader would while lectern up runs on folder. The path of
// the page begins at the root of the repository. The output must contain the given texts.
func testPage(t *testing.T, folder, name string, want ...string) {
	page, err := os.ReadFile(filepath.Join("../../..", name))
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	for _, block := range blocks.FindAllSubmatch(page, -1) {
		script.Write(block[1])
	}
	if script.Len() == 0 {
		t.Fatalf("%s has no commands", name)
	}
	// The reader's folder has the program in bin, and lectern up's data.
	work := t.TempDir()
	if err := os.Mkdir(filepath.Join(work, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(work, "bin", "lectern")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(folder, filepath.Join(work, ".lectern")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-ec", script.String())
	cmd.Dir = work
	cmd.Env = append(os.Environ(), clitest.AsCommand+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	for _, text := range want {
		if !strings.Contains(string(out), text) {
			t.Errorf("the output does not contain %q: %s", text, out)
		}
	}
}
