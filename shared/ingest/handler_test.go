package ingest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lectern-dev/lectern/shared/ingest"
)

// post sends body to a handler of notes with a ResponseRecorder.
func post(t testing.TB, s *fakeStore, o ingest.Options, body string, headers ...string) (int, ingest.Summary, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/internal/notes", strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	ingest.Handler(kind(s), o).ServeHTTP(w, r)
	var summary ingest.Summary
	if w.Code == http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), &summary); err != nil {
			t.Fatalf("answer %q: %v", w.Body, err)
		}
	}
	return w.Code, summary, w.Body.String()
}

func mustPost(t testing.TB, s *fakeStore, o ingest.Options, body string, headers ...string) ingest.Summary {
	t.Helper()
	code, summary, text := post(t, s, o, body, headers...)
	if code != http.StatusOK {
		t.Fatalf("status %d, want 200: %s", code, text)
	}
	return summary
}

func TestLinesOneByOne(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	quoted := func(s string) string {
		b, _ := json.Marshal(s)
		return string(b)
	}
	big := strings.Repeat("x", 1<<20)
	tests := []struct {
		name string
		in   string
		want ingest.Code // "" if the line is stored
		says string      // a part of the message
	}{
		{"good", with("id", `"n1"`), "", ""},
		{"every field", strings.TrimSuffix(with("count", `-5`), "}") + `,"title":"a \"b\" \u00e9 😀","extra":"{\"a\":1}","others":["x"]}`, "", ""},
		{"nulls", with("title", "null"), "", ""},
		{"white space", " \t{ \"id\" : \"n1\" , \"project_id\":\"pr_1\",\"kind\":\"plain\",\"at\":\"2022-01-01\",\"size\":1,\"data\":\"1\",\"tags\":[ ] } \t", "", ""},
		{"escaped name", strings.Replace(with("id", `"n1"`), `"id"`, `"\u0069d"`, 1), "", ""},
		{"other order", `{"tags":["a","b"],"data":"[]","size":0,"at":"2022-01-01T00:00:00+01:00","kind":"plain","project_id":"pr_1","id":"n1"}`, "", ""},

		{"not JSON", `hello`, ingest.InvalidJSON, "not valid JSON"},
		{"not an object", `[1]`, ingest.InvalidJSON, "not a JSON object"},
		{"a number", `1`, ingest.InvalidJSON, "not a JSON object"},
		{"cut", with("id", `"n1"`)[:30], ingest.InvalidJSON, "ends in the middle"},
		{"two on a line", with("id", `"n1"`) + with("id", `"n2"`), ingest.InvalidJSON, "goes on"},
		{"trailing comma", strings.Replace(with("id", `"n1"`), "[]}", "[],}", 1), ingest.InvalidJSON, ""},
		{"name twice", with("id", `"n1","id":"n2"`), ingest.InvalidJSON, `"id" comes twice`},
		{"name twice, escaped", with("id", `"n1","\u0069d":"n2"`), ingest.InvalidJSON, `"id" comes twice`},
		{"invalid UTF-8", with("title", "\"\xff\""), ingest.InvalidJSON, ""},
		{"overlong UTF-8", with("title", "\"\xc0\xaf\""), ingest.InvalidJSON, ""},
		{"surrogate in UTF-8", with("title", "\"\xed\xa0\x80\""), ingest.InvalidJSON, ""},
		{"lone surrogate", with("title", `"\ud800"`), ingest.InvalidJSON, ""},
		{"swapped surrogates", with("title", `"\udc00\ud800"`), ingest.InvalidJSON, ""},
		{"raw control character", with("title", "\"a\x01b\""), ingest.InvalidJSON, ""},
		{"raw NUL", with("title", "\"a\x00b\""), ingest.InvalidJSON, ""},
		{"NUL between", with("title", "\x00null"), ingest.InvalidJSON, ""},
		{"single quotes", `{'id':'n1'}`, ingest.InvalidJSON, ""},
		{"NaN", with("size", `NaN`), ingest.InvalidJSON, ""},

		{"unknown field", with("colour", `1`), ingest.UnknownField, `"colour" is not known; allowed: id, project_id`},
		{"name of other case", with("ID", `1`), ingest.UnknownField, `"ID"`},
		{"empty name", with("", `1`), ingest.UnknownField, `""`},
		{"missing", `{"id":"n1","kind":"plain","at":"2022-01-01T00:00:00Z","size":1,"data":"{}","tags":[]}`, ingest.MissingField, `"project_id"`},
		{"missing all", `{}`, ingest.MissingField, `"id"`},
		{"missing by the record's own rule", with("kind", `"odd"`), ingest.MissingField, `"title"`},

		{"null for a required text", with("id", `null`), ingest.InvalidField, `"id" was given as null`},
		{"empty identifier", with("id", `""`), ingest.InvalidField, `1 to 256 bytes`},
		{"identifier of 256 bytes", with("id", quoted(strings.Repeat("é", 128))), "", ""},
		{"identifier of 257 bytes", with("id", quoted(strings.Repeat("é", 128)+"x")), ingest.InvalidField, `1 to 256 bytes`},
		{"NUL in an identifier", with("id", `"a\u0000b"`), ingest.InvalidField, `NUL`},
		{"NUL in a text", with("title", `"a\u0000b"`), ingest.InvalidField, `NUL`},
		{"a number for a text", with("title", `5`), ingest.InvalidField, `"title" was given as 5; allowed: text`},
		{"an object for a text", with("data", `{"a":1}`), ingest.InvalidField, `"data" was given as {"a":1}; allowed: JSON as text`},
		{"not one of", with("kind", `"strange"`), ingest.InvalidField, `allowed: plain, odd`},
		{"long value is cut", with("kind", quoted(strings.Repeat("é", 200))), ingest.InvalidField, `é…; allowed`},
		{"1 MB of text", with("title", quoted(big)), "", ""},

		{"year 0001", with("at", `"0001-01-01T00:00:00Z"`), "", ""},
		{"year 9999", with("at", `"9999-12-31T23:59:59.999999Z"`), "", ""},
		{"before year 0001", with("at", `"0001-01-01T00:00:00+01:00"`), ingest.InvalidField, `"at" was given as`},
		{"year 10000", with("at", `"10000-01-01T00:00:00Z"`), ingest.InvalidField, `RFC 3339`},
		{"30 February", with("at", `"2022-02-30T00:00:00Z"`), ingest.InvalidField, `RFC 3339`},
		{"a number for a time", with("at", `1640995200`), ingest.InvalidField, `RFC 3339`},

		{"2^53+1", with("size", `9007199254740993`), "", ""},
		{"2^63-1", with("size", `9223372036854775807`), "", ""},
		{"2^63", with("size", `9223372036854775808`), ingest.InvalidField, `an integer from 0 to 9223372036854775807`},
		{"below the least", with("size", `-1`), ingest.InvalidField, `an integer from 0`},
		{"a fraction", with("size", `1.0`), ingest.InvalidField, `was given as 1.0; allowed: an integer`},
		{"an exponent", with("size", `1e3`), ingest.InvalidField, `an integer`},
		{"a quoted number", with("size", `"1"`), ingest.InvalidField, `an integer`},
		{"beyond 32 bits", with("count", `2147483648`), ingest.InvalidField, `an integer from -2147483648 to 2147483647`},

		{"JSON scalar", with("data", `"12.50"`), "", ""},
		{"JSON with names twice", with("data", quoted(`{"a":1,"a":2}`)), "", ""},
		{"JSON with a lone surrogate", with("data", quoted(`"\ud800"`)), "", ""},
		{"JSON with an escaped NUL", with("data", quoted(`"\u0000"`)), "", ""},
		{"JSON with 2^53+1", with("data", quoted(`9007199254740993`)), "", ""},
		{"JSON 10,000 deep", with("data", quoted(deep(10000))), "", ""},
		{"JSON 10,001 deep", with("data", quoted(deep(10001))), ingest.InvalidField, `nested at most 10000 deep`},
		{"JSON of 1 MB", with("data", quoted(quoted(big))), "", ""},
		{"empty for JSON", with("data", `""`), ingest.InvalidField, `JSON as text`},
		{"no JSON in it", with("data", `"{"`), ingest.InvalidField, `JSON as text`},
		{"two JSON in it", with("data", `"1 2"`), ingest.InvalidField, `JSON as text`},
		{"JSON with a real NUL", with("data", `"\u0000"`), ingest.InvalidField, `JSON as text`},
		{"object expected", with("extra", `"[]"`), ingest.InvalidField, `a JSON object as text`},
		{"object after spaces", with("extra", `" \n{} "`), "", ""},

		{"array of another type", with("tags", `["a",1]`), ingest.InvalidField, `an array, each text`},
		{"not an array", with("tags", `"a"`), ingest.InvalidField, `an array`},
		{"bad element", with("others", `["a",""]`), ingest.InvalidField, `1 to 256 bytes`},
		{"nested 10,001 deep on the line itself", with("tags", deep(10001)), ingest.InvalidJSON, ``},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			// The handler must store the good lines before and after the line in any case.
			var s fakeStore
			got := mustPost(t, &s, ingest.Options{}, noteLine("pr_0", "before", "")+"\n"+tt.in+"\n"+noteLine("pr_0", "after", "")+"\n")
			want := ingest.Summary{Stored: 3, Rejects: []ingest.Reject{}}
			if tt.want != "" {
				want = ingest.Summary{Stored: 2, Rejected: 1, Rejects: []ingest.Reject{{Line: 2, Code: tt.want}}}
				if len(got.Rejects) == 1 {
					if m := got.Rejects[0].Message; !strings.Contains(m, tt.says) || len(m) > 400 {
						t.Errorf("message %q does not say %q", m, tt.says)
					}
					want.Rejects[0].Message = got.Rejects[0].Message
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLineNumbersAndEnds(t *testing.T) {
	a, b := noteLine("pr_1", "a", ""), noteLine("pr_1", "b", "")
	tests := []struct {
		name    string
		in      string
		want    string   // stored
		rejects []string // "line code"
	}{
		{"empty", "", "", nil},
		{"blank lines", "\n\r\n \t\n" + a + "\n\n", "a", nil},
		{"blank lines count", "\n\nx\n", "", []string{"3 invalid_json"}},
		{"CRLF", a + "\r\n" + b + "\r\n", "a b", nil},
		{"no end", a + "\n" + b, "a b", nil},
		{"cut last line", a + "\n" + b[:20], "a", []string{"2 invalid_json"}},
		{"byte order mark", "\uFEFF" + a + "\n" + b, "a b", nil},
		{"byte order mark later", a + "\n\uFEFF" + b, "a", []string{"2 invalid_json"}},
		{"byte order mark alone", "\uFEFF", "", nil},
		{"too long first", strings.Repeat("x", 3000) + "\n" + a, "a", []string{"1 record_too_large"}},
		{"too long among good", a + "\n" + strings.Repeat("x", 300_000) + "\n" + b + "\nx\n", "a b", []string{"2 record_too_large", "4 invalid_json"}},
		{"too long last, without end", a + "\n" + strings.Repeat("x", 300_000), "a", []string{"2 record_too_large"}},
		{"blanks that are too long", strings.Repeat(" ", 3000) + "\n" + a, "a", []string{"1 record_too_large"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var s fakeStore
			got := mustPost(t, &s, ingest.Options{MaxRecordBytes: 2048}, tt.in)
			var rejects []string
			for _, r := range got.Rejects {
				rejects = append(rejects, fmt.Sprintf("%d %s", r.Line, r.Code))
			}
			stored := strings.ReplaceAll(strings.Join(s.keys(), " "), "pr_1/", "")
			if stored != tt.want || int(got.Stored) != len(s.keys()) {
				t.Errorf("stored %q (%d), want %q", stored, got.Stored, tt.want)
			}
			if diff := cmp.Diff(tt.rejects, rejects); diff != "" {
				t.Errorf("rejects (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLongestLine(t *testing.T) {
	line := noteLine("pr_1", "a", "")
	for _, end := range []string{"", "\n", "\r\n"} {
		for _, mark := range []string{"", "\uFEFF"} {
			for less, want := range []int64{1, 0} {
				line := strings.TrimSuffix(line, "}") + strings.Repeat(" ", 2000) + "}"
				var s fakeStore
				got := mustPost(t, &s, ingest.Options{MaxRecordBytes: len(line) - less}, mark+line+end)
				if got.Stored != want || got.Rejected != 1-want {
					t.Errorf("end %q, mark %q, limit %d below the line: stored %d, rejected %d", end, mark, less, got.Stored, got.Rejected)
				}
			}
		}
	}
}

func TestTheFirstThousandRejectsAreListedAndAllCounted(t *testing.T) {
	var s fakeStore
	got := mustPost(t, &s, ingest.Options{}, strings.Repeat("bad\n"+noteLine("pr_1", "a", "")+"\n", 2500))
	if got.Rejected != 2500 || got.Stored != 1 || got.Existing != 2499 || len(got.Rejects) != 1000 {
		t.Fatalf("stored %d, existing %d, rejected %d, listed %d", got.Stored, got.Existing, got.Rejected, len(got.Rejects))
	}
	for i, r := range got.Rejects {
		if r.Line != int64(2*i+1) {
			t.Fatalf("reject %d is of line %d, want %d", i, r.Line, 2*i+1)
		}
	}
}

func zipped(t testing.TB, encoding, text string) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch encoding {
	case "gzip", "x-gzip", "GZIP":
		w = gzip.NewWriter(&b)
	case "zstd":
		z, err := zstd.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		w = z
	default:
		return text
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestCompression(t *testing.T) {
	text := noteLine("pr_1", "a", "") + "\n" + strings.Repeat("x", 1<<20) + "\n" + noteLine("pr_1", "b", "")
	for _, encoding := range []string{"", "identity", "gzip", "x-gzip", "GZIP", "zstd"} {
		t.Run("encoding "+encoding, func(t *testing.T) {
			headers := []string{"Content-Encoding", encoding}
			if encoding == "" {
				headers = nil
			}
			var s fakeStore
			got := mustPost(t, &s, ingest.Options{MaxRecordBytes: 4096}, zipped(t, encoding, text), headers...)
			if got.Stored != 2 || got.Rejected != 1 || got.Rejects[0].Line != 2 || got.Rejects[0].Code != ingest.RecordTooLarge {
				t.Errorf("answer %+v", got)
			}
			if got := mustPost(t, &s, ingest.Options{}, "", headers...); got.Stored != 0 {
				t.Errorf("empty body: %+v", got)
			}
		})
	}
	for _, encoding := range []string{"gzip", "zstd"} {
		whole := zipped(t, encoding, text)
		for name, body := range map[string]string{
			"cut": whole[:len(whole)-3], "not compressed": "hello, this is plain", "damaged": whole[:len(whole)/2] + "\x00\xff" + whole[len(whole)/2+2:],
		} {
			code, _, answer := post(t, &fakeStore{}, ingest.Options{}, body, "Content-Encoding", encoding)
			if code != http.StatusBadRequest || !strings.Contains(answer, "invalid_body") {
				t.Errorf("%s %s: %d %s, want 400 invalid_body", name, encoding, code, answer)
			}
		}
	}
}

func TestMediaTypes(t *testing.T) {
	tests := []struct {
		header, in string
		want       int
	}{
		{"Content-Type", "application/x-ndjson", 200},
		{"Content-Type", "application/ndjson; charset=UTF-8", 200},
		{"Content-Type", "application/jsonl", 200},
		{"Content-Type", "Application/JSON", 200},
		{"Content-Type", "text/plain;charset=utf-8", 200},
		{"Content-Type", "application/octet-stream", 200},
		{"Content-Type", "", 200},
		{"Content-Type", "application/x-www-form-urlencoded", 415},
		{"Content-Type", "text/csv", 415},
		{"Content-Type", "application/json; charset=latin1", 415},
		{"Content-Type", "garbage;;", 415},
		{"Content-Encoding", "br", 415},
		{"Content-Encoding", "gzip, gzip", 415},
	}
	for _, tt := range tests {
		t.Run(tt.header+" "+tt.in, func(t *testing.T) {
			code, _, body := post(t, &fakeStore{}, ingest.Options{}, "", tt.header, tt.in)
			if code != tt.want {
				t.Errorf("status %d, want %d: %s", code, tt.want, body)
			}
			if code == 415 && !strings.Contains(body, "x-ndjson") && !strings.Contains(body, "zstd") {
				t.Errorf("%s does not say what to send", body)
			}
		})
	}
}

func TestRowsAreCounted(t *testing.T) {
	figures := sdkmetric.NewManualReader()
	o := ingest.Options{MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(figures))}
	mustPost(t, &fakeStore{}, o, noteLine("pr_1", "a", "")+"\nbad\n"+noteLine("pr_1", "a", "")+"\n"+noteLine("pr_1", "b", ""))
	var rm metricdata.ResourceMetrics
	if err := figures.Collect(t.Context(), &rm); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, scope := range rm.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != "lectern.ingest.rows" {
				continue
			}
			for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
				resource, _ := p.Attributes.Value("resource")
				outcome, _ := p.Attributes.Value("outcome")
				got[resource.AsString()+" "+outcome.AsString()] = p.Value
			}
		}
	}
	if diff := cmp.Diff(map[string]int64{"notes stored": 2, "notes existing": 1, "notes rejected": 1}, got); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}
