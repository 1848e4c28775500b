package export

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/client"
)

var errCut = errors.New("cut")

// server serves a list of total entries. Its cutAt-th page breaks in the middle.
type server struct {
	total int
	cutAt int
	once  bool // the same fetch then sends the whole page
	pages int
}

func record(i int) string {
	views := ""
	for v := range i % 4 {
		if v > 0 {
			views += ","
		}
		views += fmt.Sprintf(`{"timestamp":"2024-01-01T00:00:%02dZ","page_id":"p%d","page_key":"k, \"%d\"","page_index":%d,"url":null}`, v, v, v, v)
	}
	return fmt.Sprintf(`{"entry_id":"e%d","group_id":"g","project_id":"p","embeddable_id":"m","contact_id":"c","created_at":"2024-01-01T00:00:00.1Z","updated_at":"2024-01-02T00:00:00Z","entry_data":"{\"a\":\"x\\ny\",\"n\":1.50}","page_views":[%s]}`+"\n", i, views)
}

func (s *server) fetch(_ context.Context, cursor string, limit int, receive func(client.RawPage) error) error {
	from, _ := strconv.Atoi(cursor)
	to := min(from+limit, s.total)
	s.pages++
	var body strings.Builder
	for i := from; i < to; i++ {
		body.WriteString(record(i))
	}
	page := client.RawPage{Body: strings.NewReader(body.String())}
	if to < s.total {
		page.NextCursor = strconv.Itoa(to)
	}
	if s.pages == s.cutAt {
		half := page
		half.Body = &breaking{strings.NewReader(body.String()[:body.Len()/2])}
		if err := receive(half); !errors.Is(err, errCut) || !s.once {
			return err
		}
	}
	return receive(page)
}

type breaking struct{ r *strings.Reader }

func (b *breaking) Read(p []byte) (int, error) {
	if n, err := b.r.Read(p); err == nil {
		return n, nil
	}
	return 0, errCut
}

func query(kind Kind, format Format) Query {
	return Query{URL: "http://h", ProjectID: "p", Kind: kind, Format: format}
}

func TestCutAndResumedEqualsUncut(t *testing.T) {
	for _, q := range []Query{query(Entries, NDJSON), query(Entries, CSV), query(PageViews, NDJSON), query(PageViews, CSV)} {
		t.Run(fmt.Sprintf("%s %s", q.Kind, q.Format), func(t *testing.T) {
			var want bytes.Buffer
			uncut := &server{total: 57}
			result, err := Run(t.Context(), Options{Query: q, Fetch: uncut.fetch, PageSize: 10, Stream: &want})
			if err != nil {
				t.Fatal(err)
			}
			if result.Records != 57 || result.Bytes != int64(want.Len()) {
				t.Errorf("%+v of %d bytes", result, want.Len())
			}
			for cut := 1; cut <= uncut.pages; cut++ {
				path := filepath.Join(t.TempDir(), "out")
				o := Options{Query: q, PageSize: 10, Path: path}
				o.Fetch = (&server{total: 57, cutAt: cut}).fetch
				if _, err := Run(t.Context(), o); !errors.Is(err, errCut) {
					t.Fatalf("cut at page %d: %v", cut, err)
				}
				if _, err := os.Stat(path); !os.IsNotExist(err) {
					t.Fatalf("cut at page %d: half an export stands as a whole one", cut)
				}
				// Bytes after the last settled page must not stay.
				f, err := os.OpenFile(path+".part", os.O_APPEND|os.O_WRONLY, 0)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = f.WriteString("half a rec")
				_ = f.Close()
				o.Fetch, o.PageSize = (&server{total: 57}).fetch, 7
				result, err := Run(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				if result.Resumed != (cut > 1) || result.Records != 57 {
					t.Errorf("cut at page %d: %+v", cut, result)
				}
				got, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want.String(), string(got)); diff != "" {
					t.Errorf("cut at page %d: %s", cut, diff)
				}
				if left, _ := filepath.Glob(path + ".*"); len(left) > 0 {
					t.Errorf("files left: %v", left)
				}
			}
		})
	}
}

func TestBrokenTransferIsForgotten(t *testing.T) {
	for _, path := range []string{"", filepath.Join(t.TempDir(), "f")} {
		var stream bytes.Buffer
		s := &server{total: 25, cutAt: 2, once: true}
		if _, err := Run(t.Context(), Options{Query: query(Entries, NDJSON), Fetch: s.fetch, PageSize: 10, Path: path, Stream: &stream}); err != nil {
			t.Fatal(err)
		}
		got := stream.String()
		if path != "" {
			b, _ := os.ReadFile(path)
			got = string(b)
		}
		var want strings.Builder
		for i := range 25 {
			want.WriteString(record(i))
		}
		if diff := cmp.Diff(want.String(), got); diff != "" {
			t.Errorf("to %q: %s", path, diff)
		}
	}
}

