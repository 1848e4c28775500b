package copiestest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies"
	embeddables "github.com/lectern-dev/lectern/services/embeddables/app"
	entries "github.com/lectern-dev/lectern/services/entries/app"
	experiments "github.com/lectern-dev/lectern/services/experiments/app"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/postgres/migrate"
	"github.com/lectern-dev/lectern/shared/routes"
	"github.com/lectern-dev/lectern/shared/service"
	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// TestMain is also the process of [lake.process].
func TestMain(m *testing.M) {
	if from := os.Getenv("COPY_FROM"); from != "" {
		if err := copyOnce(from, os.Getenv("COPY_KEY"), os.Getenv("COPY_TO")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	pgtest.Main(m)
}

const project = "pr_1"

// empty is a schema without tables.
func empty(name string) migrate.Schema {
	return migrate.Schema{Name: name, Migrations: fstest.MapFS{"0001_nothing.sql": {Data: []byte("-- +goose Up\nSELECT 1;\n")}}}
}

// source is an entries service with a project.
type source struct {
	*servicetest.Service
	client *client.Client
	// embeddables and experiments are nil without newWholeSource.
	embeddables, experiments *servicetest.Service
}

// newSource starts the service, which brings its schema with it.
func newSource(t *testing.T) *source {
	t.Helper()
	redis := redistest.Start(t)
	b := &servicetest.Backing{DB: pgtest.Database(t, empty("feed")), Redis: redis, Keys: authtest.New(t, redis.URL)}
	s := servicetest.Start(t, b, entries.Run, func(c *entries.Config) *service.Config { return &c.Config },
		map[string]string{"MIGRATE_ON_START": "true", "DATABASE_URL": b.DB.OwnerURL, "INGEST_DATABASE_URL": b.DB.OwnerURL, "LOG_LEVEL": "error"})
	key, _ := s.Keys.Minted(pgkeys.MintOptions{ProjectID: project})
	c, err := client.New(s.URL, client.WithAPIKey(key))
	if err != nil {
		t.Fatal(err)
	}
	return &source{Service: s, client: c}
}

// newWholeSource starts all services that have records of a project, behind one address.
func newWholeSource(t *testing.T) *source {
	t.Helper()
	s := newSource(t)
	near := func(name string) *servicetest.Backing {
		return &servicetest.Backing{DB: pgtest.Database(t, empty(name)), Redis: s.Redis, Keys: s.Keys}
	}
	migrating := func(b *servicetest.Backing) map[string]string {
		return map[string]string{"MIGRATE_ON_START": "true", "DATABASE_URL": b.DB.OwnerURL, "INGEST_DATABASE_URL": b.DB.OwnerURL, "LOG_LEVEL": "error", "EXPERIMENTS_AUTH": "required"}
	}
	b, x := near("embeddables"), near("experiments")
	s.embeddables = servicetest.Start(t, b, embeddables.Run, func(c *embeddables.Config) *service.Config { return &c.Config }, migrating(b))
	s.experiments = servicetest.Start(t, x, experiments.Run, func(c *experiments.Config) *service.Config { return &c.Config }, migrating(x))
	addresses := map[routes.Service]string{routes.Entries: s.URL, routes.Embeddables: s.embeddables.URL, routes.Experiments: s.experiments.URL}
	front := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		route, _ := routes.Find(r.In.URL.EscapedPath())
		if u, err := url.Parse(addresses[route.Service]); err == nil {
			r.Out.URL.Scheme, r.Out.URL.Host = u.Scheme, u.Host
		}
		r.Out.URL.RawQuery = r.In.URL.RawQuery
	}})
	t.Cleanup(front.Close)
	s.URL = front.URL
	s.client = s.with(t)
	return s
}

