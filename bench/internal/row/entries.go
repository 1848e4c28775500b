package row

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"

	"github.com/lectern-dev/lectern/bench/internal/load"
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
	bare       *stage.Service
	statements statement.Set
	keys       map[string]string // by project
}

// entries returns the service over 100,000 entries in 50 projects with their events, and a big project.
func (b *Bench) entries(ctx context.Context) (*entries, error) {
	return b.small.once(func() (*entries, error) {
		return b.makeEntries(ctx, stage.Definition{Name: "entries"},
			shape{projects: projects, each: perProject, events: sample.EventsOf, big: bigProject, bigEntries: bigEntries})
	})
}

// grown returns the service over Grow times the entries, without events, and a project of a million.
func (b *Bench) grown(ctx context.Context) (*entries, error) {
	return b.large.once(func() (*entries, error) {
		return b.makeEntries(ctx, stage.Definition{Name: "entries", Database: "entries_grown"},
			shape{projects: projects, each: perProject * b.Grow, big: hugeProject, bigEntries: hugeEntries})
	})
}

func (b *Bench) makeEntries(ctx context.Context, d stage.Definition, s shape) (*entries, error) {
	b.Note("making %d entries in %d projects, and %d in one", s.projects*s.each, s.projects, s.bigEntries)
	set, err := statement.Read(filepath.Join(b.stage.Root, "services/entries/internal/store/testdata/statements.sql"))
	if err != nil {
		return nil, err
	}
	db, err := b.stage.Migrated(ctx, d)
	if err != nil {
		return nil, err
	}
	if err := b.fill(ctx, db, s); err != nil {
		return nil, err
	}
	ids := make([]string, s.projects)
	for n := range ids {
		ids[n] = projectID(1 + n)
	}
	if s.big != "" {
		ids = append(ids, s.big)
	}
	keys, err := b.stage.Keys(ctx, ids)
	if err != nil {
		return nil, err
	}
	e := &entries{shape: s, statements: set, keys: make(map[string]string, len(keys))}
	for i, key := range keys {
		e.keys[ids[i]] = key
	}
	if e.Service, err = b.stage.Start(ctx, d); err != nil {
		return nil, err
	}
	e.bare, err = b.startBare(ctx, db, set)
	return e, err
}

// addCounters gives each project with entries its counter of changes, as if a current transaction had numbered them.
const addCounters = `
INSERT INTO project_changes (project_id, last_seq)
SELECT project_id, (extract(epoch FROM now()) * 1000000)::bigint FROM entries GROUP BY project_id`

// fill inserts entries and events into the tables.
func (b *Bench) fill(ctx context.Context, db stage.Database, s shape) error {
	many := s.projects * s.each
	err := db.WithoutIndexes(ctx, "entries", func() error {
		return db.Load(ctx, "entries", sample.EntryColumns(), many+s.bigEntries, func(i int) []any {
			if i < many {
				return sample.EntryOf(projectID(1+i%s.projects), 1+i/s.projects, s.each).Row()
			}
			return sample.EntryOf(s.big, 1+i-many, s.bigEntries).Row()
		})
	})
	if err == nil && s.events > 0 {
		err = db.WithoutIndexes(ctx, "events", func() error {
			return db.Load(ctx, "events", sample.EventColumns(), many*s.events, func(i int) []any {
				// In the order in which they happen: page after page, of many visitors at a time.
				visit := i % many
				return sample.EntryOf(projectID(1+visit%s.projects), 1+visit/s.projects, s.each).Event(i / many)
			})
		})
	}
	if err == nil {
		err = db.Run(ctx, addCounters, "VACUUM (ANALYZE) entries", "VACUUM (ANALYZE) events")
	}
	return errors.Join(err, db.Checkpoint(ctx))
}

func (b *Bench) startBare(ctx context.Context, db stage.Database, set statement.Set) (*stage.Service, error) {
	texts := map[string]string{}
	for _, r := range reads() {
		sql, err := set.Get(r.statement)
		if err != nil {
			return nil, err
		}
		texts[r.bare] = sql
	}
	encoded, err := json.Marshal(texts)
	if err != nil {
		return nil, err
	}
	return b.stage.StartBare(ctx, db, string(encoded))
}

// variety is how many different requests a load has.
const variety = 5000

// requests prepares a load of the path that template makes from the ids of a project, an entry and its contact.
func (e *entries) requests(folder, name, template string) (*load.HTTP, error) {
	random := rand.New(rand.NewPCG(1, 2))
	list := make([]load.Request, variety)
	for i := range list {
		project, n := projectID(1+random.IntN(e.projects)), 1+random.IntN(e.each)
		list[i] = load.Request{
			Path: fmt.Sprintf(template, project, sample.EntryID(n), sample.ContactID(n)),
			Key:  e.keys[project],
		}
	}
	return load.NewHTTP(folder, name, list)
}
