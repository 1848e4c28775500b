package ingest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/ingest"
	"github.com/lectern-dev/lectern/shared/wire"
)

// plainNote is a note of the reference decoder.
type plainNote struct {
	ID      *string  `json:"id"`
	Project *string  `json:"project_id"`
	Kind    *string  `json:"kind"`
	At      *string  `json:"at"`
	Size    *int64   `json:"size"`
	Count   *int64   `json:"count"`
	Title   *string  `json:"title"`
	Data    *string  `json:"data"`
	Extra   *string  `json:"extra"`
	Tags    []string `json:"tags"`
	Others  []string `json:"others"`
}

// reference decodes a line with another decoder. It returns nil if the line is invalid.
func reference(line []byte) *note {
	var p plainNote
	if jsonv2.Unmarshal(line, &p, jsonv2.RejectUnknownMembers(true)) != nil {
		return nil
	}
	if p.ID == nil || p.Project == nil || p.Kind == nil || p.At == nil || p.Size == nil || p.Data == nil || p.Tags == nil {
		return nil
	}
	at, err := wire.ParseTime(*p.At)
	good := err == nil && wire.ValidIdentifier(*p.ID) && wire.ValidIdentifier(*p.Project) && *p.Size >= 0 &&
		(*p.Kind == "plain" || *p.Kind == "odd" && p.Title != nil) && json.Valid([]byte(*p.Data)) &&
		(p.Count == nil || int64(int32(*p.Count)) == *p.Count) && (p.Title == nil || !strings.Contains(*p.Title, "\x00"))
	if p.Extra != nil {
		good = good && json.Valid([]byte(*p.Extra)) && jsontext.Value(*p.Extra).Kind() == '{'
	}
	for _, tag := range p.Tags {
		good = good && !strings.Contains(tag, "\x00")
	}
	for _, other := range p.Others {
		good = good && wire.ValidIdentifier(other)
	}
	if !good {
		return nil
	}
	return &note{
		Project: *p.Project, ID: *p.ID, Kind: *p.Kind, At: at, Size: *p.Size, Count: p.Count, Title: p.Title,
		Data: *p.Data, Extra: p.Extra, Tags: p.Tags, Others: p.Others,
	}
}

// FuzzBody compares the handler with a naive decoder of the same body. Both find the same records in the same order and
// reject the same lines, with reads of any size.
func FuzzBody(f *testing.F) {
	const longest = 300
	good := noteLine("pr_1", "a", "")
	for _, seed := range []string{
		"", "\n", good, good + "\r\n" + good, "\uFEFF" + good, good + "\n" + good[:40],
		good + "\n" + strings.Repeat("x", 2*longest) + "\n" + good,
		strings.Repeat(" ", longest+1) + "\n" + good,
		with("title", `"\ud800"`), with("title", "\"\xff\""), with("title", `"a\u0000b"`), with("id", `"n1","id":"n2"`),
		with("size", "9007199254740993"), with("size", "1e3"), with("count", "-2147483649"), with("at", `"0001-01-01"`),
		with("data", `"{\"a\":1,\"a\":2}"`), with("data", `"\"\\ud800\""`), with("extra", `"{}"`), with("extra", `" []"`),
		with("tags", `["\u00e4", ""]`), with("others", `["x"]`), with("others", `[]`), with("colour", "1"),
		strings.Repeat("[", 10001), with("tags", strings.Repeat("[", 200)), "null", "[]", "{}", "{\"id\":", "\x00",
		strings.Replace(with("id", `"n1"`), `"id"`, `"\u0069d"`, 1),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var want []note
		var rejected []int64
		for i, line := range bytes.Split(bytes.TrimPrefix(body, []byte("\uFEFF")), []byte("\n")) {
			line = bytes.TrimSuffix(line, []byte("\r"))
			if len(line) > longest {
				rejected = append(rejected, int64(i+1))
				continue
			}
			if len(bytes.Trim(line, " \t\r")) == 0 {
				continue
			}
			if n := reference(line); n != nil {
				want = append(want, *n)
			} else {
				rejected = append(rejected, int64(i+1))
			}
		}
		var got []note
		k := kind(&fakeStore{})
		k.Project = func(*note) string { return "all" } // one project keeps the order
		k.Store = func(_ context.Context, _ string, records []note) (ingest.Result, error) {
			got = append(got, records...)
			return ingest.Result{Stored: len(records)}, nil
		}
		r := httptest.NewRequest(http.MethodPost, "/", iotest.HalfReader(bytes.NewReader(body)))
		w := httptest.NewRecorder()
		ingest.Handler(k, ingest.Options{MaxRecordBytes: longest}).ServeHTTP(w, r)
		var summary ingest.Summary
		if err := json.Unmarshal(w.Body.Bytes(), &summary); err != nil || w.Code != http.StatusOK {
			t.Fatalf("answer %d %q: %v", w.Code, w.Body, err)
		}
		var lines []int64
		for _, reject := range summary.Rejects {
			lines = append(lines, reject.Line)
		}
		if diff := cmp.Diff(rejected[:min(len(rejected), 1000)], lines); diff != "" && len(rejected)+len(lines) > 0 {
			t.Errorf("rejected lines (-want +got):\n%s%v", diff, summary.Rejects)
		}
		if summary.Rejected != int64(len(rejected)) || summary.Stored != int64(len(want)) {
			t.Errorf("stored %d, rejected %d; want %d, %d", summary.Stored, summary.Rejected, len(want), len(rejected))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("records (-want +got):\n%s", diff)
		}
	})
}
