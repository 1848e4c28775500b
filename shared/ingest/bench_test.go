package ingest_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/ingest"
)

// submission is a record like an entry: eight texts, two of them times.
type submission struct {
	Project, ID, Group, Embeddable, Contact, Data string
	Created, Updated                              int64
}

const submissionLine = `{"entry_id":"en_0123456789abcdef","group_id":"gr_0123456789","project_id":"pr_demo","embeddable_id":"em_0123456789",` +
	`"contact_id":"co_0123456789abcdef","created_at":"2022-01-01T00:00:00.25Z","updated_at":"2022-01-01T00:00:00.25Z",` +
	`"entry_data":"{\"name\":\"Jane Doe\",\"email\":\"jane@example.com\",\"age\":34,\"answers\":[\"yes\",\"no\",\"maybe\"],\"score\":12.5}"}` + "\n"

func submissions() ingest.Kind[submission] {
	id := ingest.Identifier()
	return ingest.Kind[submission]{
		Resource: "submissions",
		Fields: []ingest.Field[submission]{
			ingest.Text("entry_id", id, func(s *submission) *string { return &s.ID }),
			ingest.Text("group_id", id, func(s *submission) *string { return &s.Group }),
			ingest.Text("project_id", id, func(s *submission) *string { return &s.Project }),
			ingest.Text("embeddable_id", id, func(s *submission) *string { return &s.Embeddable }),
			ingest.Text("contact_id", id, func(s *submission) *string { return &s.Contact }),
			ingest.Time("created_at", func(s *submission) *int64 { return &s.Created }),
			ingest.Time("updated_at", func(s *submission) *int64 { return &s.Updated }),
			ingest.Text("entry_data", ingest.JSONText(), func(s *submission) *string { return &s.Data }),
		},
		Project: func(s *submission) string { return s.Project },
		Store: func(_ context.Context, _ string, records []submission) (ingest.Result, error) {
			return ingest.Result{Stored: len(records)}, nil
		},
	}
}

// BenchmarkHandler measures the handler without a database. An operation is one line.
func BenchmarkHandler(b *testing.B) {
	h := ingest.Handler(submissions(), ingest.Options{})
	for _, encoding := range []string{"", "gzip", "zstd"} {
		b.Run("encoding="+encoding, func(b *testing.B) {
			b.SetBytes(int64(len(submissionLine)))
			b.ReportAllocs()
			var body io.Reader = &endless{line: strings.Repeat(submissionLine, 100), lines: (b.N + 99) / 100}
			if encoding != "" {
				body = strings.NewReader(zipped(b, encoding, strings.Repeat(submissionLine, (b.N+99)/100*100)))
			}
			r := httptest.NewRequest(http.MethodPost, "/", body)
			r.Header.Set("Content-Encoding", encoding)
			w := httptest.NewRecorder()
			b.ResetTimer()
			h.ServeHTTP(w, r)
			if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"rejected":0`) {
				b.Fatalf("%d %s", w.Code, w.Body)
			}
		})
	}
}
