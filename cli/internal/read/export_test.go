package read_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/shared/testing/needs"
)

// The flags reach the export. The package export tests the contents of files.
func TestFlattenedExport(t *testing.T) {
	t.Parallel()
	a := clitest.NewAPI(t, 250)
	folder := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		clitest.Write(t, path, content)
		return path
	}
	rows, err := csv.NewReader(strings.NewReader(clitest.Must(t, a.Environ(), "", "export", "entries", "--flatten", "--columns", "auto", "-o", "csv", "--page-size", "100"))).ReadAll()
	if err != nil || len(rows) != 251 || len(rows[0]) != 9 || rows[0][8] != "text" || rows[3][8] != "xx" || rows[3][7] != `{"text":"xx"}` {
		t.Errorf("%v, %d rows: %v", err, len(rows), rows)
	}
	named := file("columns.json", `[{"key": "text", "name": "answer"}]`)
	out := filepath.Join(folder, "out.Parquet")
	r := clitest.Run(t, "", a.Environ(), "export", "entries", "--flatten", "--columns", named, "--limit", "150", "--page-size", "100", "--out", out)
	if r.Code != shell.ExitOK || r.Out != "" || !strings.HasPrefix(r.Err, "Exported 150 entries") {
		t.Fatalf("%+v", r)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	all, err := parquet.Read[any](bytes.NewReader(b), int64(len(b)))
	if err != nil || len(all) != 150 {
		t.Fatalf("%d rows, %v", len(all), err)
	}
	at := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	want := map[string]any{
		"entry_id": "e3", "group_id": "g", "project_id": "pr_1", "embeddable_id": "m", "contact_id": "c",
		"created_at": at, "updated_at": at, "entry_data": `{"text":"xxx"}`, "answer": "xxx",
	}
	if diff := cmp.Diff(want, all[3]); diff != "" {
		t.Error(diff)
	}

	for _, tt := range []struct {
		name string
		args []string
		says string
	}{
		{"format before name", []string{"entries", "--flatten", "-o", "ndjson", "--out", out}, "the format ndjson; allowed: csv, parquet"},
		{"no columns", []string{"entries", "--flatten", "--columns", "none", "--out", out}, "--columns takes auto or a file: open none: no such file"},
		{"an unknown type", []string{"entries", "--flatten", "--columns", file("bad.json", `[{"key": "a", "type": "int"}]`), "--out", out}, `bad.json: key "a" has the type "int"; allowed: text, double, integer, boolean, timestamp, date`},
		{"no list", []string{"entries", "--flatten", "--columns", file("no-list.json", `{"a": 1}`), "--out", out}, "want a list such as"},
		{"embeddables by name", []string{"embeddables", "--out", "e.parquet"}, "embeddables cannot be written as parquet; allowed: ndjson, csv"},
		{"versions", []string{"versions", "e", "-o", "parquet"}, "versions cannot be written as parquet"},
		{"experiments", []string{"experiments", "-o", "parquet"}, "experiments cannot be written as parquet"},
		{"another format", []string{"entries", "-o", "xlsx"}, `--output was given as "xlsx"; allowed: ndjson, csv, parquet`},
	} {
		if r := clitest.Run(t, "", a.Environ(), append([]string{"export"}, tt.args...)...); r.Code != shell.ExitUsage || r.Out != "" || !strings.Contains(r.Err, tt.says) {
			t.Errorf("%s: %+v; want %q", tt.name, r, tt.says)
		}
	}
}

// Keys beyond the number of columns that there are at most are counted.
func TestFlattenedExportOfTooManyKeys(t *testing.T) {
	t.Parallel()
	data := map[string]int{}
	for i := range 1003 {
		data[fmt.Sprint("k", i)] = i
	}
	list := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		text, _ := json.Marshal(data)
		_ = json.NewEncoder(w).Encode(client.Entry{EntryID: "e", Data: string(text)})
	}))
	defer list.Close()
	environ := map[string]string{"LECTERN_URL": list.URL, "LECTERN_PROJECT_ID": "pr_1", "LECTERN_API_KEY": "rk_1"}
	r := clitest.Run(t, "", environ, "export", "entries", "--flatten", "-o", "csv")
	if r.Code != shell.ExitOK || !strings.Contains(r.Err, "Some keys of entry_data have no column, because there are 1000 already") || strings.Count(r.Out[:strings.Index(r.Out, "\n")], ",") != 7+1000 {
		t.Errorf("exit code %d: %s", r.Code, r.Err)
	}
}

