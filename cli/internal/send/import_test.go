package send_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/needs"
)

// TestDryRunSaysWhatTheRunSays: into an empty project, both count the same records and name the same lines.
func TestDryRunSaysWhatTheRunSays(t *testing.T) {
	t.Parallel()
	_, environ := clitest.Entries(t)
	var table strings.Builder
	table.WriteString("id;day;n\n")
	for i := range 3090 { // more than a batch
		fmt.Fprintf(&table, "%d;31.1.2024;%d\n", i%4, i/8)
	}
	for i := range 5 {
		fmt.Fprintf(&table, "%d;31.1.2024\n4;%d.2.2024;\n;31.1.2024;\n%s;31.1.2024;\n", i, 31+i, strings.Repeat("x", 2000))
	}
	table.WriteString("a\x01;1.1.0000;\nb;1.1.2024;5\"x\n3;1.1.2024;1,5\n")
	for _, tt := range []struct {
		resource, records string
		flags             []string
		want              string
		lines             int // in front of the counts
	}{
		// Of eight rows, the second of an id is equal to the first.
		{"entries", table.String(), []string{"--format", "csv", "--time-format", "dmy", "--set", "entry_id=e{id}", "--set", "contact_id={id}",
			"--set", "group_id=g", "--set", "embeddable_id=m", "--set", "created_at={day}"}, "4 new, 1542 changed, 1545 unchanged, 22 rejected", 21},
		{"events", strings.Repeat(`{"entry_id":"e1","contact_id":"c","project_id":"pr_1","group_id":"g","embeddable_id":"m","event_type":"x","timestamp":"2024-01-01"}`+"\n", 3) +
			`{"entry_id":"e1","contact_id":"c","project_id":"pr_1","group_id":"g","embeddable_id":"m","event_type":"flowpage.viewed","timestamp":"2024-01-01"}`,
			nil, "1 new, 0 changed, 2 unchanged, 1 rejected", 1},
	} {
		args := append([]string{"import", tt.resource}, tt.flags...)
		dry := clitest.Run(t, tt.records, environ, append(args, "--dry-run", "-")...)
		run := clitest.Run(t, tt.records, environ, append(args, "-")...)
		notes := func(r clitest.Result) string {
			return regexp.MustCompile("(Nothing was sent|Imported).*: ").ReplaceAllString(r.Err, "")
		}
		if diff := cmp.Diff(notes(run), notes(dry)); diff != "" || dry.Code != shell.ExitRejected || run.Code != shell.ExitRejected {
			t.Errorf("%s, %d and %d: the run and the dry run differ: %s", tt.resource, run.Code, dry.Code, diff)
		}
		if !strings.Contains(run.Err, ": "+tt.want+".") || !strings.Contains(run.Err, "Imported") || strings.Count(run.Err, "\n") != tt.lines+1 {
			t.Errorf("%s: %s; want %s", tt.resource, run.Err, tt.want)
		}
	}
}

