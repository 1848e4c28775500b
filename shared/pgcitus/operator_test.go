package pgcitus_test

import (
	"encoding/json"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lectern-dev/lectern/shared/pgdb"
	"github.com/lectern-dev/lectern/shared/testing/logtest"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

// operator has the information of a pool's operator: its log, and the number of its workers in each state.
type operator struct {
	log     logtest.Buffer
	figures *sdkmetric.ManualReader
}

func (o *operator) watch(options pgdb.Options) pgdb.Options {
	o.figures = sdkmetric.NewManualReader()
	options.Name = "shelves"
	options.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(o.figures))
	options.Log = slog.New(slog.NewJSONHandler(&o.log, nil))
	return options
}

// sees waits until the metrics show these numbers of workers by state, and no other workers.
func (o *operator) sees(t *testing.T, want map[string]int64) {
	t.Helper()
	var got map[string]int64
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if got = workers(t, o.figures); maps.Equal(got, want) {
			return
		}
	}
	t.Errorf("workers by state: %v, want %v", got, want)
}

// workers returns the number of workers in each state, from the metrics. It leaves out states without workers.
func workers(t *testing.T, figures *sdkmetric.ManualReader) map[string]int64 {
	t.Helper()
	var rm metricdata.ResourceMetrics
	if err := figures.Collect(t.Context(), &rm); err != nil {
		t.Fatal(err)
	}
	states, points := map[string]int64{}, 0
	for _, scope := range rm.ScopeMetrics {
		for _, m := range scope.Metrics {
			gauge, ok := m.Data.(metricdata.Gauge[int64])
			if m.Name != "lectern.citus.workers" || !ok {
				continue
			}
			for _, p := range gauge.DataPoints {
				points++
				state, _ := p.Attributes.Value("state")
				pool, _ := p.Attributes.Value("db.client.connection.pool.name")
				if pool.AsString() != "shelves" {
					t.Errorf("workers of the pool %q", pool.AsString())
				}
				if p.Value != 0 {
					states[state.AsString()] = p.Value
				}
			}
		}
	}
	if points != 0 && points != 3 {
		t.Errorf("%d series of workers, want one for each of three states", points)
	}
	return states
}

// reads checks that the log reported the node's state, and then its recovery. On a busy machine it may report both more
// than once, but never the same one twice in a row.
func (o *operator) reads(t *testing.T, node, state string) {
	t.Helper()
	messages := map[string]string{"down": "is out of reach", "hanging": "does not answer", "serving": "serves again"}
	var last, all string
	for text := range strings.Lines(o.log.String()) {
		var line struct {
			Msg, Pool, Node, Error string
			Group                  int
		}
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		if line.Node != node || line.Pool != "shelves" || line.Group == 0 {
			t.Errorf("not of %s: %s", node, text)
		}
		said := ""
		for is, message := range messages {
			if strings.Contains(line.Msg, message) {
				said = is
			}
		}
		if said == "" || said == last || said != "serving" && line.Error == "" {
			t.Errorf("after %q: %s", last, text)
		}
		last, all = said, all+" "+said
	}
	if !strings.Contains(all, state) || last != "serving" {
		t.Errorf("the log reports%s, want %s, and then serving", all, state)
	}
	t.Logf("the log reports%s", all)
}

// TestPlainPostgres checks that a pool of plain Postgres has no gate, no metric and no goroutine of this package.
func TestPlainPostgres(t *testing.T) {
	var o operator
	db := pgtest.Server(t)
	if db.Citus() {
		t.Skip("the server is a Citus coordinator")
	}
	p := open(t, db.Database(t, shelves()).ReaderURL, o.watch(pgdb.Options{MaxConns: 1}))
	if err := p.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p.Distributed() {
		t.Error("the pool has a gate")
	}
	var rm metricdata.ResourceMetrics
	if err := o.figures.Collect(t.Context(), &rm); err != nil {
		t.Fatal(err)
	}
	for _, scope := range rm.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name == "lectern.citus.workers" {
				t.Errorf("there is a metric %s", m.Name)
			}
		}
	}
	if logged := o.log.String(); logged != "" {
		t.Errorf("logged %s", logged)
	}
}