// A flattened export of 400,000 entries, 174 MiB of CSV, stays within 128 MiB, whatever the format.
func TestLongFlattenedExportMemory(t *testing.T) {
	needs.Long(t)
	const total = 400_000
	texts := make([]string, 10_000)
	for i := range texts {
		var data strings.Builder
		fmt.Fprintf(&data, `{"n":%d.5,"ok":true,"at":"2024-01-01T00:00:00Z"`, i)
		for k := i % 4; k < 17; k += 4 { // each entry answers a quarter of the questions
			fmt.Fprintf(&data, `,"question_%d":"an answer %x"`, k, i*(k+7)*2654435761)
		}
		text, _ := json.Marshal(data.String() + "}")
		texts[i] = string(text)
	}
	list := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		from, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
		to := min(from+limit, total)
		if to < total {
			w.Header().Set("X-Next-Cursor", strconv.Itoa(to))
		}
		for i := from; i < to; i++ {
			_, _ = fmt.Fprintf(w, `{"entry_id":"e%d","group_id":"g%d","project_id":"pr_1","embeddable_id":"m%d","contact_id":"c%d","created_at":"2024-01-01T00:00:00Z","updated_at":"2024-01-01T00:00:00Z","entry_data":%s}`+"\n",
				i, i%10, i%50, i/3, texts[i%len(texts)])
		}
	}))
	t.Cleanup(list.Close)
	for _, format := range []string{"parquet", "csv"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "entries."+format)
			began := time.Now()
			process := clitest.Start(t, "export", "entries", "--flatten", "--url", list.URL, "--out", out)
			peak, converting := 0, time.Time{}
			for ended := false; !ended; {
				select {
				case <-process.Ended:
					ended = true
				case <-time.After(20 * time.Millisecond):
					peak = max(peak, peakMemory(process.Pid))
				}
				if _, err := os.Stat(out + ".part.out"); err == nil && converting.IsZero() {
					converting = time.Now()
				}
			}
			if process.Code != shell.ExitOK {
				t.Fatal(&process.Stderr)
			}
			info, err := os.Stat(out)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d MiB of memory, %v of which %v to convert, a file of %d MiB", peak>>20, time.Since(began), time.Since(converting), info.Size()>>20)
			if peak == 0 || peak > 128<<20 {
				t.Errorf("it took %d MiB of memory", peak>>20)
			}
		})
	}
}

// peakMemory returns how many bytes of memory a process had at most, or 0 if it has ended.
func peakMemory(pid int) int {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	defer f.Close()
	status, _ := io.ReadAll(f)
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kib, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(strings.SplitN(rest, "\n", 2)[0]), " kB"))
	return kib << 10
}

// A binary format never reaches a terminal.
func TestNoParquetOnTerminal(t *testing.T) {
	t.Parallel()
	a := clitest.NewAPI(t, 3)
	export := func(width int, args ...string) clitest.Result {
		return clitest.RunIn(t, shell.Session{In: strings.NewReader(""), Environ: a.Environ(), Width: width},
			append([]string{"export", "entries", "-o", "parquet", "--quiet"}, args...)...)
	}
	if r := export(80); r.Code != shell.ExitUsage || r.Out != "" || !strings.Contains(r.Err, "parquet was asked for on a terminal; allowed: ndjson, csv") {
		t.Errorf("%+v", r)
	}
	if r := export(0); r.Code != shell.ExitOK || !strings.HasPrefix(r.Out, "PAR1") {
		t.Errorf("%+v", r)
	}
	file := filepath.Join(t.TempDir(), "entries")
	if r := export(80, "--out", file); r.Code != shell.ExitOK {
		t.Errorf("%+v", r)
	}
	if b, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(b), "PAR1") {
		t.Error(err)
	}
}
