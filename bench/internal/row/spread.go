package row

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/lectern-dev/lectern/bench/internal/load"
	"github.com/lectern-dev/lectern/bench/internal/report"
	"github.com/lectern-dev/lectern/bench/internal/stage"
)

// loadedService is a service under load, with the processor time of a request in each round. That time includes all
// servers of the cluster, and the Postgres and Redis of the keys.
type loadedService struct {
	name     string
	of       *entries
	requests *load.HTTP
	floor    report.Floor // of its time relative to that of the first
	cpu      []float64    // µs
	sum      share        // over all rounds
}

// workers compares the list of the latest ten entries with one, two and three workers, over the same rows.
func (b *Bench) workers(ctx context.Context) ([]report.Result, error) {
	var all []*loadedService
	for n := range mostWorkers {
		e, err := b.evenEntries(ctx, 1+n, 1)
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("%sworkers_%d", onCitus, 1+n)
		requests, err := e.requests(b.stage.Folder, name, "/projects/%[1]s/entries%.0[2]s")
		if err != nil {
			return nil, err
		}
		all = append(all, &loadedService{name: name, of: e, requests: requests, floor: report.AtMost(1.2)})
	}
	return b.compareLoads(ctx, "1 worker", all)
}

// evenEntries returns the service over the 100,000 entries of the 50 projects, on the given number of workers and
// without events. With more projects, each has fewer entries.
func (b *Bench) evenEntries(ctx context.Context, workers, times int) (*entries, error) {
	return b.spread(ctx, fmt.Sprintf("entries_%d_%d", workers, times), workers, shape{projects: projects * times, each: perProject / times})
}

// manyProjects measures a list of one entry among 50 projects. It compares it with the same list among ten and a
// thousand times as many projects, over as many rows in all. So each request reads and returns the same.
//
// There are three loads of the thousandfold:
//   - its first 50 projects: only the number of stored projects has grown;
//   - all of its projects: the projects in use have grown, too;
//   - the 50 projects, by as many keys as all projects have: only the number of keys has grown.
//
// The service stores the last use of a key after the request, and for many keys this takes long. So the loads with
// many keys come last, and the 50 projects are measured once more with them.
func (b *Bench) manyProjects(ctx context.Context) ([]report.Result, error) {
	base, err := b.evenEntries(ctx, usualWorkers, 1)
	if err != nil {
		return nil, err
	}
	ten, err := b.evenEntries(ctx, usualWorkers, 10)
	if err != nil {
		return nil, err
	}
	thousand, err := b.evenEntries(ctx, usualWorkers, 1000)
	if err != nil {
		return nil, err
	}
	further := make([]holder, thousand.projects)
	owners := make([]string, len(further))
	for i := range owners {
		owners[i] = projectID(1 + i%projects)
	}
	keys, err := b.stage.Keys(ctx, owners)
	if err != nil {
		return nil, err
	}
	for i := range further {
		further[i] = holder{owners[i], keys[i]}
	}
	few, err := b.prepare([]loadSpec{
		{"projects_1x", base, base.holders(projects), report.Floor{}},
		{"projects_10x", ten, ten.holders(ten.projects), report.AtMost(1.2)},
		{"projects_1000x_same", thousand, thousand.holders(projects), report.AtMost(1.2)},
	})
	if err != nil {
		return nil, err
	}
	many, err := b.prepare([]loadSpec{
		{"projects_1x_again", base, base.holders(projects), report.Floor{}},
		{"projects_1000x", thousand, thousand.holders(thousand.projects), report.AtMost(2)},
		{"keys_1000x", base, further, report.Floor{}},
	})
	if err != nil {
		return nil, err
	}
	first, err := b.compareLoads(ctx, "50 projects", few)
	if err != nil {
		return nil, err
	}
	then, err := b.compareLoads(ctx, "50 projects", many)
	return append(first, then...), err
}

// holder is a project with one of its keys.
type holder struct{ project, key string }

// holders returns the given number of projects, the first ones, with their keys.
func (e *entries) holders(n int) []holder {
	all := make([]holder, n)
	for i := range all {
		all[i].project = projectID(1 + i)
		all[i].key = e.keys[all[i].project]
	}
	return all
}

