package try_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
)

// spans is an OTLP endpoint that keeps what it is sent.
type spans struct {
	mu       sync.Mutex
	requests []*collector.ExportTraceServiceRequest
}

func (s *spans) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	request := &collector.ExportTraceServiceRequest{}
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, request) != nil {
		http.Error(w, "not a trace export", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, request)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// of returns the names of the trace's spans by service, and the id of the parent of each span by its own. Traces that
// link to the trace count too: a public address begins a new trace for each request of a client.
func (s *spans) of(trace string) (names map[string][]string, parents map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	traces := map[string]bool{trace: true}
	s.each(func(_, _ string, span *tracepb.Span) {
		for _, link := range span.Links {
			if fmt.Sprintf("%x", link.TraceId) == trace {
				traces[fmt.Sprintf("%x", span.TraceId)] = true
			}
		}
	})
	names, parents = map[string][]string{}, map[string]string{}
	s.each(func(service, scope string, span *tracepb.Span) {
		if traces[fmt.Sprintf("%x", span.TraceId)] {
			names[service] = append(names[service], scope+" "+span.Name)
			parents[fmt.Sprintf("%x", span.SpanId)] = fmt.Sprintf("%x", span.ParentSpanId)
		}
	})
	return names, parents
}

// each calls f with each span, its service and its scope.
func (s *spans) each(f func(service, scope string, span *tracepb.Span)) {
	for _, request := range s.requests {
		for _, resource := range request.ResourceSpans {
			service := ""
			for _, a := range resource.Resource.Attributes {
				if a.Key == "service.name" {
					service = a.Value.GetStringValue()
				}
			}
			for _, scope := range resource.ScopeSpans {
				for _, span := range scope.Spans {
					f(service, scope.Scope.Name, span)
				}
			}
		}
	}
}

// text is all that was received, readable.
func (s *spans) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, request := range s.requests {
		b.WriteString(protojson.Format(request))
	}
	return b.String()
}

// collectSpans has the processes that are started from now on send their spans to what it returns.
func collectSpans(t *testing.T) *spans {
	t.Helper()
	received := &spans{}
	endpoint := httptest.NewServer(received)
	t.Cleanup(endpoint.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
	return received
}

// canary is in the data of an entry, and must be nowhere else.
const canary = "canary-data-6f1c2e"

// testOneTrace: a request is one trace through the edge, the service, Redis and Postgres, as an OTLP
// endpoint receives it. It leaves the canary in an entry, and keys where they do not belong.
func testOneTrace(t *testing.T, environ map[string]string, received *spans) {
	const trace, caller = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	send := func(method, url, key, body string) int {
		t.Helper()
		req, err := http.NewRequest(method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Api-Key", key)
		req.Header.Set("Traceparent", "00-"+trace+"-"+caller+"-01")
		req.Header.Set("Content-Type", "application/x-ndjson")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	project := environ["LECTERN_URL"] + "/projects/" + environ["LECTERN_PROJECT_ID"]
	key, ingest := environ["LECTERN_API_KEY"], environ["LECTERN_INGEST_API_KEY"]
	data, _ := json.Marshal(`{"answer":"` + canary + `"}`)
	entry := `{"entry_id":"en_canary","group_id":"g","project_id":"` + environ["LECTERN_PROJECT_ID"] + `","embeddable_id":"e","contact_id":"c",` +
		`"created_at":"2026-01-01T00:00:00Z","updated_at":"2026-12-01T00:00:00Z","entry_data":` + string(data) + `}`
	// A key of the right form that nobody has is asked for in Redis and in Postgres.
	nobodys, _ := auth.Mint()
	steps := []struct {
		method, url, key, body string
		want                   int
	}{
		{"GET", project + "/entries?limit=2", nobodys.Reveal(), "", 401},
		{"POST", environ["LECTERN_INTERNAL_URL"] + "/internal/entries", ingest, entry + "\n" + strings.Replace(entry, `"g"`, `7`, 1), 200},
		{"GET", project + "/entries/en_canary", key, "", 200},
		{"GET", project + "/entries?limit=2", key, "", 200},
		{"GET", project + "/entries?limit=2&api_key=" + key, key, "", 400},
		{"GET", project + "/entries/" + key, key, "", 404},
		{"GET", project + "/entries-page-views?cursor=" + key, key, "", 400},
	}
	for _, step := range steps {
		if got := send(step.method, step.url, step.key, step.body); got != step.want {
			t.Errorf("%s %s: %d, want %d", step.method, step.url, got, step.want)
		}
	}
	wanted := map[string][]string{
		"edge":    {"GET"},
		"entries": {"GET /projects/{projectId}/entries", "redis", "pgx"},
	}
	eventually.True(t, "the whole trace, in which each span hangs on the caller's, on another one, or on none and links to the caller's", func() bool {
		names, parents := received.of(trace)
		if len(names["edge"]) < len(steps) { // each process sends its spans when it likes
			return false
		}
		for _, parent := range parents {
			if _, ours := parents[parent]; !ours && parent != caller && parent != "" {
				return false
			}
		}
		for service, parts := range wanted {
			all := strings.Join(names[service], "\n")
			for _, part := range parts {
				if !strings.Contains(all, part) {
					return false
				}
			}
		}
		return true
	})
	names, _ := received.of(trace)
	if got := len(names["edge"]); got != len(steps) {
		t.Errorf("%d spans of the edges, want one for each of %d requests: %q", got, len(steps), names["edge"])
	}
}

// readMetrics returns the metrics of all services of the folder's run.
func readMetrics(t *testing.T, folder string) string {
	t.Helper()
	metrics := ""
	logs, err := filepath.Glob(filepath.Join(folder, "logs", "*"))
	if err != nil || len(logs) < 2 {
		t.Fatalf("logs: %v %v", logs, err)
	}
	log := readAll(t, logs)
	for line := range strings.Lines(log) {
		var l struct{ Msg, Internal string }
		if json.Unmarshal([]byte(line), &l) == nil && l.Msg == "listening" && l.Internal != "" {
			resp, err := http.Get("http://" + l.Internal + "/metrics")
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			metrics += string(body)
		}
	}
	if !strings.Contains(metrics, "lectern_key_lookups") || !strings.Contains(metrics, "lectern_ingest_rows") {
		t.Errorf("the metrics lack what is looked for: %.2000s", metrics)
	}
	return metrics
}

// checkCanaries: no key and no entry's data is in any span, log line or metric of a run.
func checkCanaries(t *testing.T, environ map[string]string, received *spans, folder, metrics string) {
	logs, err := filepath.Glob(filepath.Join(folder, "logs", "*"))
	if err != nil {
		t.Fatal(err)
	}
	// The demo's keys are in the project's folder, which belongs to the user.
	for where, text := range map[string]string{"spans": received.text(), "logs": readAll(t, logs), "metrics": metrics} {
		if !strings.Contains(text, "entries") {
			t.Errorf("the %s have nothing in them", where)
		}
		for what, secret := range map[string]string{
			"the API key": environ["LECTERN_API_KEY"], "the internal key": environ["LECTERN_INTERNAL_API_KEY"], "the ingest key": environ["LECTERN_INGEST_API_KEY"],
			"the admin key": environ["LECTERN_ADMIN_API_KEY"], "an entry's data": canary,
		} {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("%s in the %s: …%s…", what, where, text[max(0, at-200):min(len(text), at+100)])
			}
		}
	}
}

func readAll(t *testing.T, files []string) string {
	t.Helper()
	var all strings.Builder
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}
