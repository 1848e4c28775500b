package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/cli/internal/csvrow"
	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/shared/testing/golden"
)

// ingest is a server that stores records by entry_id, rejects records with "bad" in them, and fails from its failAt-th
// batch on.
type ingest struct {
	stored  map[string]string
	batches int
	lines   int
	failAt  int
}

var errCut = errors.New("cut")

func (s *ingest) send(_ context.Context, ndjson []byte) (client.Receipt, error) {
	s.batches++
	if s.failAt > 0 && s.batches >= s.failAt {
		return client.Receipt{}, errCut
	}
	if s.stored == nil {
		s.stored = map[string]string{}
	}
	var r client.Receipt
	n := 0
	for text := range bytes.Lines(ndjson) {
		n++
		s.lines++
		var record struct {
			ID string `json:"entry_id"`
		}
		_ = json.Unmarshal(text, &record)
		switch id := record.ID; {
		case id == "" || bytes.Contains(text, []byte("bad")):
			r.Rejected++
			r.Rejects = append(r.Rejects, client.Reject{Line: n, Code: "invalid_record", Message: "no good"})
		case s.stored[id] != "":
			r.Existing++
		default:
			r.Stored++
			s.stored[id] = string(bytes.TrimSpace(text))
		}
	}
	return r, nil
}

func input(name, content string) Input {
	return Input{Name: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }}
}

func entries(n int) string {
	var b strings.Builder
	for i := range n {
		switch i % 1000 {
		case 17:
			fmt.Fprintf(&b, `{"entry_id":"bad%d"}`+"\r\n", i)
		case 18:
			b.WriteString("\n")
		default:
			fmt.Fprintf(&b, `{"entry_id":"e%d","entry_data":"%s"}`+"\n", i, strings.Repeat("x", i%50))
		}
	}
	return b.String()
}

func csvEntries(n int) string {
	var b strings.Builder
	b.WriteString("\ufeffid,note\n")
	for i := range n {
		switch i % 1000 {
		case 17:
			fmt.Fprintf(&b, "bad%d,\"a\r\nb\"\n", i)
		case 18:
			b.WriteString("short\n\n")
		default:
			fmt.Fprintf(&b, "e%d,\"a \"\"b\"\"\nc\"\n", i)
		}
	}
	return b.String()
}

func columns() csvrow.Options {
	return csvrow.Options{Set: []string{"entry_id={id}", "group_id=g", "project_id=p", "embeddable_id=m", "contact_id=row {#row}", "created_at=2024-01-01"}}
}

