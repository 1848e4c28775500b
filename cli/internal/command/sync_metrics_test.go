package command

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/cli/internal/shell"
	entries "github.com/lectern-dev/lectern/services/entries/app"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/postgres/migrate"
	"github.com/lectern-dev/lectern/shared/service"
	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// scrape returns the status and the body of url; 0 if nothing answers.
func scrape(t *testing.T, url string) (status int, body string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// metricOf returns the value of a series in Prometheus' text format, and whether it is there.
func metricOf(t *testing.T, text, series string) (float64, bool) {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\S+)$`).FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	value, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatalf("%s is %q", series, m[1])
	}
	return value, true
}

// TestSyncMetrics checks that a sync shows the progress of its copy and is ready once it has copied. While the API or the
// destination is unreachable, it stays alive and counts the faults. It ends on a signal.
func TestSyncMetrics(t *testing.T) {
	t.Parallel()
	empty := migrate.Schema{Name: "warehouse", Migrations: fstest.MapFS{"0001_nothing.sql": {Data: []byte("-- +goose Up\nSELECT 1;\n")}}}
	redis := redistest.Start(t)
	b := &servicetest.Backing{DB: pgtest.Database(t, empty), Redis: redis, Keys: authtest.New(t, redis.URL)}
	s := servicetest.Start(t, b, entries.Run, func(c *entries.Config) *service.Config { return &c.Config }, map[string]string{
		"MIGRATE_ON_START": "true", "DATABASE_URL": b.DB.OwnerURL, "INGEST_DATABASE_URL": b.DB.OwnerURL,
	})
	entry := func(id string) string {
		return `{"entry_id":"` + id + `","group_id":"g","project_id":"pr_1","embeddable_id":"m","contact_id":"c","created_at":"2024-01-01T00:00:00Z","updated_at":"2024-01-01T00:00:00Z","entry_data":"{}"}`
	}
	s.MustIngest(t, "entries", entry("en_1"))
	key, _ := s.Keys.Minted(pgkeys.MintOptions{ProjectID: "pr_1"})
	target, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	var away atomic.Bool
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	warehouse := pgtest.Database(t, empty).OwnerURL

	away.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	address := freeAddress(t)
	var said bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- Main(&shell.Session{Context: ctx, In: strings.NewReader(""), Out: io.Discard, Err: &said, Now: time.Now, Environ: map[string]string{
			"LECTERN_URL": front.URL, "LECTERN_PROJECT_ID": "pr_1", "LECTERN_API_KEY": key, "LECTERN_SYNC_TO": warehouse, "LECTERN_METRICS_ADDRESS": address,
		}}, []string{"sync", "--follow", "--retries", "1000"})
	}()
	read := func() string { _, text := scrape(t, "http://"+address+"/metrics"); return text }
	value := func(series string) float64 { v, _ := metricOf(t, read(), series); return v }

	eventually.True(t, "a failed request", func() bool { return value(`lectern_sync_failures_total{side="api"}`) > 0 })
	if status, body := scrape(t, "http://"+address+"/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, `"copied":"failing"`) {
		t.Errorf("before the first batch /readyz answers %d %s", status, body)
	}
	if status, _ := scrape(t, "http://"+address+"/healthz"); status != http.StatusOK {
		t.Errorf("while the API is away /healthz answers %d", status)
	}
	if _, known := metricOf(t, read(), "lectern_sync_distance"); known {
		t.Error("there is a distance before anything was read")
	}
	began := value("lectern_sync_since_current_seconds")
	eventually.True(t, "the time since the copy was current grows", func() bool { return value("lectern_sync_since_current_seconds") > max(began, 0.2) })

	away.Store(false)
	eventually.True(t, "ready", func() bool { status, _ := scrape(t, "http://"+address+"/readyz"); return status == http.StatusOK })
	eventually.True(t, "one change", func() bool { return value("lectern_sync_changes_total") == 1 })
	text := read()
	if distance, known := metricOf(t, text, "lectern_sync_distance"); !known || distance != 0 {
		t.Errorf("the distance is %v, %v; want 0", distance, known)
	}
	if size, _ := metricOf(t, text, "lectern_sync_size_bytes_total"); size < 100 {
		t.Errorf("%v bytes", size)
	}
	if n, known := metricOf(t, text, `lectern_sync_failures_total{side="destination"}`); !known || n != 0 {
		t.Errorf("%v failures of the destination, %v; want 0", n, known)
	}

	conn, err := pgx.Connect(t.Context(), warehouse)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`); err != nil {
		t.Fatal(err)
	}
	s.MustIngest(t, "entries", entry("en_2"))
	eventually.True(t, "the change after a fault of the destination", func() bool {
		text := read()
		n, _ := metricOf(t, text, `lectern_sync_failures_total{side="destination"}`)
		changes, _ := metricOf(t, text, "lectern_sync_changes_total")
		return n == 1 && changes == 2
	})

	cancel()
	if code := <-ended; code != shell.ExitInterrupted || !strings.HasSuffix(said.String(), "lectern: interrupted\n") {
		t.Errorf("exit code %d, %s", code, said.String())
	}
	if status, _ := scrape(t, "http://"+address+"/healthz"); status != 0 {
		t.Errorf("the metrics are still served: %d", status)
	}
	var rows int
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM lectern.entries`).Scan(&rows); err != nil || rows != 2 {
		t.Errorf("the copy has %d rows, %v; want 2", rows, err)
	}
}

// TestMetricsAddress: an address that cannot be used is an error that names it.
func TestMetricsAddress(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, tt := range []struct {
		name, address string
		code          int
		says          string
	}{
		{"taken", taken.Addr().String(), shell.ExitFailure, "address already in use"},
	} {
		r := lectern(t, "", map[string]string{"LECTERN_PROJECT_ID": "pr_1", "LECTERN_API_KEY": "k"}, "sync", "--to", "file://"+t.TempDir(), "--metrics-address", tt.address)
		if r.code != tt.code || !strings.Contains(r.err, "--metrics-address") || !strings.Contains(r.err, tt.says) {
			t.Errorf("%s: %+v; want %d and %q", tt.name, r, tt.code, tt.says)
		}
	}
}

// freeAddress returns an address at which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