// TestLongRealTables imports tables of the npm package vega-datasets, and compares each cell of the export.
func TestLongRealTables(t *testing.T) {
	needs.Long(t)
	needs.Node(t)
	folder := t.TempDir()
	if out, err := exec.Command("npm", "install", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund", "vega-datasets@2.11.0").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, environ := clitest.Entries(t)
	for _, tt := range []struct {
		file, day, layout string // the column with the time, and how package time writes it
		flags             []string
	}{
		{"zipcodes.csv", "", "", nil},
		{"unemployment.tsv", "", "", nil},
		{"weather.csv", "date", "2006-01-02", []string{"--time-format", "iso"}},
		{"stocks.csv", "date", "Jan 2 2006", []string{"--time-format", "%b %d %Y"}},
		{"github.csv", "time", "2006/01/02 15:04:05", []string{"--time-format", "iso"}},
		{"birdstrikes.csv", "Flight Date", "2006-01-02", []string{"--time-format", "%Y-%m-%d"}},
	} {
		path := filepath.Join(folder, "node_modules/vega-datasets/data", tt.file)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		in := csv.NewReader(strings.NewReader(string(data)))
		if strings.HasSuffix(tt.file, ".tsv") {
			in.Comma = '\t'
		}
		rows, err := in.ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		args := append([]string{"import", "entries", path, "--set", "entry_id=" + tt.file + "/{#row}", "--set", "contact_id=c", "--set", "group_id=g",
			"--set", "embeddable_id=" + tt.file}, tt.flags...)
		created := "2024-01-01"
		if tt.day != "" {
			args = append(args, "--keep", tt.day)
			created = "{" + tt.day + "}"
		}
		r := clitest.Run(t, "", environ, append(args, "--set", "created_at="+created)...)
		if r.Code != shell.ExitOK || !strings.Contains(r.Err, fmt.Sprintf("%d new, 0 changed, 0 unchanged, 0 rejected", len(rows)-1)) {
			t.Fatalf("%+v", r)
		}
		exported := clitest.Must(t, environ, "", "export", "entries", "--embeddable-id", tt.file)
		cells := 0
		for line := range strings.Lines(exported) {
			var entry struct {
				ID        string    `json:"entry_id"`
				CreatedAt time.Time `json:"created_at"`
				Data      string    `json:"entry_data"`
			}
			var answers map[string]any
			if err := json.Unmarshal([]byte(line), &entry); err != nil {
				t.Fatal(err)
			}
			decoder := json.NewDecoder(strings.NewReader(entry.Data))
			decoder.UseNumber()
			if err := decoder.Decode(&answers); err != nil {
				t.Fatal(err)
			}
			number, err := strconv.Atoi(strings.TrimPrefix(entry.ID, tt.file+"/"))
			if err != nil || len(answers) != len(rows[0]) {
				t.Fatalf("%s: %v", line, err)
			}
			for i, name := range rows[0] {
				want := rows[number][i]
				if name == tt.day {
					if at, err := time.Parse(tt.layout, want); err != nil || !at.Equal(entry.CreatedAt) {
						t.Fatalf("%s, row %d: %s was created at %s, %v", tt.file, number, want, entry.CreatedAt, err)
					}
				}
				// The type of a value that is no text follows from its text.
				if got := answers[name]; got == nil && want != "" || got != nil && fmt.Sprint(got) != want {
					t.Fatalf("%s, row %d: %s is %v, want %q", tt.file, number, name, got, want)
				}
				cells++
			}
		}
		if cells != (len(rows)-1)*len(rows[0]) {
			t.Errorf("%s: %d cells came back, want %d", tt.file, cells, (len(rows)-1)*len(rows[0]))
		}
		t.Logf("%s: %d cells", tt.file, cells)
	}
}

// TestRowsWithoutIDs imports two forms without ids of answers, whose rows all entries are to be, and imports them again.
func TestRowsWithoutIDs(t *testing.T) {
	t.Parallel()
	_, environ := clitest.Entries(t)
	const header, yes = "Timestamp,Shop again?\n", "2024/03/01 10:00:00 AM GMT+1,Yes\n"
	one, two := header+yes+yes+"2024/03/01 10:00:01 AM GMT+1,No\n2024/03/02 10:00:00 AM GMT+1,\n", header+yes+"2024/03/05 9:00:00 PM GMT+1,5\n"
	run := func(in, embeddable string, flags ...string) clitest.Result {
		t.Helper()
		r := clitest.Run(t, in, environ, append([]string{"import", "entries", "-", "--as", "google-forms", "--set", "group_id=g", "--set", "embeddable_id=" + embeddable}, flags...)...)
		if r.Code != shell.ExitOK {
			t.Fatalf("%+v", r)
		}
		return r
	}
	says := func(r clitest.Result, want string) {
		t.Helper()
		if !strings.Contains(r.Err, want) {
			t.Errorf("%s; want %s", r.Err, want)
		}
	}
	total := func(want int) {
		t.Helper()
		if all := clitest.Must(t, environ, "", "export", "entries"); strings.Count(all, "\n") != want {
			t.Errorf("%d entries, want %d: %s", strings.Count(all, "\n"), want, all)
		}
	}
	// As version 0.1.0 stored them: the second form replaced rows of the first.
	for _, form := range [][2]string{{one, "m1"}, {two, "m2"}} {
		run(form[0], form[1], "--set", "entry_id=google-forms-{#row}", "--set", "contact_id=google-forms-{#row}")
	}
	total(4)
	const found = "Version 0.1.0 stored 2 entries by the numbers of rows, such as google-forms-"
	says(run(one, "m1", "--dry-run"), found)
	first := run(one, "m1")
	says(first, "2 new, 0 changed, 2 unchanged")
	says(first, found)
	says(first, ": 2 of the files' rows are among them")
	says(run(two, "m2"), "0 new, 0 changed, 2 unchanged")
	total(6)
	// A row is removed, a question is added, and columns and rows change their places.
	says(run("Why?,Shop again,Timestamp\n,No,2024/03/01 10:00:01 AM GMT+1\n,Yes,2024/03/01 10:00:00 AM GMT+1\nso,Yes,2024/03/07 10:00:00 AM GMT+1\n", "m3"), "3 new, 0")
	says(run("Timestamp,Again?\n2024/03/01 10:00:00 AM GMT+1,Yes\n2024/03/01 10:00:01 AM GMT+1,No\n", "m3"), "0 new, 2 changed")
	total(9)
	// Without a key, import cannot see what version 0.1.0 stored.
	delete(environ, "LECTERN_API_KEY")
	if r := clitest.Run(t, one, environ, "import", "entries", "-", "--as", "google-forms", "--set", "group_id=g", "--set", "embeddable_id=m1"); r.Code != shell.ExitUsage || !strings.Contains(r.Err, "google-forms-{#hash}") {
		t.Errorf("%+v", r)
	}
	says(run(one, "m1", "--dry-run"), "4 new, 0 changed, 0 unchanged")
	says(run(two, "m4", "--set", "entry_id=google-forms-{#hash}"), "2 new, 0 changed, 0 unchanged")
}

func TestImportKilledAndResumedLosesNothing(t *testing.T) {
	t.Parallel()
	a := clitest.NewAPI(t, 0)
	file := filepath.Join(t.TempDir(), "in.ndjson")
	var content strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&content, "{\"entry_id\":\"e%d\"}\n", i)
	}
	clitest.Write(t, file, content.String())
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
	clitest.Write(t, file, content)
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
		clitest.Write(t, file, content)
	}
	r = clitest.Run(t, "", a.Environ(), "import", "entries", table, records, "--set", "group_id=g", "--set", "contact_id=c", "--set", "embeddable_id=m", "--set", "created_at=2024-01-01T00:00:00Z")
	if r.Code != shell.ExitUsage || len(a.Taken()) != 1 || !strings.Contains(r.Err, "b.ndjson: the file is NDJSON") {
		t.Error(r, a.Taken())
	}
}