func TestCutAndResumedEqualsUncut(t *testing.T) {
	for _, tt := range []struct {
		name    string
		inputs  []Input
		columns csvrow.Options
	}{
		{"ndjson", []Input{input("a.ndjson", entries(4500))}, columns()},
		{"csv", []Input{input("a.csv", csvEntries(4500))}, columns()},
		{"several", []Input{input("a.ndjson", entries(1500)), input("b.csv", csvEntries(3000))}, columns()},
		{"equal rows", []Input{input("a.csv", "id,note\n"+strings.Repeat("bad,\ne,same\n", 2500))},
			csvrow.Options{Set: append([]string{"entry_id={id}{#hash}"}, columns().Set[1:]...)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run := func(folder string, s *ingest, restart bool) (Result, error) {
				return Run(t.Context(), Options{
					Inputs: tt.inputs, Delimiter: ',', Shape: csvrow.Entries(), Columns: tt.columns, Send: s.send, Target: "t",
					State: filepath.Join(folder, "state.json"), Rejects: filepath.Join(folder, "rejects"), Restart: restart,
				})
			}
			rejects := func(folder string) string {
				b, err := os.ReadFile(filepath.Join(folder, "rejects"))
				if err != nil {
					t.Fatal(err)
				}
				return string(b)
			}
			uncut, whole := &ingest{}, t.TempDir()
			want, err := run(whole, uncut, false)
			if err != nil {
				t.Fatal(err)
			}
			if want.Rejected == 0 || want.Stored != len(uncut.stored) || want.Resumed {
				t.Fatalf("uncut: %+v", want)
			}
			for failAt := 1; failAt <= uncut.batches; failAt++ {
				folder := t.TempDir()
				s := &ingest{failAt: failAt}
				if _, err := run(folder, s, false); !errors.Is(err, errCut) {
					t.Fatalf("cut at batch %d: %v", failAt, err)
				}
				s.failAt = 0
				got, err := run(folder, s, false)
				if err != nil {
					t.Fatal(err)
				}
				if got.Resumed != (failAt > 1) {
					t.Errorf("cut at batch %d: resumed %v", failAt, got.Resumed)
				}
				if diff := cmp.Diff(want.Summary, got.Summary); diff != "" {
					t.Errorf("cut at batch %d: %s", failAt, diff)
				}
				if diff := cmp.Diff(uncut.stored, s.stored); diff != "" {
					t.Errorf("cut at batch %d: %s", failAt, diff)
				}
				if s.lines != uncut.lines {
					t.Errorf("cut at batch %d: %d lines were acknowledged in all, want %d", failAt, s.lines, uncut.lines)
				}
				if diff := cmp.Diff(rejects(whole), rejects(folder)); diff != "" {
					t.Errorf("cut at batch %d: rejects: %s", failAt, diff)
				}
				if _, err := os.Stat(filepath.Join(folder, "state.json")); !os.IsNotExist(err) {
					t.Errorf("the state is left: %v", err)
				}
			}
		})
	}
}

func TestRejectsNameTheOriginal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rejects")
	in := "id,note\nx,1\nbad,\"two\nlines\"\n\nshort\nx,\xff\n5\"6,7\ny,é2\n"
	s := &ingest{}
	got, err := Run(t.Context(), Options{Inputs: []Input{input("f.csv", in)}, Delimiter: ',', Shape: csvrow.Entries(), Columns: columns(), Send: s.send, Rejects: path})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Summary{Stored: 2, Rejected: 4}, got.Summary); diff != "" {
		t.Error(diff)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"file":"f.csv","line":6,"code":"invalid_row","message":"the row has 1 cells and the header 2","record":"short"}
{"file":"f.csv","line":7,"code":"invalid_row","message":"not valid UTF-8","record":null,"record_base64":"eCz/"}
{"file":"f.csv","line":8,"code":"invalid_row","message":"a quote within a field that does not begin with one","record":"5\"6,7"}
{"file":"f.csv","line":3,"code":"invalid_record","message":"no good","record":"bad,\"two\nlines\""}
`
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Error(diff)
	}
}

func TestStateIsChecked(t *testing.T) {
	cut := func(t *testing.T, o Options) Options {
		o.Shape, o.Delimiter, o.State = csvrow.Entries(), ',', filepath.Join(t.TempDir(), "s")
		o.Inputs = []Input{input("a", entries(2500))}
		o.Send = (&ingest{failAt: 3}).send
		if _, err := Run(t.Context(), o); !errors.Is(err, errCut) {
			t.Fatal(err)
		}
		o.Send = (&ingest{}).send
		return o
	}
	for _, tt := range []struct {
		name   string
		change func(*Options)
		want   string
	}{
		{"same", func(*Options) {}, ""},
		{"grown", func(o *Options) { o.Inputs = []Input{input("a", entries(2500)+entries(10))} }, ""},
		{"changed", func(o *Options) { o.Inputs = []Input{input("a", "{}\n"+entries(2500))} }, "have changed"},
		{"shorter", func(o *Options) { o.Inputs = []Input{input("a", entries(20))} }, "shorter than"},
		{"other target", func(o *Options) { o.Target = "u" }, "of another import"},
		{"other file", func(o *Options) { o.Inputs = []Input{input("b", entries(2500))} }, "of another import"},
		{"other rejects", func(o *Options) { o.Rejects += "x" }, "lacks rejects"},
		{"restart", func(o *Options) { o.Target, o.Restart, o.Rejects = "u", true, o.Rejects+"x" }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := cut(t, Options{Target: "t", Rejects: filepath.Join(t.TempDir(), "r")})
			tt.change(&o)
			_, err := Run(t.Context(), o)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestUpgrades checks that an import goes on that a process of each released version left.
func TestUpgrades(t *testing.T) {
	o := Options{
		Target: "t", Shape: csvrow.Entries(), Delimiter: ',', State: filepath.Join(t.TempDir(), "s"), Rejects: filepath.Join(t.TempDir(), "r"), Columns: columns(),
		Inputs: []Input{input("a.csv", csvEntries(4500))},
	}
	cut := func() string {
		o := o
		o.Send = (&ingest{failAt: 4}).send
		if _, err := Run(t.Context(), o); !errors.Is(err, errCut) {
			t.Fatal(err)
		}
		state, err := os.ReadFile(o.State)
		if err != nil {
			t.Fatal(err)
		}
		return string(state)
	}
	golden.EachVersion(t, "state.json", cut, func(t *testing.T, state string) {
		uncut, want := &ingest{}, o
		want.Send, want.State = uncut.send, ""
		whole, err := Run(t.Context(), want)
		if err != nil {
			t.Fatal(err)
		}
		cut() // which leaves the rejects
		if err := os.WriteFile(o.State, []byte(state), 0o600); err != nil {
			t.Fatal(err)
		}
		s := &ingest{}
		o := o
		o.Send = s.send
		got, err := Run(t.Context(), o)
		if err != nil || !got.Resumed || got.Summary != whole.Summary || s.lines >= uncut.lines {
			t.Errorf("%d lines, %+v, %v; want fewer than %d, and %+v", s.lines, got, err, uncut.lines, whole)
		}
	})
}

func TestLongLinesAreRejectedAlone(t *testing.T) {
	in := `{"entry_id":"a"}` + "\n" + `{"entry_id":"` + strings.Repeat("x", csvrow.MaxRowBytes) + "\"}\n" + `{"entry_id":"b"}`
	s := &ingest{}
	got, err := Run(t.Context(), Options{Inputs: []Input{input("f", in)}, Shape: csvrow.Entries(), Send: s.send})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Summary{Stored: 2, Rejected: 1}, got.Summary); diff != "" {
		t.Error(diff)
	}
}

