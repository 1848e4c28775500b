package row

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"time"

	"github.com/lectern-dev/lectern/bench/internal/load"
	"github.com/lectern-dev/lectern/bench/internal/report"
	"github.com/lectern-dev/lectern/bench/internal/stage"
	"github.com/lectern-dev/lectern/bench/internal/statement"
)

const (
	// items is how many embeddables and experiments each project has.
	items = 20
	// firstItem is the id before a project's first item.
	firstItem = 9_000_000
)

// A sibling is a list of a service other than entries.
type sibling struct {
	name      string
	service   string
	path      string   // of project and item
	fill      []string // statements that make the data
	statement string   // that the service runs for it
	variables map[string]string
	arguments []string // variables that stand for the statement's parameters
}

func siblings() []sibling {
	each := fmt.Sprintf(`generate_series(1, %d) p CROSS JOIN generate_series(1, %d) i`, projects, items)
	project, item := fmt.Sprintf(`(%d + p)::text`, firstProject), fmt.Sprintf(`(%d + i)::text`, firstItem)
	embeddables := []string{
		`INSERT INTO embeddables (project_id, embeddable_id, title, group_id, definition_hash)
			SELECT ` + project + `, ` + item + `, 'Kitchen planner ' || i, 'gr_1', sha256('{}') FROM ` + each,
		`INSERT INTO versions (project_id, embeddable_id, version_number, saved_at, definition_hash)
			SELECT ` + project + `, ` + item + `, n, timestamptz '2024-01-01' + n * interval '1 day', sha256('{}')
			FROM ` + each + ` CROSS JOIN generate_series(1, 30) n`,
		`VACUUM (ANALYZE) embeddables`, `VACUUM (ANALYZE) versions`,
	}
	return []sibling{
		{
			name: "embeddables_list", service: "embeddables", path: "/projects/%[1]s/embeddables%.0[2]s",
			fill: embeddables, statement: "embeddables.chunk",
			variables: map[string]string{"low": "0", "high": "\U0010FFFF", "rows": "500"},
			arguments: []string{"project", "low", "high", "rows"},
		},
		{
			name: "versions_10", service: "embeddables", path: "/projects/%[1]s/embeddables/%[2]s/versions",
			fill: embeddables, statement: "versionsDescending.first",
			variables: map[string]string{"last": strconv.Itoa(1 << 53), "first": "-1", "rows": "11"},
			arguments: []string{"project", "item", "last", "first", "rows"},
		},
		{
			name: "experiments_list", service: "experiments", path: "/projects/%[1]s/experiments%.0[2]s",
			fill: []string{
				`INSERT INTO experiments (project_id, experiment_id, flow_id, name, hypothesis, impact_metrics, no_impact_metrics,
					created_at, updated_at, observations, outcome, attachments, variants, flow_ids, paused_showing_variant,
					winner_variant, status, changes)
					SELECT ` + project + `, ` + item + `, 'flow_1', 'Shorter form', 'Fewer steps bring more visitors to the end',
					'["completion","time"]', '[]', timestamptz '2024-01-01' + i * interval '1 day', timestamptz '2024-02-01', NULL, NULL,
					'[]', '{"control":{"weight":50},"variant_a":{"weight":50}}', '["flow_1"]', NULL, NULL, 'running', 1 FROM ` + each,
				`VACUUM (ANALYZE) experiments`,
			},
			statement: "experiments.chunk",
			variables: map[string]string{"last": "infinity", "first": "-infinity", "none": "0", "rows": "500"},
			arguments: []string{"project", "last", "none", "first", "none", "rows"},
		},
	}
}

// filled is a service with data.
type filled struct {
	*stage.Service
	statements statement.Set
	keys       map[string]string // by project
}

// filled returns the sibling's service. The first call starts and fills it.
func (b *Bench) filled(ctx context.Context, s sibling) (*filled, error) {
	m, ok := b.siblings[s.service]
	if !ok {
		m = &lazy[*filled]{}
		b.siblings[s.service] = m
	}
	return m.once(func() (*filled, error) {
		d := stage.Definition{Name: s.service}
		set, err := statement.Read(filepath.Join(b.stage.Root, "services", s.service, "internal/store/testdata/statements.sql"))
		if err != nil {
			return nil, err
		}
		db, err := b.stage.Migrated(ctx, d)
		if err != nil {
			return nil, err
		}
		if err := db.Run(ctx, s.fill...); err != nil {
			return nil, err
		}
		f := &filled{statements: set, keys: map[string]string{}}
		for n := range projects {
			if f.keys[projectID(1+n)], err = b.stage.Key(ctx, projectID(1+n)); err != nil {
				return nil, err
			}
		}
		f.Service, err = b.stage.Start(ctx, d)
		return f, err
	})
}

