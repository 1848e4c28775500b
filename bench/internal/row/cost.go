package row

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/lectern-dev/lectern/bench/internal/report"
	"github.com/lectern-dev/lectern/bench/internal/sample"
	"github.com/lectern-dev/lectern/bench/internal/stage"
)

// costConnections leaves the machine some room, because the rows measure the cost of an operation and not its
// greatest rate.
const costConnections = 2

// costs measures the processor time of each operation in the service, in Postgres and in Redis, and the bytes of its
// answer. The capacity model is made from these values and compared with them.
func (b *Bench) costs(ctx context.Context) ([]report.Result, error) {
	e, err := b.entries(ctx)
	if err != nil {
		return nil, err
	}
	var results []report.Result
	for _, op := range []struct{ name, path string }{
		{"get_one", "/projects/%[1]s/entries/%[2]s"},
		{"list_10", "/projects/%[1]s/entries%.0[2]s"},
		{"list_100", "/projects/%[1]s/entries?limit=100%.0[2]s"},
		{"list_400", "/projects/%[1]s/entries?limit=400%.0[2]s"},
		{"list_2000", "/projects/%[1]s/entries?limit=2000%.0[2]s"},
		{"entry_events", "/projects/%[1]s/entries/%[2]s/events"},
		{"page_views_10", "/projects/%[1]s/entries-page-views%.0[2]s"},
		{"page_views_100", "/projects/%[1]s/entries-page-views?limit=100%.0[2]s"},
	} {
		requests, err := e.requests(b.stage.Folder, "cost_"+op.name, op.path)
		if err != nil {
			return nil, err
		}
		size, err := get(ctx, e.URL+fmt.Sprintf(op.path, projectID(1), sample.EntryID(1)), e.keys[projectID(1)])
		if err != nil {
			return nil, err
		}
		r, err := b.cost(ctx, op.name, e.Service, size.bytes, func(ctx context.Context) (int64, time.Duration, error) {
			rate, err := requests.Run(ctx, e.URL, costConnections, b.Round)
			return rate.Count, rate.CPU, err
		})
		if err != nil {
			return nil, err
		}
		results = append(results, r...)
	}
	size, err := exported(ctx, e.Service, bigProject, e.keys[bigProject], bigEntries)
	if err != nil {
		return nil, err
	}
	r, err := b.cost(ctx, "export", e.Service, size.bytes, func(ctx context.Context) (int64, time.Duration, error) {
		_, err := exported(ctx, e.Service, bigProject, e.keys[bigProject], bigEntries)
		return 1, 0, err
	})
	if err != nil {
		return nil, err
	}
	results = append(results, r...)
	if r, err = b.costOfIngest(ctx, e.Service); err != nil {
		return nil, err
	}
	sizes, err := b.sizes(ctx, e.Service)
	return append(append(results, r...), sizes...), err
}

// cost measures one operation. do runs it for a while, and returns how often and the client's processor time, 0 if
// the client is this process.
func (b *Bench) cost(ctx context.Context, name string, svc *stage.Service, size int64, do func(context.Context) (int64, time.Duration, error)) ([]report.Result, error) {
	var service, postgres, redis, client, rate []float64
	if _, _, err := do(ctx); err != nil {
		return nil, err
	}
	for range b.Rounds {
		own, err := svc.CPU()
		if err != nil {
			return nil, err
		}
		others, err := b.stage.Usage()
		if err != nil {
			return nil, err
		}
		begin := time.Now()
		n, used, err := do(ctx)
		took := time.Since(begin)
		if err != nil {
			return nil, err
		}
		ownAfter, err1 := svc.CPU()
		othersAfter, err2 := b.stage.Usage()
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		each := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(n) }
		service = append(service, each(ownAfter-own))
		postgres = append(postgres, each(othersAfter.Postgres-others.Postgres))
		redis = append(redis, each(othersAfter.Redis-others.Redis))
		client = append(client, each(used))
		rate = append(rate, float64(n)/took.Seconds())
	}
	name = "cost_" + name
	return []report.Result{
		report.Values(name+"_service", report.Microseconds, report.Floor{}, service),
		report.Values(name+"_postgres", report.Microseconds, report.Floor{}, postgres),
		report.Values(name+"_redis", report.Microseconds, report.Floor{}, redis),
		report.Values(name+"_client", report.Microseconds, report.Floor{}, client),
		report.Values(name+"_rate", report.RequestsRate, report.Floor{}, rate),
		report.Values(name+"_bytes", report.Bytes, report.Floor{}, []float64{float64(size)}),
	}, nil
}

// costOfIngest measures the ingest of a body of new entries, for each entry.
func (b *Bench) costOfIngest(ctx context.Context, svc *stage.Service) ([]report.Result, error) {
	const firstProject = firstIngested + 1000
	round := 0
	var size int64
	r, err := b.cost(ctx, "ingest", svc, 0, func(ctx context.Context) (int64, time.Duration, error) {
		round++
		project := strconv.Itoa(firstProject + round)
		all := make([]sample.Entry, ingestEntries/4)
		for i := range all {
			all[i] = sample.EntryOf(project, 1+i, len(all))
		}
		lines := sample.NDJSON(all)
		size = int64(len(lines) / len(all))
		got, err := postEntries(ctx, svc, lines)
		if err == nil && got.Stored != len(all) {
			err = fmt.Errorf("ingest of %d entries said %+v", len(all), got)
		}
		return int64(len(all)), 0, err
	})
	if err == nil {
		r[len(r)-1] = report.Values("cost_ingest_bytes", report.Bytes, report.Floor{}, []float64{float64(size)})
	}
	return r, err
}

// sizes measures the disk space of a record with its part of the indexes.
func (b *Bench) sizes(ctx context.Context, svc *stage.Service) ([]report.Result, error) {
	var results []report.Result
	for _, table := range []string{"entries", "events"} {
		size, err := svc.Database.Number(ctx, "SELECT (pg_total_relation_size('"+table+"') / count(*))::bigint FROM "+table)
		if err != nil {
			return nil, err
		}
		results = append(results, report.Values("size_"+table, report.Bytes, report.Floor{}, []float64{float64(size)}))
	}
	return results, nil
}