// loadSpec describes a load: a list of one entry for each of the holders.
type loadSpec struct {
	name  string
	of    *entries
	by    []holder
	floor report.Floor
}

// prepare makes the loads. Each goes through its holders in a shuffled order, which is the same in each run.
func (b *Bench) prepare(all []loadSpec) ([]*loadedService, error) {
	loaded := make([]*loadedService, len(all))
	for i, a := range all {
		requests := make([]load.Request, max(variety, len(a.by)))
		for n := range requests {
			h := a.by[n%len(a.by)]
			requests[n] = load.Request{Path: "/projects/" + h.project + "/entries?limit=1", Key: h.key}
		}
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(requests), func(i, j int) { requests[i], requests[j] = requests[j], requests[i] })
		web, err := load.NewHTTP(b.stage.Folder, onCitus+a.name, requests)
		if err != nil {
			return nil, err
		}
		loaded[i] = &loadedService{name: onCitus + a.name, of: a.of, requests: web, floor: a.floor}
	}
	return loaded, nil
}

// compareLoads compares the time and the processor time of a request under each load with those under the first. It
// sends each request once before it measures, because the service reads a new key only then.
func (b *Bench) compareLoads(ctx context.Context, first string, all []*loadedService) ([]report.Result, error) {
	var contenders []contender
	for _, w := range all {
		if err := b.warmUp(ctx, w); err != nil {
			return nil, err
		}
		contenders = append(contenders, func(ctx context.Context) (float64, error) { return b.runRound(ctx, w) })
	}
	took, err := rounds(ctx, b.Rounds, contenders...)
	if err != nil {
		return nil, err
	}
	var results []report.Result
	for i, w := range all {
		b.Note("%s, µs of a request: %v", w.name, w.sum)
		if i == 0 {
			results = append(results, report.Values(w.name, report.Milliseconds, report.Floor{}, took[0]),
				report.Values(w.name+"_cpu", report.Microseconds, report.Floor{}, w.cpu))
			continue
		}
		results = append(results, report.Ratios(w.name, report.Milliseconds, w.floor, took[i], first, took[0]),
			report.Ratios(w.name+"_cpu", report.Microseconds, report.Floor{}, w.cpu, first, all[0].cpu))
	}
	return results, nil
}

// warmUp sends each request of a load once.
func (b *Bench) warmUp(ctx context.Context, w *loadedService) error {
	var made int64
	var took time.Duration
	for made < int64(w.requests.Many()) {
		rate, err := w.requests.Run(ctx, w.of.URL, connections, time.Second)
		if err != nil {
			return err
		}
		made += rate.Count
		took += time.Duration(float64(rate.Count) * float64(rate.Time(connections)))
	}
	b.Note("%s, the first %d requests: %v each", w.name, made, (took / time.Duration(made)).Round(time.Microsecond))
	return nil
}

// runRound runs a load for a round, records the processor time of a request and returns its time in milliseconds.
func (b *Bench) runRound(ctx context.Context, w *loadedService) (float64, error) {
	before, err := b.used(ctx, w.of.Service)
	if err != nil {
		return 0, err
	}
	rate, err := w.requests.Run(ctx, w.of.URL, connections, b.Round)
	if err != nil {
		return 0, err
	}
	after, err := b.used(ctx, w.of.Service)
	spent := after.less(before)
	w.cpu = append(w.cpu, float64(spent.all().Microseconds())/float64(rate.Count))
	w.sum.requests += rate.Count
	w.sum.parts = w.sum.parts.plus(spent)
	return milliseconds(rate.Time(connections)), err
}

// used returns the processor time of the service and of all servers that it uses.
func (b *Bench) used(ctx context.Context, svc *stage.Service) (parts, error) {
	cluster, err := b.startCluster(ctx)
	if err != nil {
		return parts{}, err
	}
	own, err1 := svc.CPU()
	coordinator, workers, err2 := cluster.CPU()
	keys, err3 := b.stage.Usage()
	return parts{own, coordinator, workers, keys.Postgres, keys.Redis}, errors.Join(err1, err2, err3)
}
