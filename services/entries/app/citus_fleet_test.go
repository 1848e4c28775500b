package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/postgres/migrate"
	"github.com/lectern-dev/lectern/shared/routes"
	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/faulttest"
	"github.com/lectern-dev/lectern/shared/testing/needs"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// fleet runs every service as a process of its own, each with a database of its own. The databases, and that of the
// keys, are on one Citus cluster of two workers.
type fleet struct {
	cluster *pgtest.Cluster
	redis   *redistest.Server
	keys    *authtest.Keys
	of      map[routes.Service]*servicetest.Process
	control *servicetest.Process // another process of entries, without requests for projects of the second worker
	healthy *side                // projects of the first worker
	failing *side                // projects of the second worker, which fails
}

// side has projects whose data is all on one worker.
type side struct {
	read  []string // read by the load
	write string   // written by the load
	fresh []string // have no data yet
	next  int      // the number of the next record
	key   map[string]string
}

// poolConns is the number of connections of each pool of a service. The failing worker's projects have more clients
// than that, so they could use all connections.
const poolConns = 4

func startFleet(t *testing.T) *fleet {
	t.Helper()
	needs.Long(t)
	f := &fleet{
		cluster: pgtest.NewCluster(t, 2, "citus.recover_2pc_interval = '3s'"), redis: redistest.Start(t),
		of: map[routes.Service]*servicetest.Process{},
	}
	programs := servicetest.BuildAll(t, "../..", "./entries/cmd/entries", "./embeddables/cmd/embeddables", "./experiments/cmd/experiments", "./region/cmd/region")
	keys := f.cluster.Database(t, pgkeys.Schema())
	f.keys = authtest.On(t, keys, f.redis.URL)
	environ := map[string]string{
		"MIGRATE_ON_START": "true", "DATABASE_MAX_CONNS": strconv.Itoa(poolConns), "INGEST_RETRY_TIME": "1s", "STATEMENT_TIMEOUT": "5s",
	}
	tables := map[string]string{f.cluster.Superuser(keys): "api_keys"} // one table of each database
	for service, table := range map[routes.Service]string{
		routes.Entries: "entries", routes.Embeddables: "embeddables", routes.Experiments: "experiments", routes.Region: "projects",
	} {
		name := string(service)
		b := &servicetest.Backing{Redis: f.redis, Keys: f.keys, DB: f.cluster.Database(t, migrate.Schema{
			// Without tables, because the service creates them itself.
			Name: name, Migrations: fstest.MapFS{"0001_nothing.sql": {Data: []byte("-- +goose Up\nDROP TABLE IF EXISTS nothing;\n")}},
		})}
		(&servicetest.Service{Backing: b}).Exec(t, "DROP TABLE "+name+"_migrations")
		binary := filepath.Join(programs, name)
		f.of[service] = servicetest.StartProcess(t, b, binary, environ)
		tables[f.cluster.Superuser(b.DB)] = table
		if service == routes.Entries {
			f.control = servicetest.StartProcess(t, b, binary, environ)
		}
	}
	f.findProjects(t, tables)
	for _, s := range []*side{f.healthy, f.failing} {
		for _, project := range append([]string{s.write}, s.read...) {
			s.key[project] = f.keys.Key(project)
			f.fill(t, project)
		}
	}
	return f
}