func TestCSVReadsBack(t *testing.T) {
	var b bytes.Buffer
	q := query(PageViews, CSV)
	q.IncludeURLs = true
	if _, err := Run(t.Context(), Options{Query: q, Fetch: (&server{total: 8}).fetch, PageSize: 3, Stream: &b}); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1+12 {
		t.Fatalf("%d rows, want a header and one a page view", len(rows))
	}
	want := []string{"e3", "g", "p", "m", "c", "2024-01-01T00:00:00.1Z", "2024-01-02T00:00:00Z", "2024-01-01T00:00:02Z", "p2", `k, "2"`, "2", ""}
	if diff := cmp.Diff(want, rows[6]); diff != "" {
		t.Error(diff)
	}
}

func TestFlowsAsCSV(t *testing.T) {
	for _, tt := range []struct {
		name  string
		kind  Kind
		in    string
		want  string
		fault string
	}{
		{name: "embeddable", kind: Embeddables, in: `{"embeddable_id":"e\u002F1","title":"Say \"hi\", twice","group_id":"g","project_id":"p"}`,
			want: "embeddable_id,title,group_id,project_id\ne/1,\"Say \"\"hi\"\", twice\",g,p\n"},
		{name: "version", kind: Versions, in: `{"embeddable_id":"e","version_number":9007199254740991,"saved_at":"2024-01-01T00:00:00.25Z"}`,
			want: "embeddable_id,version_number,saved_at\ne,9007199254740991,2024-01-01T00:00:00.25Z\n"},
		{name: "experiment", kind: Experiments,
			in: `{"id":"x","experimentId":"x","flowId":"f","name":null,"hypothesis":"","impact_metrics":["a","b"],"no_impact_metrics":[],"created_at":"2024-01-01T00:00:00Z","updated_at":"2024-01-02T00:00:00Z","observations":null,"outcome":"o","attachments":"[]","variants":"{\"control\":{}}","flow_ids":null,"paused_showing_variant":null,"winner_variant":"control","status":"completed","later":1}`,
			want: "id,experimentId,flowId,name,hypothesis,impact_metrics,no_impact_metrics,created_at,updated_at,observations,outcome,attachments,variants,flow_ids,paused_showing_variant,winner_variant,status\n" +
				`x,x,f,,,"[""a"",""b""]",[],2024-01-01T00:00:00Z,2024-01-02T00:00:00Z,,o,[],"{""control"":{}}",,,control,completed` + "\n"},
		{name: "a field is missing", kind: Versions, in: `{"embeddable_id":"e"}`, fault: "record 1: it has no version_number"},
		{name: "no object", kind: Versions, in: `[]`, fault: "record 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			_, err := Run(t.Context(), Options{Query: query(tt.kind, CSV), PageSize: 10, Stream: &b,
				Fetch: func(_ context.Context, _ string, _ int, receive func(client.RawPage) error) error {
					return receive(client.RawPage{Body: strings.NewReader(tt.in + "\n")})
				}})
			if tt.fault != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fault) {
					t.Errorf("got %v, want %s", err, tt.fault)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, b.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLimit(t *testing.T) {
	for _, limit := range []int{1, 10, 15, 20, 100} {
		q := query(Entries, NDJSON)
		q.Limit = limit
		var b bytes.Buffer
		s := &server{total: 57}
		if _, err := Run(t.Context(), Options{Query: q, Fetch: s.fetch, PageSize: 10, Stream: &b}); err != nil {
			t.Fatal(err)
		}
		if got := bytes.Count(b.Bytes(), []byte("\n")); got != min(limit, 57) {
			t.Errorf("limit %d: %d records", limit, got)
		}
	}
}

func TestPartOfAnotherQueryIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	o := Options{Query: query(Entries, NDJSON), Fetch: (&server{total: 57, cutAt: 3}).fetch, PageSize: 10, Path: path}
	if _, err := Run(t.Context(), o); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	o.Query.Direction, o.Fetch = "ASC", (&server{total: 57}).fetch
	_, err := Run(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), `its direction is "", not "ASC"`) {
		t.Fatalf("got %v, want one that names the direction", err)
	}
	o.Restart = true
	if result, err := Run(t.Context(), o); err != nil || result.Resumed {
		t.Errorf("restarted: %+v, %v", result, err)
	}
}

func TestTwoExportsOfOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	o := Options{Query: query(Entries, NDJSON), PageSize: 10, Path: path}
	o.Fetch = func(ctx context.Context, cursor string, limit int, receive func(client.RawPage) error) error {
		second := o
		second.Fetch = (&server{total: 5}).fetch
		if _, err := Run(ctx, second); err == nil || !strings.Contains(err.Error(), "another export") {
			t.Errorf("the second: %v", err)
		}
		return (&server{total: 5}).fetch(ctx, cursor, limit, receive)
	}
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

func TestEndlessListIsRefused(t *testing.T) {
	fetch := func(_ context.Context, _ string, _ int, receive func(client.RawPage) error) error {
		return receive(client.RawPage{Body: strings.NewReader(record(1)), NextCursor: "same"})
	}
	_, err := Run(t.Context(), Options{Query: query(Entries, NDJSON), Fetch: fetch, PageSize: 1, Stream: &bytes.Buffer{}})
	if err == nil || !strings.Contains(err.Error(), "never end") {
		t.Errorf("got %v", err)
	}
}
