package command_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
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
	for _, killAt := range []int{1, 2, 17, 40} {
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

func TestImportKilledAndResumedLosesNothing(t *testing.T) {
	t.Parallel()
	a := clitest.NewAPI(t, 0)
	file := filepath.Join(t.TempDir(), "in.ndjson")
	var content strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&content, "{\"entry_id\":\"e%d\"}\n", i)
	}
	if err := os.WriteFile(file, []byte(content.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	reached, proceed := a.HoldAt(8)
	process := clitest.Start(t, "import", "entries", "--internal-url", a.URL, file)
	<-reached
	process.End(t, syscall.SIGKILL)
	// The server takes the batch in whose acknowledgement nobody hears any more.
	close(proceed)
	eventually.True(t, "the eighth batch", func() bool { return len(a.Taken()) == 8000 })
	r := clitest.Run(t, "", a.Environ(), "import", "entries", file)
	if r.Code != 0 || !strings.Contains(r.Err, "Imported entries: 20000 new, 0 changed, 0 unchanged, 0 rejected, with the earlier run") {
		t.Fatal(r)
	}
	seen := map[string]int{}
	for _, line := range a.Taken() {
		seen[line]++
	}
	if len(seen) != 20_000 {
		t.Errorf("%d different records arrived, want 20000", len(seen))
	}
	if len(a.Taken()) != 21_000 {
		t.Errorf("%d lines were sent, want one batch twice: 21000", len(a.Taken()))
	}
	if left, _ := filepath.Glob(file + ".*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestForeignCSV(t *testing.T) {
	t.Parallel()
	a := clitest.NewAPI(t, 0)
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
	r := clitest.Run(t, "", a.Environ(), "import", "entries", file, "--rejects", rejects,
		"--set", "entry_id=s-{#1}", "--set", "contact_id={#1}", "--set", "group_id=g", "--set", "embeddable_id=m", "--set", "created_at=2024-01-01T00:00:00Z")
	if r.Code != shell.ExitRejected {
		t.Errorf("exit code %d, want %d: %s", r.Code, shell.ExitRejected, r.Err)
	}
	head := func(id string) string {
		return `{"entry_id":"s-` + id + `","group_id":"g","project_id":"pr_1","embeddable_id":"m","contact_id":"` + id + `","created_at":"2024-01-01T00:00:00Z","updated_at":"2024-01-01T00:00:00Z","entry_data":`
	}
	want := []string{
		head("1") + `"{\"Sex\":\"Female\",\"Span\":18.50,\"Smoke\":null,\"M.I\":true,\"Zip\":\"00750\"}"}`,
		head("2") + `"{\"Sex\":\"say \\\"hi\\\", twice\",\"Span\":null,\"Smoke\":\"Never\",\"M.I\":null,\"Zip\":-3}"}`,
	}
	if diff := cmp.Diff(want, a.Taken()); diff != "" {
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
	a := clitest.NewAPI(t, 0)
	if r := clitest.Run(t, `{"entry_id":"a"}`, a.Environ(), "import", "entries", "-"); r.Code != 0 || len(a.Taken()) != 1 {
		t.Error(r, a.Taken())
	}
	r := clitest.Run(t, "entry_id;group_id;embeddable_id;contact_id;created_at;n\rb;g;m;c;2024-01-01;1\r", a.Environ(), "import", "entries", "--dry-run", "-")
	want := `{"entry_id":"b","group_id":"g","project_id":"pr_1","embeddable_id":"m","contact_id":"c","created_at":"2024-01-01","updated_at":"2024-01-01","entry_data":"{\"n\":1}"}` + "\n"
	if r.Code != 0 || r.Out != want || len(a.Taken()) != 1 || !strings.Contains(r.Err, `cells are separated by ";"`) {
		t.Error(r, a.Taken())
	}

	// Nothing is sent if a later file is refused.
	folder := t.TempDir()
	table, records := filepath.Join(folder, "a.csv"), filepath.Join(folder, "b.ndjson")
	for file, content := range map[string]string{table: "entry_id,n\nc,1\n", records: `{"entry_id":"d"}`} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r = clitest.Run(t, "", a.Environ(), "import", "entries", table, records, "--set", "group_id=g", "--set", "contact_id=c", "--set", "embeddable_id=m", "--set", "created_at=2024-01-01T00:00:00Z")
	if r.Code != shell.ExitUsage || len(a.Taken()) != 1 || !strings.Contains(r.Err, "b.ndjson: the file is NDJSON") {
		t.Error(r, a.Taken())
	}
}

func TestWaitsAsTold(t *testing.T) {
	t.Parallel()
	a := clitest.NewAPI(t, 100)
	a.With(func(a *clitest.API) {
		a.Before = func(pages int, _ *http.Request) (int, string) {
			switch pages {
			case 2:
				return http.StatusTooManyRequests, "1"
			case 4:
				return http.StatusServiceUnavailable, "0"
			}
			return 0, ""
		}
	})
	r := clitest.Run(t, "", a.Environ(), "export", "entries", "--page-size", "50")
	if r.Code != 0 || strings.Count(r.Out, "\n") != 100 {
		t.Error(r.Code, r.Err)
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

func TestFailuresSayWhatToDo(t *testing.T) {
	t.Parallel()
	a := clitest.NewAPI(t, 5)
	with := func(change ...string) map[string]string {
		e := a.Environ()
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
			r := clitest.Run(t, "a,b\n", tt.environ, tt.args...)
			if r.Code != tt.code {
				t.Errorf("exit code %d, want %d", r.Code, tt.code)
			}
			if !strings.Contains(r.Err, tt.want) || r.Out != "" {
				t.Errorf("said %q and printed %q, want %q", r.Err, r.Out, tt.want)
			}
			if strings.Count(r.Err, "\n") != 1 || !strings.HasPrefix(r.Err, "lectern: ") {
				t.Errorf("not one line: %q", r.Err)
			}
		})
	}
}

func TestEnvFile(t *testing.T) {
	a := clitest.NewAPI(t, 3)
	file := filepath.Join(t.TempDir(), "demo.env")
	content := fmt.Sprintf("# variables\nLECTERN_URL='%s'\nexport LECTERN_PROJECT_ID=\"pr_1\"\nLECTERN_API_KEY='rk_'\\''1'\n", a.URL)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	// The file's key is wrong, and the environment's wins.
	if r := clitest.Run(t, "", map[string]string{"LECTERN_API_KEY": "rk_1"}, "get", "entries", "--env-file", file); r.Code != 0 {
		t.Error(r)
	}
	if r := clitest.Run(t, "", nil, "get", "entries", "--env-file", file); r.Code != shell.ExitFailure || !strings.Contains(r.Err, "unauthorized") {
		t.Error(r)
	}
	// An empty variable is none.
	t.Setenv("LECTERN_PROJECT_ID", "")
	t.Setenv("LECTERN_API_KEY", "rk_1")
	s := shell.ProcessSession(t.Context())
	if r := clitest.RunIn(t, *s, "get", "entries", "--env-file", file); r.Code != 0 {
		t.Error(r)
	}
	// And a flag wins over both.
	if r := clitest.Run(t, "", map[string]string{"LECTERN_API_KEY": "rk_0"}, "get", "entries", "--env-file", file, "--api-key", "rk_1"); r.Code != 0 {
		t.Error(r)
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
