package command

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
)

func TestExportKilledAndResumedEqualsUncut(t *testing.T) {
	t.Parallel()
	a := newAPI(t, 4_000)
	folder := t.TempDir()
	whole, cut := filepath.Join(folder, "whole.csv"), filepath.Join(folder, "cut.csv")
	if r := lectern(t, "", a.environ(), "export", "entries", "--out", whole, "--page-size", "100"); r.code != 0 {
		t.Fatal(r)
	}
	want, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	for _, killAt := range []int{1, 2, 17, 40} {
		t.Run(fmt.Sprint("at page ", killAt), func(t *testing.T) {
			reached, proceed := a.holdAt(killAt)
			process := start(t, "export", "entries", "--url", a.URL, "--out", cut, "--page-size", "100")
			<-reached
			process.end(t, syscall.SIGKILL)
			close(proceed)
			if _, err := os.Stat(cut); !os.IsNotExist(err) {
				t.Fatalf("killed at page %d of 40, and the file is there: %s", killAt, &process.stderr)
			}
			a.with(func(a *api) { a.pages, a.hold = 0, nil })
			r := lectern(t, "", a.environ(), "export", "entries", "--out", cut, "--page-size", "100")
			if r.code != 0 {
				t.Fatal(r)
			}
			if pages := a.answered(); pages != 40-killAt+1 {
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

func TestImportKilledAndResumedLosesNothing(t *testing.T) {
	t.Parallel()
	a := newAPI(t, 0)
	file := filepath.Join(t.TempDir(), "in.ndjson")
	var content strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&content, "{\"entry_id\":\"e%d\"}\n", i)
	}
	if err := os.WriteFile(file, []byte(content.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	reached, proceed := a.holdAt(8)
	process := start(t, "import", "entries", "--internal-url", a.URL, file)
	<-reached
	process.end(t, syscall.SIGKILL)
	// The server takes the batch in whose acknowledgement nobody hears any more.
	close(proceed)
	eventually.True(t, "the eighth batch", func() bool { return len(a.taken()) == 8000 })
	r := lectern(t, "", a.environ(), "import", "entries", file)
	if r.code != 0 || !strings.Contains(r.err, "Imported entries: 20000 new, 0 changed, 0 unchanged, 0 rejected, with the earlier run") {
		t.Fatal(r)
	}
	seen := map[string]int{}
	for _, line := range a.taken() {
		seen[line]++
	}
	if len(seen) != 20_000 {
		t.Errorf("%d different records arrived, want 20000", len(seen))
	}
	if len(a.taken()) != 21_000 {
		t.Errorf("%d lines were sent, want one batch twice: 21000", len(a.taken()))
	}
	if left, _ := filepath.Glob(file + ".*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestForeignCSV(t *testing.T) {
	t.Parallel()
	a := newAPI(t, 0)
	file := filepath.Join(t.TempDir(), "survey.csv")
	rejects := filepath.Join(t.TempDir(), "rejects")
	content := "\"\",\"Sex\",\"Span\",\"Smoke\",\"M.I\",\"Zip\"\n" +
		"\"1\",\"Female\",18.50,\"\",true,\"00750\"\n" +
		"\"2\",\"say \"\"hi\"\", twice\",,\"Never\",,-3\n" +
		"\"3\",\"bad\",1,2,3,4\n" +
		"\"4\",\"short\"\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	r := lectern(t, "", a.environ(), "import", "entries", file, "--rejects", rejects,
		"--set", "entry_id=s-{#1}", "--set", "contact_id={#1}", "--set", "group_id=g", "--set", "embeddable_id=m", "--set", "created_at=2024-01-01T00:00:00Z")
	if r.code != shell.ExitRejected {
		t.Errorf("exit code %d, want %d: %s", r.code, shell.ExitRejected, r.err)
	}
	head := func(id string) string {
		return `{"entry_id":"s-` + id + `","group_id":"g","project_id":"pr_1","embeddable_id":"m","contact_id":"` + id + `","created_at":"2024-01-01T00:00:00Z","updated_at":"2024-01-01T00:00:00Z","entry_data":`
	}
	want := []string{
		head("1") + `"{\"Sex\":\"Female\",\"Span\":18.50,\"Smoke\":null,\"M.I\":true,\"Zip\":\"00750\"}"}`,
		head("2") + `"{\"Sex\":\"say \\\"hi\\\", twice\",\"Span\":null,\"Smoke\":\"Never\",\"M.I\":null,\"Zip\":-3}"}`,
	}
	if diff := cmp.Diff(want, a.taken()); diff != "" {
		t.Error(diff)
	}
	got, err := os.ReadFile(rejects)
	if err != nil {
		t.Fatal(err)
	}
	wantRejects := fmt.Sprintf(`{"file":%q,"line":5,"code":"invalid_row","message":"the row has 2 cells and the header 6","record":"\"4\",\"short\""}
{"file":%q,"line":4,"code":"invalid_record","message":"It is bad.","record":"\"3\",\"bad\",1,2,3,4"}
`, file, file)
	if diff := cmp.Diff(wantRejects, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestStandardInputAndDryRun(t *testing.T) {
	t.Parallel()
	a := newAPI(t, 0)
	if r := lectern(t, `{"entry_id":"a"}`, a.environ(), "import", "entries", "-"); r.code != 0 || len(a.taken()) != 1 {
		t.Error(r, a.taken())
	}
	r := lectern(t, "entry_id;group_id;embeddable_id;contact_id;created_at;n\rb;g;m;c;2024-01-01;1\r", a.environ(), "import", "entries", "--dry-run", "-")
	want := `{"entry_id":"b","group_id":"g","project_id":"pr_1","embeddable_id":"m","contact_id":"c","created_at":"2024-01-01","updated_at":"2024-01-01","entry_data":"{\"n\":1}"}` + "\n"
	if r.code != 0 || r.out != want || len(a.taken()) != 1 || !strings.Contains(r.err, `cells are separated by ";"`) {
		t.Error(r, a.taken())
	}

	// Nothing is sent if a later file is refused.
	folder := t.TempDir()
	table, records := filepath.Join(folder, "a.csv"), filepath.Join(folder, "b.ndjson")
	for file, content := range map[string]string{table: "entry_id,n\nc,1\n", records: `{"entry_id":"d"}`} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r = lectern(t, "", a.environ(), "import", "entries", table, records, "--set", "group_id=g", "--set", "contact_id=c", "--set", "embeddable_id=m", "--set", "created_at=2024-01-01T00:00:00Z")
	if r.code != shell.ExitUsage || len(a.taken()) != 1 || !strings.Contains(r.err, "b.ndjson: the file is NDJSON") {
		t.Error(r, a.taken())
	}
}

func TestWaitsAsTold(t *testing.T) {
	t.Parallel()
	a := newAPI(t, 100)
	a.with(func(a *api) {
		a.before = func(pages int, _ *http.Request) (int, string) {
			switch pages {
			case 2:
				return http.StatusTooManyRequests, "1"
			case 4:
				return http.StatusServiceUnavailable, "0"
			}
			return 0, ""
		}
	})
	r := lectern(t, "", a.environ(), "export", "entries", "--page-size", "50")
	if r.code != 0 || strings.Count(r.out, "\n") != 100 {
		t.Error(r.code, r.err)
	}
}

func TestGet(t *testing.T) {
	t.Parallel()
	a := newAPI(t, 25)
	r := lectern(t, "", a.environ(), "get", "entry", "e1", "-o", "json")
	if want := "{\n  \"entry_id\": \"e1\",\n  \"n\": 1.50\n}\n"; r.code != 0 || r.out != want {
		t.Errorf("%+v, want %q", r, want)
	}
	if r := lectern(t, "", a.environ(), "get", "entry", "e1"); r.out != `{"entry_id":"e1","n":1.50}`+"\n" {
		t.Errorf("%+v", r)
	}
	r = lectern(t, "", a.environ(), "get", "entries", "--limit", "20")
	if r.code != 0 || strings.Count(r.out, "entry_id") != 20 || r.err != "There is more: --cursor 20\n" {
		t.Errorf("%+v", r)
	}
	r = lectern(t, "", a.environ(), "get", "entries", "--cursor", "20", "--quiet")
	if r.code != 0 || strings.Count(r.out, "entry_id") != 5 || r.err != "" {
		t.Errorf("%+v", r)
	}
}

func TestFailuresSayWhatToDo(t *testing.T) {
	t.Parallel()
	a := newAPI(t, 5)
	with := func(change ...string) map[string]string {
		e := a.environ()
		for i := 0; i < len(change); i += 2 {
			e[change[i]] = change[i+1]
		}
		return e
	}
	missing := filepath.Join(t.TempDir(), "none")
	for _, tt := range []struct {
		name    string
		environ map[string]string
		args    []string
		code    int
		want    string
	}{
		{"no project", with("LECTERN_PROJECT_ID", ""), []string{"get", "entries"}, shell.ExitUsage, "--project"},
		{"no key", with("LECTERN_API_KEY", ""), []string{"get", "entries"}, shell.ExitUsage, "set LECTERN_API_KEY"},
		{"no ingest key", with("LECTERN_INGEST_API_KEY", ""), []string{"import", "entries", "-"}, shell.ExitUsage, "set LECTERN_INGEST_API_KEY"},
		{"wrong key", with("LECTERN_API_KEY", "rk_2"), []string{"get", "entries"}, shell.ExitFailure, "check the key"},
		{"no such entry", with(), []string{"get", "entry", "e9"}, shell.ExitFailure, "entry_not_found"},
		{"no such file", with(), []string{"import", "entries", missing}, shell.ExitFailure, "no such file"},
		{"no env file", with(), []string{"get", "entries", "--env-file", missing}, shell.ExitUsage, "lectern up writes"},
		{"template", with(), []string{"import", "entries", "--format", "csv", "--set", "entry_id={x}", "-"}, shell.ExitFailure, "no column"},
		{"delimiter", with(), []string{"import", "entries", "--delimiter", "::", "-"}, shell.ExitUsage, "one character"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := lectern(t, "a,b\n", tt.environ, tt.args...)
			if r.code != tt.code {
				t.Errorf("exit code %d, want %d", r.code, tt.code)
			}
			if !strings.Contains(r.err, tt.want) || r.out != "" {
				t.Errorf("said %q and printed %q, want %q", r.err, r.out, tt.want)
			}
			if strings.Count(r.err, "\n") != 1 || !strings.HasPrefix(r.err, "lectern: ") {
				t.Errorf("not one line: %q", r.err)
			}
		})
	}
}

func TestEnvFile(t *testing.T) {
	a := newAPI(t, 3)
	file := filepath.Join(t.TempDir(), "demo.env")
	content := fmt.Sprintf("# variables\nLECTERN_URL='%s'\nexport LECTERN_PROJECT_ID=\"pr_1\"\nLECTERN_API_KEY='rk_'\\''1'\n", a.URL)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	// The file's key is wrong, and the environment's wins.
	if r := lectern(t, "", map[string]string{"LECTERN_API_KEY": "rk_1"}, "get", "entries", "--env-file", file); r.code != 0 {
		t.Error(r)
	}
	if r := lectern(t, "", nil, "get", "entries", "--env-file", file); r.code != shell.ExitFailure || !strings.Contains(r.err, "unauthorized") {
		t.Error(r)
	}
	// An empty variable is none.
	t.Setenv("LECTERN_PROJECT_ID", "")
	t.Setenv("LECTERN_API_KEY", "rk_1")
	s := shell.ProcessSession(t.Context())
	var said bytes.Buffer
	s.Out, s.Err = io.Discard, &said
	if code := Main(s, []string{"get", "entries", "--env-file", file}); code != 0 {
		t.Error(said.String())
	}
	// And a flag wins over both.
	if r := lectern(t, "", map[string]string{"LECTERN_API_KEY": "rk_0"}, "get", "entries", "--env-file", file, "--api-key", "rk_1"); r.code != 0 {
		t.Error(r)
	}
}

func TestInterruptedExportSaysSo(t *testing.T) {
	t.Parallel()
	a := newAPI(t, 100)
	reached, proceed := a.holdAt(2)
	out := filepath.Join(t.TempDir(), "out")
	process := start(t, "export", "entries", "--url", a.URL, "--page-size", "10", "--out", out)
	<-reached
	process.end(t, os.Interrupt)
	close(proceed)
	if said := process.stderr.String(); process.code != shell.ExitInterrupted || !strings.Contains(said, "10 entries are complete") || !strings.Contains(said, "lectern: interrupted") {
		t.Errorf("exit code %d: %s", process.code, said)
	}
}

func TestHelpOfEveryCommandHasExamples(t *testing.T) {
	t.Parallel()
	parser, err := (&shell.Session{}).Parser(&commands{}, description)
	if err != nil {
		t.Fatal(err)
	}
	for _, leaf := range parser.Model.Leaves(true) {
		if leaf.Name == "version" {
			continue
		}
		if !strings.Contains(leaf.Detail, "Example") {
			t.Errorf("lectern %s --help shows no example", leaf.Path())
		}
		r := lectern(t, "", nil, append(strings.Fields(strings.TrimPrefix(leaf.Path(), "lectern ")), "--help")...)
		if r.code != 0 || r.err != "" || !strings.Contains(r.out, "Usage: lectern") {
			t.Errorf("%s --help: %d %q", leaf.Path(), r.code, r.err)
		}
	}
}