// with returns a client whose key has scopes, or all by default.
func (s *source) with(t *testing.T, scopes ...auth.Scope) *client.Client {
	t.Helper()
	key, _ := s.Keys.Minted(pgkeys.MintOptions{ProjectID: project, Scopes: auth.ScopesOf(scopes...)})
	c, err := client.New(s.URL, client.WithAPIKey(key))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// define stores an embeddable with versions 1 to n, and an experiment on it with a status.
func (s *source) define(t *testing.T, id string, n int, status string, second int) {
	t.Helper()
	at := time.Date(2022, 1, 1, 0, 0, second, 0, time.UTC).Format(time.RFC3339Nano)
	s.embeddables.MustIngest(t, "embeddables", object{"embeddable_id": id, "title": "Title ü", "group_id": "gr_1", "project_id": project, "json_string_prod": fmt.Sprintf(`{"n":%d}`, n)})
	for v := 1; v <= n; v++ {
		s.embeddables.MustIngest(t, "embeddable-versions", object{"embeddable_id": id, "project_id": project, "version_number": v, "saved_at": "2022-01-01T00:00:00Z", "json_string": fmt.Sprintf(`{"v":%d}`, v)})
	}
	s.experiments.MustIngest(t, "experiments", object{
		"project_id": project, "id": "exp_" + id, "experimentId": "exp_" + id, "flowId": id, "name": "One", "hypothesis": nil,
		"impact_metrics": []string{"m"}, "no_impact_metrics": []string{}, "created_at": "2022-01-01T00:00:00Z", "updated_at": at,
		"observations": nil, "outcome": nil, "attachments": "[]", "variants": "{}", "flow_ids": []string{id},
		"paused_showing_variant": nil, "winner_variant": nil, "status": status,
	})
}

// is says what copies of the source are of.
func (s *source) is() copies.Source { return copies.Source{URL: s.URL, ProjectID: project} }

type object = map[string]any

func entry(id string, second int, data string) object {
	return object{
		"entry_id": id, "group_id": "gr_1", "project_id": project, "embeddable_id": "emb_1", "contact_id": "co_ü",
		"created_at": "0001-01-01T00:00:00Z", "updated_at": time.Date(2022, 1, 1, 0, 0, second, 250_000, time.UTC).Format(time.RFC3339Nano),
		"entry_data": data,
	}
}

func event(id string, n int) object {
	return object{
		"entry_id": id, "contact_id": "co_1", "project_id": project, "group_id": "gr_1", "embeddable_id": "emb_1",
		"embeddable_version_number": 3, "timestamp": time.Date(2022, 1, 1, 0, 0, n, 0, time.UTC).Format(time.RFC3339Nano),
		"page_id": "pg_1", "page_key": "page-1", "page_index": n, "max_page_id": nil, "max_page_key": nil, "max_page_index": nil, "total_pages": 10,
		"event_type": "flowpage.viewed", "view_type": "flowpage", "custom_event_name": nil, "custom_event_props": nil, "url": "https://example.com/?a=1",
	}
}

// fill stores n entries with two events each, from the number first on.
func (s *source) fill(t *testing.T, first, n int) {
	t.Helper()
	var all, events []any
	for i := first; i < first+n; i++ {
		id := fmt.Sprintf("en_%d", i)
		all = append(all, entry(id, i, fmt.Sprintf(`{"n":%d,"text":"ÿ €","price":1.50}`, i)))
		events = append(events, event(id, 2*i), event(id, 2*i+1))
	}
	s.MustIngest(t, "entries", all...)
	s.MustIngest(t, "events", events...)
}

// remove removes entries with their events as the service does.
func (s *source) remove(t *testing.T, reason string, ids ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.DB.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var last int64
		err := tx.QueryRow(ctx, `UPDATE project_changes SET last_seq = greatest(last_seq + 1, (extract(epoch FROM now()) * 1000000)::bigint) + $2
			WHERE project_id = $1 RETURNING last_seq`, project, len(ids)).Scan(&last)
		if err != nil {
			return err
		}
		for _, table := range []string{"entries", "events"} {
			if _, err := tx.Exec(ctx, `DELETE FROM `+table+` WHERE project_id = $1 AND entry_id = ANY($2)`, project, ids); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, `INSERT INTO removals (project_id, entry_id, seq, removed_at, reason)
			SELECT $1, u.id, $3 - $4::bigint + u.n, now(), $5 FROM unnest($2::text[]) WITH ORDINALITY AS u (id, n)
			ON CONFLICT (project_id, entry_id) DO UPDATE SET seq = excluded.seq, removed_at = excluded.removed_at, reason = excluded.reason`,
			project, ids, last, len(ids), reason)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// row is a record of a copy or of the source, by the names of its fields.
type row = map[string]any

// rows are the records of a copy or of the source, by their keys.
type rows struct{ entries, events map[string]row }

// records are the source's records. The entries are those of their list; the feed knows their numbers.
func (s *source) records(t *testing.T) rows {
	t.Helper()
	all := rows{map[string]row{}, map[string]row{}}
	seqs := map[string]int64{}
	for page, err := range s.client.Changes(t.Context(), project, client.ChangeQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range page.Changes {
			switch c.Type {
			case client.EntryChanged:
				seqs[c.Entry.EntryID] = c.Seq
			case client.EventAdded:
				r := asRow(t, c.Event)
				r["seq"] = float64(c.Seq)
				all.events[c.Event.EventKey] = r
			}
		}
	}
	for e, err := range s.client.Entries(t.Context(), project, client.EntryQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		r := asRow(t, e)
		r["seq"] = float64(seqs[e.EntryID])
		all.entries[e.EntryID] = r
	}
	return all
}

// asRow returns the fields that v has in JSON.
func asRow(t *testing.T, v any) row {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var r row
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	return r
}
