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
	// projects is the number of projects among which fill distributes the entries, one after the other.
	projects = 50
	// perProject is how many entries each of the projects has: 100,000 entries in all.
	perProject = 2000
	// firstProject plus n is the id of the n-th project, from 1. The id is a number because pgbench computes the ids,
	// and can compute numbers only.
	firstProject = 7_100_000_000
	// bigProject is the id of a project with bigEntries entries and no events, for exports and deep pages.
	bigProject = "7200000000"
	bigEntries = 100_000
	// hugeProject is the id of a project with hugeEntries entries and no events, in the database with Grow times the
	// entries.
	hugeProject = "7300000000"
	hugeEntries = 1_000_000
)

func projectID(n int) string { return strconv.Itoa(firstProject + n) }

// shape is how many projects, entries and events a database for a benchmark has.
type shape struct {
	projects, each int    // number of projects, and of entries in each
	events         int    // number of events of each entry
	big            string // another project, with bigEntries entries and no events; empty: there is none
	bigEntries     int
}

// entries is a running entries service of one version, with its data and the API keys of its projects.
type entries struct {
	*stage.Service
	shape
	of         *version
	bare       *stage.Service
	statements statement.Set
	keys       map[string]string // by project
}

// entries returns the entries service with 100,000 entries in 50 projects, their events, and bigProject. The first
// call makes the data.
func (v *version) entries(ctx context.Context) *entries {
	return v.small.once(func() *entries {
		return v.makeEntries(ctx, stage.Definition{Name: "entries"},
			shape{projects: projects, each: perProject, events: sample.EventsOf, big: bigProject, bigEntries: bigEntries})
	})
}

// grown returns the entries service with Grow times as many entries, without events, and a project of a million
// entries. The first call makes the data.
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

// addCounters is SQL that gives each project its counter of changes. The counter is the current time in microseconds,
// as if a transaction had numbered the changes now.
const addCounters = `
INSERT INTO project_changes (project_id, last_seq)
SELECT project_id, (extract(epoch FROM now()) * 1000000)::bigint FROM entries GROUP BY project_id`

// fill inserts the entries and events that s describes, and prepares the tables for reads by VACUUM and a checkpoint.
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
			// Events are stored in the order in which they happen: the first page of all visits, then the second page
			// of all visits.
			visit := i % many
			return sample.EntryOf(projectID(1+visit%s.projects), 1+visit/s.projects, s.each).Event(i / many)
		})
	})
	db.Run(ctx, addCounters, "VACUUM (ANALYZE) entries", "VACUUM (ANALYZE) events")
	db.Checkpoint(ctx)
}

// variety is how many different requests a load sends in turn.
const variety = 5000

// requests returns a load of GET requests. template is a format of the path, with the ids of a random project, of one
// of its entries and of the entry's contact.
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

// driven returns a contender that sends the requests of template to svc over several connections. name is the name of
// the load's files.
func (e *entries) driven(ctx context.Context, svc *stage.Service, name, template string) *contender {
	return e.of.driven(ctx, svc, e.requests(name, template))
}
