// Package row owns the measurements: each row of the table, its load, and its references. A row and its references
// run in turn, round after round, so that other work of the machine affects them alike.
package row

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lectern-dev/lectern/bench/internal/report"
	"github.com/lectern-dev/lectern/bench/internal/stage"
)

// Options configure the measurements.
type Options struct {
	// Rounds is how often each load runs. Required.
	Rounds int
	// Round is how long a load runs each time, in whole seconds. Required.
	Round time.Duration
	// Grow is the factor by which the rows of grow_10x grow. Required.
	Grow int
	// Peers measures other servers of the same kind too. They are installed for the run.
	Peers bool
	// Citus is the folder of a program citus that starts a cluster. If it is set, only the rows of a cluster are
	// measured; otherwise the others are.
	Citus string
	// Note receives messages on the progress. Required.
	Note func(format string, args ...any)
}

// Bench measures rows on a stage. Data that several rows need is made once, when the first row needs it.
type Bench struct {
	Options
	stage *stage.Stage

	small, large lazy[*entries]
	feeding      lazy[*entries]
	siblings     map[string]*lazy[*filled] // by service
	cluster      lazy[*stage.Citus]
	distributed  map[string]*lazy[*entries] // by database
}

// lazy holds the result, or the error, of making something when it is first needed.
type lazy[T any] struct {
	thing T
	err   error
	tried bool
}

func (m *lazy[T]) once(do func() (T, error)) (T, error) {
	if !m.tried {
		m.tried = true
		m.thing, m.err = do()
	}
	return m.thing, m.err
}

// New returns a Bench.
func New(s *stage.Stage, o Options) *Bench {
	return &Bench{Options: o, stage: s, siblings: map[string]*lazy[*filled]{}, distributed: map[string]*lazy[*entries]{}}
}

// Group is a set of rows that are measured together.
type Group struct {
	// Names are the names of the rows.
	Names []string
	// Measure measures all of them.
	Measure func(context.Context) ([]report.Result, error)
}

// Groups lists all measurements. Those that change the data of others come last.
func (b *Bench) Groups() []Group {
	if b.Citus != "" {
		return b.citusGroups()
	}
	groups := []Group{
		{[]string{"key_check", "key_check_allocs"}, b.keyCheck},
		{[]string{"cold_start"}, b.coldStart},
		{[]string{"idle_memory"}, b.idleMemory},
	}
	for _, r := range reads() {
		groups = append(groups, Group{[]string{r.name}, func(ctx context.Context) ([]report.Result, error) { return b.read(ctx, r) }})
	}
	if b.Peers {
		groups = append(groups, Group{[]string{"peer_postgraphile"}, b.postGraphile})
	}
	for _, s := range siblings() {
		groups = append(groups, Group{[]string{s.name}, func(ctx context.Context) ([]report.Result, error) { return b.list(ctx, s) }})
	}
	return append(groups,
		Group{[]string{"region"}, b.region},
		Group{[]string{"region_client"}, b.regionClient},
		Group{[]string{"edge_rps", "edge_added_p50"}, b.edge},
		Group{[]string{"templating"}, b.templating},
		Group{[]string{"scrubbing"}, b.scrubbing},
		Group{[]string{"proxy_rps", "proxy_added_p50"}, b.proxyRate},
		Group{[]string{"proxy_bulk"}, b.proxyBulk},
		Group{[]string{"proxy_memory"}, b.proxyMemory},
		Group{[]string{"list_contact"}, b.listContact},
		Group{[]string{"deep_page"}, b.deepPage},
		Group{[]string{"grow_10x"}, b.grow},
		Group{[]string{"export"}, b.export},
		Group{[]string{"export_memory"}, b.exportMemory},
		Group{[]string{"export_memory_1m"}, b.exportMemoryMillion},
		Group{[]string{"export_first_byte"}, b.firstByte},
		Group{[]string{"feed", "feed_memory"}, b.feed},
		Group{[]string{"feed_deep"}, b.feedDeep},
		Group{[]string{"feed_idle"}, b.feedIdle},
		Group{[]string{"feed_latency"}, b.feedLatency},
		Group{[]string{"sync_postgres", "sync_parquet", "sync_memory"}, b.sync},
		Group{[]string{"ingest", "ingest_repeated"}, b.ingest},
		Group{[]string{"ingest_eight"}, b.ingestEight},
		Group{[]string{"costs"}, b.costs},
		Group{[]string{"tenants"}, b.tenants},
	)
}

// Names lists all rows.
func (b *Bench) Names() []string {
	var names []string
	for _, g := range b.Groups() {
		names = append(names, g.Names...)
	}
	return names
}

// Run measures the rows of those names, all if there are none, and passes each row's results to done. If a row fails,
// Run continues with the others.
func (b *Bench) Run(ctx context.Context, names []string, done func([]report.Result)) error {
	known := b.Names()
	for _, name := range names {
		if !slices.Contains(known, name) {
			return fmt.Errorf("there is no row %q; known: %v", name, known)
		}
	}
	var failed []string
	for _, g := range b.Groups() {
		wanted := len(names) == 0 || slices.ContainsFunc(g.Names, func(n string) bool { return slices.Contains(names, n) })
		if !wanted {
			continue
		}
		b.Note("measuring %v", g.Names)
		results, err := g.Measure(ctx)
		if err != nil {
			b.Note("%v failed: %v", g.Names, err)
			failed = append(failed, g.Names...)
			if ctx.Err() != nil {
				break
			}
			continue
		}
		done(results)
	}
	if len(failed) > 0 {
		return fmt.Errorf("not measured: %v", failed)
	}
	return nil
}

// contender is one of the loads that are measured in turn.
type contender func(context.Context) (float64, error)

// rounds runs the contenders in turn, n times, in reverse order every other time. It returns the values of each.
func rounds(ctx context.Context, n int, contenders ...contender) ([][]float64, error) {
	values := make([][]float64, len(contenders))
	for round := range n {
		for i := range contenders {
			if round%2 == 1 {
				i = len(contenders) - 1 - i
			}
			v, err := contenders[i](ctx)
			if err != nil {
				return nil, err
			}
			values[i] = append(values[i], v)
		}
	}
	return values, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }
