// Package row measures the rows of the benchmarks' table. A row has a load, and references to compare the service
// with. The versions of the service and the references run in turn, so that other work of the machine slows all alike.
package row

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lectern-dev/lectern/bench/internal/load"
	"github.com/lectern-dev/lectern/bench/internal/must"
	"github.com/lectern-dev/lectern/bench/internal/report"
	"github.com/lectern-dev/lectern/bench/internal/stage"
)

// Options configure a [Bench]: how often and how long loads run, and what is measured in addition.
type Options struct {
	// Rounds is how often a load runs, unless its row sets another number. The table shows the median of the rounds.
	// Required.
	Rounds int
	// Round is how long a load runs each time, in whole seconds, unless its row sets another end. Required.
	Round time.Duration
	// Grow is the factor by which the rows of grow_10x grow. Required.
	Grow int
	// Note prints a message about the progress, with a format and values as in fmt.Printf. Required.
	Note func(format string, args ...any)
}

// Bench measures the rows of the working tree, and of another version of the source if there is one.
type Bench struct {
	Options
	versions []*version // the working tree first, then the other version if there is one
	ends     []func() error
}

// version is one version of the source with its servers. The fields small, large and feeding hold data sets that
// several rows share: the first row that needs a data set makes the data set.
type version struct {
	*stage.Stage
	*Bench
	small, large, feeding lazy[*entries]
}

// lazy holds a value that once makes at its first call. lazy is not safe for concurrent use.
type lazy[T any] struct {
	thing T
	made  bool
}

func (m *lazy[T]) once(do func() T) T {
	if !m.made {
		m.thing = do()
		m.made = true
	}
	return m.thing
}

// New returns a Bench that measures tree, the stage of the working tree. If old is not nil, the Bench also measures
// old, the stage of another version.
func New(tree, old *stage.Stage, o Options) *Bench {
	b := &Bench{Options: o}
	b.versions = []*version{{Stage: tree, Bench: b}}
	if old != nil {
		b.versions = append(b.versions, &version{Stage: old, Bench: b})
	}
	return b
}

// tree returns the version of the working tree, which references are compared with.
func (b *Bench) tree() *version { return b.versions[0] }

// atEnd registers stop, which end calls after the row is measured.
func (b *Bench) atEnd(stop func() error) { b.ends = append(b.ends, stop) }

// end calls the functions that atEnd registered for the current row, in their order, and joins their errors.
func (b *Bench) end() (err error) {
	for _, stop := range b.ends {
		err = errors.Join(err, stop())
	}
	b.ends = nil
	return err
}

// group is a set of rows that are measured together. measure panics at its first error by package must.
type group struct {
	names   []string
	measure func(context.Context) []report.Result
}

// groups returns all measurements in the order in which they run. The ingest measurements are last, because they add
// data that other measurements read.
func (b *Bench) groups() []group {
	var groups []group
	for _, r := range reads() {
		groups = append(groups, group{[]string{r.name}, func(ctx context.Context) []report.Result { return b.read(ctx, r) }})
	}
	return append(groups,
		group{[]string{"edge"}, b.edge},
		group{[]string{"proxy_rps", "proxy_added_p50"}, b.proxyRate},
		group{[]string{"proxy_bulk"}, b.proxyBulk},
		group{[]string{"deep_page"}, b.deepPage},
		group{[]string{"grow_10x"}, b.grow},
		group{[]string{"insights"}, b.insights},
		group{[]string{"export"}, b.export},
		group{[]string{"export_first_byte"}, b.firstByte},
		group{[]string{"export_memory_1m"}, b.exportMemory},
		group{[]string{"feed"}, b.feed},
		group{[]string{"feed_memory"}, b.feedMemory},
		group{[]string{"feed_deep"}, b.feedDeep},
		group{[]string{"feed_idle"}, b.feedIdle},
		group{[]string{"feed_latency"}, b.feedLatency},
		group{[]string{"sync_postgres", "sync_parquet", "sync_memory"}, b.sync},
		group{[]string{"tenants"}, b.tenants},
		group{[]string{"ingest", "ingest_repeated"}, b.ingest},
		group{[]string{"ingest_eight"}, b.ingestEight},
	)
}

// Run measures the groups that have rows with the given names, or all groups if names is empty. done receives the
// results of each group that was measured. If a group fails, Run continues with the next group and returns an error at
// the end. An unknown name is an error.
func (b *Bench) Run(ctx context.Context, names []string, done func([]report.Result)) error {
	var known, failed []string
	for _, g := range b.groups() {
		known = append(known, g.names...)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return fmt.Errorf("there is no row %q; known: %v", name, known)
		}
	}
	for _, g := range b.groups() {
		wanted := len(names) == 0 || slices.ContainsFunc(g.names, func(n string) bool { return slices.Contains(names, n) })
		if !wanted || ctx.Err() != nil {
			continue
		}
		b.Note("measuring %v", g.names)
		results, err := b.measure(ctx, g)
		if err != nil {
			b.Note("%v failed: %v", g.names, err)
			failed = append(failed, g.names...)
			continue
		}
		done(results)
	}
	if len(failed) > 0 {
		return fmt.Errorf("not measured: %v", failed)
	}
	return ctx.Err()
}