// list compares a sibling's list with pgbench.
func (b *Bench) list(ctx context.Context, s sibling) ([]report.Result, error) {
	f, err := b.filled(ctx, s)
	if err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(1, 2))
	requests := make([]load.Request, variety)
	for i := range requests {
		project := projectID(1 + random.IntN(projects))
		requests[i] = load.Request{
			Path: fmt.Sprintf(s.path, project, strconv.Itoa(firstItem+1+random.IntN(items))), Key: f.keys[project],
		}
	}
	web, err := load.NewHTTP(b.stage.Folder, s.name, requests)
	if err != nil {
		return nil, err
	}
	sql, err := f.statements.Get(s.statement)
	if err != nil {
		return nil, err
	}
	if sql, err = statement.ForPgbench(sql, s.arguments...); err != nil {
		return nil, err
	}
	reference, err := load.NewSQL(b.stage.Folder, s.name, fmt.Sprintf("\\set project %d + random(1, %d)\n\\set item %d + random(1, %d)\n%s;\n",
		firstProject, projects, firstItem, items, sql), s.variables)
	if err != nil {
		return nil, err
	}
	if _, err := web.Run(ctx, f.URL, connections, time.Second); err != nil {
		return nil, err
	}
	v, err := rounds(ctx, b.Rounds,
		func(ctx context.Context) (float64, error) {
			rate, err := web.Run(ctx, f.URL, connections, b.Round)
			return rate.PerSecond, err
		},
		func(ctx context.Context) (float64, error) {
			rate, err := reference.Run(ctx, f.Database.Reader, connections, b.Round)
			return rate.PerSecond, err
		})
	if err != nil {
		return nil, err
	}
	return []report.Result{report.Ratios(s.name, report.RequestsRate, report.AtLeast(0.25), v[0], "pgbench", v[1])}, nil
}

// region measures operation 9, whose answers come from memory. It compares it with a bare handler that reads the same
// body and returns an answer of the same size.
func (b *Bench) region(ctx context.Context) ([]report.Result, error) {
	d := stage.Definition{Name: "region"}
	db, err := b.stage.Migrated(ctx, d)
	if err != nil {
		return nil, err
	}
	zones := []string{"America/Los_Angeles", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe"}
	err = db.Run(ctx, fmt.Sprintf(`INSERT INTO projects (project_id, title, region) SELECT (%d + p)::text, 'Project ' || p, ('{%s,%s,%s,%s}'::text[])[1 + p %% 4]
		FROM generate_series(1, %d) p`, firstProject, zones[0], zones[1], zones[2], zones[3], projects))
	if err != nil {
		return nil, err
	}
	svc, err := b.stage.Start(ctx, d)
	if err != nil {
		return nil, err
	}
	bare, err := b.stage.StartBare(ctx, db, "{}")
	if err != nil {
		return nil, err
	}
	requests := make([]load.Request, projects)
	for i := range requests {
		requests[i] = load.Request{
			Path: "/api/projects/region", Key: stage.InternalKey, Body: `{"projectId":"` + projectID(1+i) + `"}`,
		}
	}
	web, err := load.NewHTTP(b.stage.Folder, "region", requests)
	if err != nil {
		return nil, err
	}
	served, beside := &driven{of: svc}, &driven{of: bare}
	for _, s := range []*driven{served, beside} {
		if _, err := web.Run(ctx, s.of.URL, connections, time.Second); err != nil {
			return nil, err
		}
	}
	v, err := rounds(ctx, b.Rounds, served.by(web, b.Round), beside.by(web, b.Round))
	if err != nil {
		return nil, err
	}
	return []report.Result{
		report.Ratios("region", report.RequestsRate, report.AtLeast(0.6), v[0], "bare handler", v[1]),
		report.Ratios("region_cpu", report.Nanoseconds, report.Floor{}, served.cpu, "bare handler", beside.cpu),
	}, nil
}

// regionClient runs the Go benchmark of a warm look-up by region's client.
func (b *Bench) regionClient(ctx context.Context) ([]report.Result, error) {
	took, _, err := b.goBenchmark(ctx, "./services/region/client", "BenchmarkLookupWarm")
	if err != nil {
		return nil, err
	}
	return []report.Result{report.Values("region_client", report.Nanoseconds, report.Floor{}, took)}, nil
}
