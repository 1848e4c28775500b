package read_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/cli/internal/shell"
)

func TestExportKilledAndResumedEqualsUncut(t *testing.T) {
	t.Parallel()
	a := clitest.NewAPI(t, 4_000)
	folder := t.TempDir()
	whole, cut := filepath.Join(folder, "whole.csv"), filepath.Join(folder, "cut.csv")
	if r := clitest.Run(t, "", a.Environ(), "export", "entries", "--out", whole, "--page-size", "100"); r.Code != 0 {
		t.Fatal(r)
	}
	want, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	for _, killAt := range []int{1, 17, 40} {
		t.Run(fmt.Sprint("at page ", killAt), func(t *testing.T) {
			reached, proceed := a.HoldAt(killAt)
			process := clitest.Start(t, "export", "entries", "--url", a.URL, "--out", cut, "--page-size", "100")
			<-reached
			process.End(t, syscall.SIGKILL)
			close(proceed)
			if _, err := os.Stat(cut); !os.IsNotExist(err) {
				t.Fatalf("killed at page %d of 40, and the file is there: %s", killAt, &process.Stderr)
			}
			a.With(func(a *clitest.API) { a.Pages, a.Hold = 0, nil })
			r := clitest.Run(t, "", a.Environ(), "export", "entries", "--out", cut, "--page-size", "100")
			if r.Code != 0 {
				t.Fatal(r)
			}
			if pages := a.Answered(); pages != 40-killAt+1 {
				t.Errorf("%d pages were read then, want to go on at page %d", pages, killAt)
			}
			got, err := os.ReadFile(cut)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != string(want) {
				t.Errorf("the resumed file differs: %d bytes, want %d", len(got), len(want))
			}
			if err := os.Remove(cut); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestGet(t *testing.T) {
	t.Parallel()
	a := clitest.NewAPI(t, 25)
	r := clitest.Run(t, "", a.Environ(), "get", "entry", "e1", "-o", "json")
	if want := "{\n  \"entry_id\": \"e1\",\n  \"n\": 1.50\n}\n"; r.Code != 0 || r.Out != want {
		t.Errorf("%+v, want %q", r, want)
	}
	if r := clitest.Run(t, "", a.Environ(), "get", "entry", "e1"); r.Out != `{"entry_id":"e1","n":1.50}`+"\n" {
		t.Errorf("%+v", r)
	}
	r = clitest.Run(t, "", a.Environ(), "get", "entries", "--limit", "20")
	if r.Code != 0 || strings.Count(r.Out, "entry_id") != 20 || r.Err != "There is more: --cursor 20\n" {
		t.Errorf("%+v", r)
	}
	r = clitest.Run(t, "", a.Environ(), "get", "entries", "--cursor", "20", "--quiet")
	if r.Code != 0 || strings.Count(r.Out, "entry_id") != 5 || r.Err != "" {
		t.Errorf("%+v", r)
	}
}

func TestInterruptedExportSaysSo(t *testing.T) {
	t.Parallel()
	a := clitest.NewAPI(t, 100)
	reached, proceed := a.HoldAt(2)
	out := filepath.Join(t.TempDir(), "out")
	process := clitest.Start(t, "export", "entries", "--url", a.URL, "--page-size", "10", "--out", out)
	<-reached
	process.End(t, os.Interrupt)
	close(proceed)
	if said := process.Stderr.String(); process.Code != shell.ExitInterrupted || !strings.Contains(said, "10 entries are complete") || !strings.Contains(said, "lectern: interrupted") {
		t.Errorf("exit code %d: %s", process.Code, said)
	}
}
