package read_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/needs"
)

// TestLongPython runs the program of the page about Python: it reads the entries, follows the feed, and continues from its
// cursor after a kill.
func TestLongPython(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	python := needs.Program(t, "scripts/setup python", "python3")
	page, err := os.ReadFile("../../../docs/how-to/python.md")
	if err != nil {
		t.Fatal(err)
	}
	program := regexp.MustCompile("(?s)<!-- run by TestLongPython -->\n```python\n(.*?)```").FindSubmatch(page)
	if program == nil {
		t.Fatal("the page has no program")
	}
	if lines := bytes.Count(bytes.TrimSpace(program[1]), []byte("\n")); lines > 30 {
		t.Errorf("the program has %d lines", lines)
	}
	s, environ := clitest.Entries(t)
	s.MustIngest(t, "entries", clitest.Entry("en_old", 1))
	folder := t.TempDir()
	run := func(until string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), python, "-u", "-c", strings.ReplaceAll(string(program[1]), "2026-01-01", "2024-01-01"))
		cmd.Dir = folder
		cmd.Env = os.Environ()
		for name, value := range environ {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		out, err := os.Create(filepath.Join(folder, "out"))
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		eventually.True(t, "the program has stored a cursor and prints "+until, func() bool {
			_, err := os.Stat(filepath.Join(folder, "cursor"))
			text, _ := os.ReadFile(out.Name())
			return err == nil && strings.Contains(string(text), until)
		})
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = out.Close()
	}
	run("en_old {'text': '<&> \\n \"1\"'")
	first, err := os.ReadFile(filepath.Join(folder, "out"))
	if err != nil || strings.Count(string(first), " entry\n") != 1 {
		t.Errorf("%v: %s", err, first)
	}
	s.MustIngest(t, "events", clitest.Event("en_old", 1))
	run(" event\n")
	if second, err := os.ReadFile(filepath.Join(folder, "out")); err != nil || strings.Contains(string(second), " entry\n") {
		t.Errorf("the second run begins again: %v: %s", err, second)
	}
}
