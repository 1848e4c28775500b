package read_test

import (
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

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
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
	s, environ := clitest.Entries(t)
	s.MustIngest(t, "entries", clitest.Entry("en_1", 1))
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
	warehouse := clitest.Warehouse(t)

	away.Store(true)
	address := freeAddress(t)
	environ["LECTERN_URL"], environ["LECTERN_SYNC_TO"], environ["LECTERN_METRICS_ADDRESS"] = front.URL, warehouse, address
	sync := clitest.Begin(t, environ, "sync", "--follow", "--retries", "1000")
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

	conn := pgtest.Connect(t, warehouse)
	if _, err := conn.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`); err != nil {
		t.Fatal(err)
	}
	s.MustIngest(t, "entries", clitest.Entry("en_2", 2))
	eventually.True(t, "the change after a fault of the destination", func() bool {
		text := read()
		n, _ := metricOf(t, text, `lectern_sync_failures_total{side="destination"}`)
		changes, _ := metricOf(t, text, "lectern_sync_changes_total")
		return n == 1 && changes == 2
	})

	if r := sync.Stop(t); r.Code != shell.ExitInterrupted || !strings.HasSuffix(r.Err, "lectern: interrupted\n") {
		t.Errorf("%+v", r)
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
	environ := map[string]string{"LECTERN_PROJECT_ID": "pr_1", "LECTERN_API_KEY": "k"}
	r := clitest.Run(t, "", environ, "sync", "--to", "file://"+t.TempDir(), "--metrics-address", taken.Addr().String())
	if r.Code != shell.ExitFailure || !strings.Contains(r.Err, "--metrics-address") || !strings.Contains(r.Err, "address already in use") {
		t.Errorf("%+v", r)
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