func (b *Bench) measure(ctx context.Context, g group) (results []report.Result, err error) {
	defer func() { err = errors.Join(err, b.end()) }()
	defer must.Recover(&err)
	return g.measure(ctx), nil
}

// contender is one of the loads that take turns in each round: a version of the service, or a reference.
type contender struct {
	// run returns the figure of a round, and the number of operations in it.
	run func(context.Context) (figure float64, operations int64)
	// cpu returns the processor time of the server so far; nil: the time is not measured.
	cpu func() (time.Duration, error)

	report.Figures
}

func (c *contender) round(ctx context.Context) {
	if c.cpu == nil {
		figure, _ := c.run(ctx)
		c.Values = append(c.Values, figure)
		return
	}
	before := must.Get(c.cpu())
	figure, operations := c.run(ctx)
	after := must.Get(c.cpu())
	c.Values = append(c.Values, figure)
	c.CPU = append(c.CPU, float64(after-before)/float64(max(operations, 1)))
}

// figure returns a contender that runs run in each round. The contender does not measure processor time.
func figure(run func(context.Context) float64) *contender {
	return &contender{run: func(ctx context.Context) (float64, int64) { return run(ctx), 1 }}
}

// subjects are the contenders of a row, one for each version, in the order of Bench.versions.
type subjects []*contender

// each calls of for each version and returns the contenders in the order of Bench.versions.
func (b *Bench) each(of func(*version) *contender) (all subjects) {
	for _, v := range b.versions {
		all = append(all, of(v))
	}
	return all
}

// result returns a row's result with the figures of s. against is the name of the reference limit. limit is nil if the
// row has no reference.
func (s subjects) result(name, unit string, floor report.Floor, against string, limit *contender) report.Result {
	r := report.Result{Name: name, Unit: unit, Floor: floor, New: s[0].Figures, Against: against}
	if len(s) > 1 {
		r.Old = &s[1].Figures
	}
	if limit != nil {
		r.Limit = &limit.Figures
	}
	return r
}

// rounds runs each of the contenders n times. The contenders take turns, and their order is reversed in every second
// round.
func rounds(ctx context.Context, n int, all ...*contender) {
	for round := range n {
		for i := range all {
			if round%2 == 1 {
				i = len(all) - 1 - i
			}
			must.Do(ctx.Err())
			all[i].round(ctx)
		}
	}
}

// connections is the number of HTTP or Postgres connections that most loads use at once.
const connections = 16

// driven returns a contender that sends requests to svc over 16 connections. The figure is requests a second. driven
// first sends the requests for a second, to warm svc up.
func (b *Bench) driven(ctx context.Context, svc *stage.Service, requests *load.HTTP) *contender {
	must.Get(requests.Run(ctx, svc.URL, connections, time.Second))
	return &contender{cpu: svc.CPU, run: func(ctx context.Context) (float64, int64) {
		rate := must.Get(requests.Run(ctx, svc.URL, connections, b.Round))
		return rate.PerSecond, rate.Count
	}}
}

// alone returns a contender that sends requests to svc one after the other. The figure is the median time of an answer
// in milliseconds.
func (b *Bench) alone(svc *stage.Service, requests *load.HTTP) *contender {
	return &contender{cpu: svc.CPU, run: func(ctx context.Context) (float64, int64) {
		rate := must.Get(requests.Run(ctx, svc.URL, 1, b.Round))
		return milliseconds(rate.P50), rate.Count
	}}
}

// added returns a contender with the values of by, less the values of beyond in the same rounds. The processor time is
// that of by.
func added(by, beyond *contender) *contender {
	c := &contender{Figures: report.Figures{CPU: by.CPU}}
	for i, v := range by.Values {
		c.Values = append(c.Values, v-beyond.Values[i])
	}
	return c
}

// memory measures the peak memory of a fresh process of each version, in three rounds. do sends the requests to the
// process. The peak must be at most 64 MiB.
func (b *Bench) memory(ctx context.Context, name string, d stage.Definition, do func(*version, *stage.Service)) []report.Result {
	all := b.each(func(v *version) *contender {
		return figure(func(ctx context.Context) float64 {
			svc := v.Start(ctx, d)
			do(v, svc)
			peak := must.Get(svc.PeakMemory())
			must.Do(svc.Stop())
			return mebibytes(peak)
		})
	})
	rounds(ctx, 3, all...)
	return []report.Result{all.result(name, report.Mebibytes, report.AtMost(64), "", nil)}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }
