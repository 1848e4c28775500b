package app

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/faulttest"
	"github.com/lectern-dev/lectern/shared/testing/needs"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	"github.com/lectern-dev/lectern/services/entries/internal/store"
)

// sharded is a service whose database is on a Citus cluster of its own, with projects on two workers.
type sharded struct {
	*servicetest.Service
	cluster *pgtest.Cluster
	healthy []string // three projects on the first worker
	failing []string // three on the second
	keys    map[string]string
}

// rowsEach is the number of entries of each project. Each entry has a page view.
const rowsEach = 300

func startSharded(t *testing.T) *sharded {
	t.Helper()
	needs.Long(t)
	c := pgtest.NewCluster(t, 2, "citus.recover_2pc_interval = '3s'")
	redis := redistest.Start(t)
	b := &servicetest.Backing{DB: c.Database(t, store.Schema()), Redis: redis, Keys: authtest.New(t, redis.URL)}
	s := &sharded{cluster: c, keys: map[string]string{}, Service: startOn(t, b, map[string]string{
		"DATABASE_MAX_CONNS": "16", "INGEST_RETRY_TIME": "1s",
	})}
	for i := 0; len(s.healthy) < 3 || len(s.failing) < 3; i++ {
		project := fmt.Sprintf("pr_%d", i)
		side := &s.failing
		if s.worker(t, project) == c.Member(1) {
			side = &s.healthy
		}
		if len(*side) == 3 {
			continue
		}
		*side = append(*side, project)
		fill(t, s.Service, project, rowsEach)
		s.keys[project] = b.Keys.Key(project)
	}
	return s
}

// admin runs a query for one value as the superuser.
func (s *sharded) admin(t *testing.T, into any, sql string, args ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.cluster.Superuser(s.DB))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, sql, args...).Scan(into); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// worker returns the address of a project's worker.
func (s *sharded) worker(t *testing.T, project string) (addr string) {
	t.Helper()
	s.admin(t, &addr, `
		SELECT n.nodename || ':' || n.nodeport FROM pg_dist_placement p JOIN pg_dist_node n USING (groupid)
		WHERE p.shardid = get_shard_id_for_distribution_column('entries', $1::text)`, project)
	return addr
}

// load reads all data of each project, with two clients for each.
func (s *sharded) load(t *testing.T, projects []string) (stop func() faulttest.Report) {
	t.Helper()
	var loads []*faulttest.Load
	for _, p := range projects {
		var paths []string
		for _, path := range []string{"entries", "entries?limit=100&direction=ASC", "entries/en_0000007", "entries/en_0000007/events", "entries-page-views"} {
			paths = append(paths, "/projects/"+p+"/"+path)
		}
		loads = append(loads, faulttest.Start(t, s.URL, faulttest.LoadOptions{Key: s.keys[p], Paths: paths, Clients: 2, Pause: 5 * time.Millisecond}))
	}
	return func() faulttest.Report {
		var all []faulttest.Report
		for _, l := range loads {
			all = append(all, l.Stop())
		}
		return faulttest.Merge(all...)
	}
}

// TestLongCitusRebalance adds a third worker, moves shards to it, and moves a large project to a worker of its own.
// Under load no request fails, and walks by cursor return every row exactly once.
func TestLongCitusRebalance(t *testing.T) {
	s := startSharded(t)
	const large = "pr_large"
	fill(t, s.Service, large, 40_000)
	s.keys[large] = s.Keys.Key(large)
	stop := []func() faulttest.Report{s.load(t, s.healthy), s.load(t, s.failing)}
	ctx, cancel := context.WithCancel(context.Background())
	var walking sync.WaitGroup
	defer walking.Wait()
	defer cancel()
	walks := map[string]int{}
	var mu sync.Mutex
	for _, of := range []struct {
		project string
		page, n int
	}{{s.healthy[0], 7, rowsEach}, {s.failing[0], 7, rowsEach}, {large, 100, 40_000}} {
		walking.Go(func() {
			for ctx.Err() == nil {
				path := fmt.Sprintf("/projects/%s/entries?direction=ASC&limit=%d", of.project, of.page)
				seen := map[string]bool{}
				for _, id := range servicetest.Column(s.Service.Walk(t, s.keys[of.project], path, nil), "entry_id") {
					if seen[id] {
						t.Errorf("a walk of %s has %s twice", of.project, id)
					}
					seen[id] = true
				}
				if len(seen) != of.n {
					t.Errorf("a walk of %s has %d rows of %d", of.project, len(seen), of.n)
				}
				mu.Lock()
				walks[of.project]++
				mu.Unlock()
			}
		})
	}
	s.cluster.Grow(t, s.DB, "entries")
	var job int64
	begin := time.Now()
	s.admin(t, &job, `SELECT citus_rebalance_start()`)
	eventually.True(t, "shards are rebalanced", func() bool {
		var left int
		s.admin(t, &left, `SELECT count(*) FROM pg_dist_background_job WHERE job_id = $1 AND state NOT IN ('finished', 'cancelled', 'failed')`, job)
		return left == 0
	})
	var onThird int
	host, port, _ := strings.Cut(s.cluster.Member(3), ":")
	s.admin(t, &onThird, `SELECT count(*) FROM pg_dist_placement JOIN pg_dist_node USING (groupid) WHERE nodename = $1 AND nodeport = $2::text::int`, host, port)
	t.Logf("%d shards moved to the third worker within %v", onThird, time.Since(begin))
	if onThird == 0 {
		t.Error("nothing was moved")
	}
	begin = time.Now()
	var shard int64
	s.admin(t, &shard, `SELECT isolate_tenant_to_new_shard('entries', $1::text, 'CASCADE', shard_transfer_mode => 'force_logical')`, large)
	from, to := s.worker(t, large), s.cluster.Member(3)
	if from == to {
		to = s.cluster.Member(1)
	}
	var moved string
	s.admin(t, &moved, `
		SELECT citus_move_shard_placement($1, a.nodename, a.nodeport, b.nodename, b.nodeport, 'force_logical')::text
		FROM pg_dist_node a, pg_dist_node b
		WHERE a.nodename || ':' || a.nodeport = $2 AND b.nodename || ':' || b.nodeport = $3`, shard, from, to)
	if is := s.worker(t, large); is != to {
		t.Errorf("the large project is on %s, want %s", is, to)
	}
	t.Logf("a project of 40,000 entries moved to a shard and a worker of its own within %v", time.Since(begin))
	cancel()
	walking.Wait()
	t.Logf("walks: %v", walks)
	for _, end := range stop {
		report := end()
		report.Check(t, "moving")
		if report.Refused+report.Broken > 0 {
			t.Errorf("requests failed: %v", report)
		}
	}
}
