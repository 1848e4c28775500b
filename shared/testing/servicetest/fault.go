package servicetest

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/postgres/migrate"
	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
)

// Reads are requests that a service answers with 200 if there is no fault.
type Reads struct {
	Service *Service
	Key     string   // may be empty
	Project string   // of the paths
	Paths   []string // after /projects/{projectId}
}

func (r Reads) get(t testing.TB, path string) Answer {
	t.Helper()
	return r.Service.Get(t, r.Key, "/projects/"+r.Project+path)
}

// ShortTimeouts configure a service whose database a test breaks, so that the test is short. On a busy machine such a
// service may answer 503 without a fault.
var ShortTimeouts = map[string]string{"DATABASE_ACQUIRE_TIMEOUT": "300ms", "STATEMENT_TIMEOUT": "1s", "INGEST_RETRY_TIME": "300ms"}

// AwaitIngest sends records until they are stored. It is for services with [ShortTimeouts].
func (s *Service) AwaitIngest(t testing.TB, resource string, lines ...any) {
	t.Helper()
	eventually.True(t, "records are stored", func() bool {
		a := s.ingest(t, resource, lines...)
		if a.Status != http.StatusOK && a.Status != http.StatusServiceUnavailable {
			t.Fatalf("ingest %s: %d %s", resource, a.Status, a.Body)
		}
		return a.Status == http.StatusOK
	})
}

// NewBreakable is like [NewBacking], but the service's database is on a server of its own that a test may kill.
func NewBreakable(t testing.TB, schema migrate.Schema) (*Backing, *pgtest.Instance) {
	t.Helper()
	// Acknowledged writes survive a kill here, as in production.
	server := pgtest.Private(t, map[string]string{"synchronous_commit": "on"})
	redis := redistest.Start(t)
	return &Backing{DB: server.Database(t, schema), Redis: redis, Keys: authtest.New(t, redis.URL)}, server
}

// BreakRows replaces a table by a view of it: Postgres fails when a statement reads column in a row that meets condition.
func (s *Service) BreakRows(t testing.TB, table, column, condition string) {
	t.Helper()
	s.Exec(t, strings.NewReplacer("{table}", table, "{column}", column, "{condition}", strings.ReplaceAll(condition, "'", "''")).Replace(`
		DO $do$ DECLARE columns text; BEGIN
			SELECT string_agg(CASE column_name
				WHEN '{column}' THEN 'CASE WHEN {condition} THEN CASE 1 / (0 * length({column}::text)) WHEN 1 THEN {column} END ELSE {column} END AS {column}'
				ELSE quote_ident(column_name) END, ', ' ORDER BY ordinal_position)
			INTO columns FROM information_schema.columns WHERE table_schema = 'public' AND table_name = '{table}';
			ALTER TABLE {table} RENAME TO whole_{table};
			EXECUTE 'CREATE VIEW {table} AS SELECT ' || columns || ' FROM whole_{table}';
			GRANT SELECT ON {table} TO PUBLIC;
		END $do$`))
}

// CheckBrokenOff checks that a client sees that an answer to a path is incomplete, with every format and encoding. The
// answer must fail after its first byte.
func (s *Service) CheckBrokenOff(t *testing.T, key, path string, formats ...string) {
	t.Helper()
	for _, accept := range formats {
		for _, encoding := range []string{"identity", "gzip"} {
			a := s.Do(t, Request{Path: path, Key: key, Headers: map[string]string{"Accept": accept, "Accept-Encoding": encoding}})
			if a.Status != http.StatusOK || a.Err == nil {
				t.Errorf("%s, %s, %s: %d with %d bytes, %v: a broken answer looks complete", path, accept, encoding, a.Status, len(a.Body), a.Err)
			}
		}
	}
}

// CheckPostgresFaults kills and pauses the service's Postgres and starts it again. During the fault every read is 503
// with Retry-After, without names of hosts or SQL, and an ingest of line is 503. Afterwards the service recovers by
// itself.
func CheckPostgresFaults(t *testing.T, server *pgtest.Instance, r Reads, resource, line string) {
	t.Helper()
	for _, fault := range []struct {
		name       string
		begin, end func() error
	}{
		{"killed", server.Kill, func() error { return server.Restart(t.Context()) }},
		{"stopped", server.Pause, server.Resume},
	} {
		if err := fault.begin(); err != nil {
			t.Fatal(err)
		}
		for _, path := range r.Paths {
			begin := time.Now()
			a := r.get(t, path)
			body := string(a.Body)
			if a.Status != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" ||
				!strings.Contains(body, `"code":"unavailable"`) || !strings.Contains(body, `"projectId":"`+r.Project+`"`) {
				t.Errorf("%s: %s: %d %s", fault.name, path, a.Status, a.Body)
			}
			if took := time.Since(begin); took > time.Minute {
				t.Errorf("%s: %s took %v", fault.name, path, took)
			}
			if strings.Contains(body, "127.0.0.1") || strings.Contains(body, "SELECT") || strings.Contains(body, ".s.PGSQL") {
				t.Errorf("%s: the answer says too much: %s", fault.name, a.Body)
			}
		}
		a := r.Service.DoInternal(t, Request{Method: http.MethodPost, Path: "/internal/" + resource, Key: IngestKey, Body: strings.NewReader(line)})
		if a.Status != http.StatusServiceUnavailable {
			t.Errorf("%s: ingest: %d %s", fault.name, a.Status, a.Body)
		}
		if a := r.Service.DoInternal(t, Request{Path: "/healthz"}); a.Status != http.StatusOK {
			t.Errorf("%s: /healthz: %d", fault.name, a.Status)
		}
		if err := fault.end(); err != nil {
			t.Fatal(err)
		}
		took := eventually.True(t, fault.name+": answers again", func() bool {
			for _, path := range r.Paths {
				switch a := r.get(t, path); a.Status {
				case http.StatusOK:
				case http.StatusServiceUnavailable:
					return false
				default:
					t.Fatalf("%s and back: %s: %d %s", fault.name, path, a.Status, a.Body)
				}
			}
			return true
		})
		t.Logf("%s: back after %v", fault.name, took)
		r.Service.AwaitIngest(t, resource, line)
	}
}

// CheckRedisFaults kills and pauses the service's Redis. No read fails, with a cached key or with another one. An unknown
// key is refused where a key is needed.
func CheckRedisFaults(t *testing.T, r Reads) {
	t.Helper()
	s := r.Service
	for name, fault := range map[string]struct{ begin, end func() }{
		"killed":  {s.Redis.Kill, s.Redis.Restart},
		"stopped": {s.Redis.Pause, s.Redis.Resume},
	} {
		fault.begin()
		for _, key := range []string{r.Key, s.Keys.Key(r.Project)} {
			for range 10 {
				for _, path := range r.Paths {
					if a := s.Get(t, key, "/projects/"+r.Project+path); a.Status != http.StatusOK {
						t.Fatalf("Redis %s: %s: %d %s", name, path, a.Status, a.Body)
					}
				}
			}
		}
		unknown, _ := auth.Mint()
		if a := s.Get(t, unknown.Reveal(), "/projects/"+r.Project+r.Paths[0]); a.Status != http.StatusUnauthorized && s.Get(t, "", "/projects/"+r.Project+r.Paths[0]).Status != http.StatusOK {
			t.Errorf("Redis %s: an unknown key: %d", name, a.Status)
		}
		fault.end()
	}
}