// findProjects finds projects whose data is on one worker in all databases. tables has one table of each database, by
// URL.
func (f *fleet) findProjects(t *testing.T, tables map[string]string) {
	t.Helper()
	var all []string
	for i := range 2000 {
		all = append(all, fmt.Sprintf("pr_%d", i))
	}
	on := map[string]map[string]int{} // number of databases by worker and project
	for url, table := range tables {
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		rows, err := conn.Query(t.Context(), `
			SELECT u.project, n.nodename || ':' || n.nodeport
			FROM (SELECT project, get_shard_id_for_distribution_column($2::text::regclass, project) AS shardid FROM unnest($1::text[]) project) u
			JOIN pg_dist_placement USING (shardid) JOIN pg_dist_node n USING (groupid)`, all, table)
		if err != nil {
			t.Fatal(err)
		}
		var project, worker string
		if _, err := pgx.ForEachRow(rows, []any{&project, &worker}, func() error {
			if on[worker] == nil {
				on[worker] = map[string]int{}
			}
			on[worker][project]++
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	sideOf := func(worker int) *side {
		s := &side{key: map[string]string{}}
		for _, project := range all {
			if on[f.cluster.Member(worker)][project] == len(tables) {
				s.fresh = append(s.fresh, project)
			}
		}
		if len(s.fresh) < 300 {
			t.Fatalf("only %d projects have everything on worker %d", len(s.fresh), worker)
		}
		s.read, s.write, s.fresh = s.fresh[:2], s.fresh[2], s.fresh[3:]
		return s
	}
	f.healthy, f.failing = sideOf(1), sideOf(2)
}

// fill stores some records of every kind for a project.
func (f *fleet) fill(t *testing.T, project string) {
	t.Helper()
	var entries, events, embeddables, versions, experiments []any
	for i := range rowsEach {
		entries = append(entries, newEntry(project, fmt.Sprintf("en_%d", i), at(i)))
		events = append(events, pageView(project, fmt.Sprintf("en_%d", i), 1, at(i)))
	}
	for i := range 20 {
		embeddables = append(embeddables, newEmbeddable(project, fmt.Sprintf("emb_%d", i)))
		versions = append(versions, newVersion(project, "emb_1", i))
		experiments = append(experiments, newExperiment(project, fmt.Sprintf("ex_%d", i), i))
	}
	f.of[routes.Entries].MustIngest(t, "entries", entries...)
	f.of[routes.Entries].MustIngest(t, "events", events...)
	f.of[routes.Embeddables].MustIngest(t, "embeddables", embeddables...)
	f.of[routes.Embeddables].MustIngest(t, "embeddable-versions", versions...)
	f.of[routes.Experiments].MustIngest(t, "experiments", experiments...)
	f.of[routes.Region].MustIngest(t, "projects", newProject(project))
}

func newEmbeddable(project, id string) object {
	return object{"embeddable_id": id, "title": "Title of " + id, "group_id": "gr_1", "project_id": project, "json_string_prod": `{"flow":"` + id + `"}`}
}

func newVersion(project, embeddable string, number int) object {
	return object{"embeddable_id": embeddable, "project_id": project, "version_number": number,
		"saved_at": at(number).Format(time.RFC3339), "json_string": fmt.Sprintf(`{"version":%d}`, number)}
}

func newExperiment(project, id string, created int) object {
	moment := at(created).Format(time.RFC3339)
	return object{
		"project_id": project, "id": id, "experimentId": id, "flowId": "emb_1", "name": "Name of " + id, "hypothesis": nil,
		"impact_metrics": nil, "no_impact_metrics": nil, "created_at": moment, "updated_at": moment, "observations": nil, "outcome": nil,
		"attachments": nil, "variants": nil, "flow_ids": nil, "paused_showing_variant": nil, "winner_variant": nil, "status": "running",
	}
}

func newProject(id string) object {
	return object{"id": id, "title": "Title of " + id, "region": "Europe/Berlin"}
}

// request is a request that the load repeats.
type request struct {
	name    string // of its load's report
	service routes.Service
	method  string
	paths   []string
	body    string
	key     string
}

// requests returns every reading operation for one project.
func (s *side) requests(project string) []request {
	under := func(paths ...string) []string {
		for i := range paths {
			paths[i] = "/projects/" + project + paths[i]
		}
		return paths
	}
	key := s.key[project]
	return []request{
		{"entries", routes.Entries, http.MethodGet, under("/entries", "/entries?limit=100&direction=ASC", "/entries/en_7", "/entries/en_7/events",
			"/entries-page-views?include_urls=true", "/entries-changes", "/entries-counts?interval=month", "/entries-overview?interval=month", "/entries-funnel?embeddable_id=emb_1", "/entries-answers?embeddable_id=emb_1"), "", key},
		{"embeddables", routes.Embeddables, http.MethodGet, under("/embeddables", "/embeddables/emb_1", "/embeddables/emb_1/versions",
			"/embeddables/emb_1/versions/7"), "", key},
		{"experiments", routes.Experiments, http.MethodGet, under("/experiments", "/experiments/ex_7", "/experiments/ex_7/history"), "", key},
		{"projects", routes.Region, http.MethodGet, under(""), "", ""},
		{"keys", routes.Region, http.MethodGet, under("/key"), "", key},
		{lookUps, routes.Region, http.MethodPost, []string{"/api/projects/region"}, `{"projectId":"` + project + `","at":"2022-01-01"}`, servicetest.InternalKey},
	}
}

// lookUps is the name of region look-ups, which the service answers from its cache while the database is down.
const lookUps = "look-ups"

// load reads all data of a side's projects, with clients for each project and a pause between requests.
func (f *fleet) load(t *testing.T, s *side, clients int, pause time.Duration) (stop func() map[string]faulttest.Report) {
	t.Helper()
	loads := map[string][]*faulttest.Load{}
	for _, project := range s.read {
		for _, r := range s.requests(project) {
			loads[r.name] = append(loads[r.name], faulttest.Start(t, f.of[r.service].URL, faulttest.LoadOptions{
				Key: r.key, Paths: r.paths, Method: r.method, Body: r.body, Clients: clients, Pause: pause,
			}))
		}
	}
	return func() map[string]faulttest.Report {
		reports := map[string]faulttest.Report{}
		for name, of := range loads {
			var all []faulttest.Report
			for _, l := range of {
				all = append(all, l.Stop())
			}
			reports[name] = faulttest.Merge(all...)
		}
		return reports
	}
}

// record is a record to store, the path to read it, and a part of the answer.
type record struct {
	service        routes.Service
	resource       string
	line           object
	path, contains string
}

// record returns the next record of a side. Resources take turns.
func (s *side) record() record {
	n, p := s.next, s.write
	s.next++
	under := "/projects/" + p
	switch n % 6 {
	case 0:
		id := fmt.Sprintf("new_%d", n)
		return record{routes.Entries, "entries", newEntry(p, id, at(1_000_000+n)), under + "/entries/" + id, `"` + id + `"`}
	case 1:
		of, page := fmt.Sprintf("en_%d", n%rowsEach), 1000+n
		return record{routes.Entries, "events", pageView(p, of, page, at(1_000_000+n)), under + "/entries/" + of + "/events?limit=100", fmt.Sprintf(`"pg_%d"`, page)}
	case 2:
		id := fmt.Sprintf("new_%d", n)
		return record{routes.Embeddables, "embeddables", newEmbeddable(p, id), under + "/embeddables/" + id, `"Title of ` + id + `"`}
	case 3:
		number := 1000 + n
		return record{routes.Embeddables, "embeddable-versions", newVersion(p, "emb_1", number), fmt.Sprintf("%s/embeddables/emb_1/versions/%d", under, number), fmt.Sprintf(`\"version\":%d}`, number)}
	case 4:
		id := fmt.Sprintf("new_%d", n)
		return record{routes.Experiments, "experiments", newExperiment(p, id, n), under + "/experiments/" + id, `"Name of ` + id + `"`}
	}
	id := s.fresh[n/6%len(s.fresh)]
	return record{routes.Region, "projects", newProject(id), "/projects/" + id, `"Title of ` + id + `"`}
}

// write stores records of a side until ctx ends, and reads each one once it is acknowledged. It returns the
// acknowledged records, and the number of answers with 503.
func (f *fleet) write(ctx context.Context, t *testing.T, s *side) (acknowledged []record, refused int) {
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	for ; ctx.Err() == nil; <-pause.C {
		r := s.record()
		line, err := json.Marshal(r.line)
		if err != nil {
			t.Error(err)
			return nil, 0
		}
		a := f.of[r.service].DoInternal(t, servicetest.Request{
			Method: http.MethodPost, Path: "/internal/" + r.resource, Key: servicetest.IngestKey, Body: strings.NewReader(string(line)),
		})
		switch {
		case a.Status == http.StatusOK && strings.Contains(string(a.Body), `"rejected":0`):
			acknowledged = append(acknowledged, r)
			if !f.checkStored(t, s, r) {
				refused++
			}
		case a.Status == http.StatusServiceUnavailable:
			refused++
		default:
			t.Errorf("ingest of %s into %s: %d %s", r.resource, s.write, a.Status, a.Body)
		}
	}
	return acknowledged, refused
}

// checkStored reads an acknowledged record, and fails t if it is missing. It returns false for a 503.
func (f *fleet) checkStored(t *testing.T, s *side, r record) bool {
	a := f.of[r.service].Get(t, s.key[s.write], r.path)
	if a.Status == http.StatusServiceUnavailable {
		return false
	}
	if a.Status != http.StatusOK || !strings.Contains(string(a.Body), r.contains) {
		t.Errorf("%s was acknowledged and is %d %.300s", r.path, a.Status, a.Body)
	}
	return true
}
