package row

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"

	"github.com/lectern-dev/lectern/bench/internal/load"
	"github.com/lectern-dev/lectern/bench/internal/must"
	"github.com/lectern-dev/lectern/bench/internal/sample"
	"github.com/lectern-dev/lectern/bench/internal/stage"
	"github.com/lectern-dev/lectern/bench/internal/statement"
)

const (
	// projects is how many projects the entries are spread over.
	projects = 50
	// perProject is how many entries each of them has: 100,000 in all.
	perProject = 2000
	// firstProject is the id before the first project. pgbench can compute numbers only.
	firstProject = 7_100_000_000
	// bigProject has bigEntries entries and no events.
	bigProject = "7200000000"
	bigEntries = 100_000
	// hugeProject has hugeEntries entries and no events; it is in the grown database.
	hugeProject = "7300000000"
	hugeEntries = 1_000_000
)

func projectID(n int) string { return strconv.Itoa(firstProject + n) }

// shape describes the entries to make.
type shape struct {
	projects, each int    // so many projects have so many entries each
	events         int    // and each of these so many events
	big            string // a project that has bigEntries besides, without events; empty: there is none
	bigEntries     int
}

// entries is the service entries with data.
type entries struct {
	*stage.Service
	shape
	of         *version
	bare       *stage.Service
	statements statement.Set
	keys       map[string]string // by project
}

// entries returns the service over 100,000 entries in 50 projects with their events, and a big project.
func (v *version) entries(ctx context.Context) *entries {
	return v.small.once(func() *entries {
		return v.makeEntries(ctx, stage.Definition{Name: "entries"},
			shape{projects: projects, each: perProject, events: sample.EventsOf, big: bigProject, bigEntries: bigEntries})
	})
}

// grown returns the service over Grow times the entries, without events, and a project of a million.
func (v *version) grown(ctx context.Context) *entries {
	return v.large.once(func() *entries {
		return v.makeEntries(ctx, grownIn, shape{projects: projects, each: perProject * v.Grow, big: hugeProject, bigEntries: hugeEntries})
	})
}

var grownIn = stage.Definition{Name: "entries", Database: "entries_grown"}

func (v *version) makeEntries(ctx context.Context, d stage.Definition, s shape) *entries {
	v.Note("making %d entries in %d projects, and %d in one", s.projects*s.each, s.projects, s.bigEntries)
	db := v.Migrated(ctx, d)
	fill(ctx, db, s)
	ids := make([]string, s.projects)
	for n := range ids {
		ids[n] = projectID(1 + n)
	}
	if s.big != "" {
		ids = append(ids, s.big)
	}
	e := &entries{Service: v.Start(ctx, d), shape: s, of: v, keys: v.Keys(ctx, ids)}
	if v == v.tree() {
		e.statements = must.Get(statement.Read(filepath.Join(v.Root, "services/entries/internal/store/testdata/statements.sql")))
		texts := map[string]string{}
		for _, r := range reads() {
			if r.bare != "" {
				texts[r.bare] = must.Get(e.statements.Get(r.statement))
			}
		}
		e.bare = v.StartBare(ctx, db, string(must.Get(json.Marshal(texts))))
	}
	return e
}

// addCounters gives each project with entries its counter of changes, as if a current transaction had numbered them.
const addCounters = `
INSERT INTO project_changes (project_id, last_seq)
SELECT project_id, (extract(epoch FROM now()) * 1000000)::bigint FROM entries GROUP BY project_id`

// fill inserts entries and events into the tables.
func fill(ctx context.Context, db stage.Database, s shape) {
	many := s.projects * s.each
	db.WithoutIndexes(ctx, "entries", func() {
		db.Load(ctx, "entries", sample.EntryColumns(), many+s.bigEntries, func(i int) []any {
			if i < many {
				return sample.EntryOf(projectID(1+i%s.projects), 1+i/s.projects, s.each).Row()
			}
			return sample.EntryOf(s.big, 1+i-many, s.bigEntries).Row()
		})
	})
	db.WithoutIndexes(ctx, "events", func() {
		db.Load(ctx, "events", sample.EventColumns(), many*s.events, func(i int) []any {
			// In the order in which they happen: page after page, of many visitors at a time.
			visit := i % many
			return sample.EntryOf(projectID(1+visit%s.projects), 1+visit/s.projects, s.each).Event(i / many)
		})
	})
	db.Run(ctx, addCounters, "VACUUM (ANALYZE) entries", "VACUUM (ANALYZE) events")
	db.Checkpoint(ctx)
}

// variety is how many different requests a load has.
const variety = 5000

// requests prepares a load of the path that template makes from the ids of a project, an entry and its contact.
func (e *entries) requests(name, template string) *load.HTTP {
	random := rand.New(rand.NewPCG(1, 2))
	list := make([]load.Request, variety)
	for i := range list {
		project, n := projectID(1+random.IntN(e.projects)), 1+random.IntN(e.each)
		list[i] = load.Request{
			Path: fmt.Sprintf(template, project, sample.EntryID(n), sample.ContactID(n)),
			Key:  e.keys[project],
		}
	}
	return must.Get(load.NewHTTP(e.of.Folder, name, list))
}

// driven returns a load of such requests on a server.
func (e *entries) driven(ctx context.Context, svc *stage.Service, name, template string) *contender {
	return e.of.driven(ctx, svc, e.requests(name, template))
}
