package row

import (
	"context"

	"github.com/lectern-dev/lectern/bench/internal/report"
	"github.com/lectern-dev/lectern/bench/internal/sample"
	"github.com/lectern-dev/lectern/bench/internal/stage"
)

const (
	// onCitus begins the names of rows that are measured on a cluster.
	onCitus = "citus_"
	// usualWorkers is how many workers have the tables unless a row sets another number.
	usualWorkers = 2
	// mostWorkers is the number of workers.
	mostWorkers = 3

	// waitForConnection is DATABASE_ACQUIRE_TIMEOUT of the measured services. On a busy machine, requests wait for a
	// connection instead of getting 503 after a second, because the row measures how long they take.
	waitForConnection = "DATABASE_ACQUIRE_TIMEOUT=10s"

	// firstSpread is the id before the first project of the ingest for many projects.
	firstSpread = 7_400_000_000
	// spreadProjects is the number of these projects, and spreadEntries the number of their entries in a round,
	// together.
	spreadProjects = 100
	spreadEntries  = 20_000
)

// citusGroups lists all measurements on a cluster. Those that change the data of others come last.
func (b *Bench) citusGroups() []Group {
	var groups []Group
	for _, r := range reads() {
		name := onCitus + r.name
		groups = append(groups, Group{[]string{name}, func(ctx context.Context) ([]report.Result, error) {
			e, err := b.onCluster(ctx)
			if err != nil {
				return nil, err
			}
			return b.readOf(ctx, e, r, name)
		}})
	}
	return append(groups,
		Group{[]string{onCitus + "export"}, b.citusExport},
		Group{[]string{onCitus + "workers_1", onCitus + "workers_2", onCitus + "workers_3"}, b.workers},
		Group{[]string{onCitus + "projects_10x", onCitus + "projects_1000x", onCitus + "keys_1000x"}, b.manyProjects},
		Group{[]string{onCitus + "ingest", onCitus + "ingest_100"}, b.citusIngest},
	)
}

// onCluster returns the service over the data of [Bench.entries], on two workers.
func (b *Bench) onCluster(ctx context.Context) (*entries, error) {
	return b.spread(ctx, "entries", usualWorkers,
		shape{projects: projects, each: perProject, events: sample.EventsOf, big: bigProject, bigEntries: bigEntries})
}

// spread returns the service over a database of that name, whose tables are distributed over the given number of
// workers. All such databases are on the same servers, so that they can be measured in turn.
func (b *Bench) spread(ctx context.Context, name string, workers int, s shape) (*entries, error) {
	m, ok := b.distributed[name]
	if !ok {
		m = &lazy[*entries]{}
		b.distributed[name] = m
	}
	return m.once(func() (*entries, error) {
		cluster, err := b.startCluster(ctx)
		if err != nil {
			return nil, err
		}
		db, err := cluster.Database(ctx, name, workers)
		if err != nil {
			return nil, err
		}
		return b.makeEntries(ctx, stage.Definition{Name: "entries", On: &db, Environ: []string{waitForConnection}}, s)
	})
}

func (b *Bench) startCluster(ctx context.Context) (*stage.Citus, error) {
	return b.cluster.once(func() (*stage.Citus, error) {
		c, err := b.stage.StartCitus(ctx, b.Citus, mostWorkers)
		if err == nil {
			b.Note("%s: a coordinator and %d workers", c.Version, mostWorkers)
		}
		return c, err
	})
}

// citusExport compares an export of a project with the cluster's own.
func (b *Bench) citusExport(ctx context.Context) ([]report.Result, error) {
	e, err := b.onCluster(ctx)
	if err != nil {
		return nil, err
	}
	return b.exportOf(ctx, e, onCitus+"export")
}

// citusIngest compares the ingest of entries with COPY: for one project, and for many at once.
func (b *Bench) citusIngest(ctx context.Context) ([]report.Result, error) {
	e, err := b.onCluster(ctx)
	if err != nil {
		return nil, err
	}
	one, err := b.ingestRounds(ctx, e, firstIngested, 1, ingestEntries)
	if err != nil {
		return nil, err
	}
	many, err := b.ingestRounds(ctx, e, firstSpread, spreadProjects, spreadEntries)
	if err != nil {
		return nil, err
	}
	return []report.Result{
		report.Ratios(onCitus+"ingest", report.RowsRate, report.AtLeast(0.15), one.fresh, "COPY", one.copied),
		report.Ratios(onCitus+"ingest_repeated", report.RowsRate, report.AtLeast(0.15), one.repeated, "COPY", one.copied),
		report.Ratios(onCitus+"ingest_100", report.RowsRate, report.Floor{}, many.fresh, "COPY", many.copied),
		report.Ratios(onCitus+"ingest_100_repeated", report.RowsRate, report.Floor{}, many.repeated, "COPY", many.copied),
	}, nil
}