func TestReceiptMustAddUp(t *testing.T) {
	for _, in := range []client.Receipt{{}, {Stored: 2}, {Rejected: 1}, {Rejected: 1, Rejects: []client.Reject{{Line: 2}}}} {
		_, err := Run(t.Context(), Options{
			Inputs: []Input{input("f", `{"entry_id":"a"}`)}, Shape: csvrow.Entries(),
			Send: func(context.Context, []byte) (client.Receipt, error) { return in, nil },
		})
		if err == nil {
			t.Errorf("%+v for one line is believed", in)
		}
	}
}

// TestResumedReadsTheSameDialect: what comes after the acknowledged rows cannot change how a file is read.
func TestResumedReadsTheSameDialect(t *testing.T) {
	var rows strings.Builder
	rows.WriteString("id;note\r")
	for i := range 1500 {
		fmt.Fprintf(&rows, "e%d;a,b\r", i)
	}
	s, state := &ingest{failAt: 2}, filepath.Join(t.TempDir(), "state.json")
	run := func(content string) (Result, error) {
		return Run(t.Context(), Options{Inputs: []Input{input("a.csv", content)}, Shape: csvrow.Entries(), Columns: columns(), Send: s.send, Target: "t", State: state})
	}
	if _, err := run(rows.String()); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	s.failAt = 0
	r, err := run(rows.String() + "last;two\nlines\r") // alone, the line feed would end the lines
	if err != nil || r.Stored != 1501 || r.Rejected != 0 || !strings.Contains(s.stored["last"], `two\\nlines`) {
		t.Errorf("%+v, %v: %s", r, err, s.stored["last"])
	}
}
