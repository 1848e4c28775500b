// Package row owns what is measured: each row of the table, the load behind it, and what it is held
// against. What a row and its references do, they do in turn, round after round, so that what else the
// machine does meets them alike.
package row

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lectern-dev/lectern/bench/internal/report"
	"github.com/lectern-dev/lectern/bench/internal/stage"
)

// Options say how much is measured.
type Options struct {
	// Rounds is how often each load runs. Required.
	Rounds int
	// Round is how long a load runs each time, in whole seconds. Required.
	Round time.Duration
	// Grow is how many times the rows grow_10x has. Required.
	Grow int
	// Peers has other servers of the same job measured too. They are installed for the run.
	Peers bool
	// Citus is the folder of a program citus that starts a cluster: the rows of one are measured, and those
	// alone. Empty: the others are.
	Citus string
	// Note is told what is being done. Required.
	Note func(format string, args ...any)
}

// Bench measures rows on a stage. What several rows need is made once, when the first asks for it.
type Bench struct {
	Options
	stage *stage.Stage

	small, large made[*entries]
	feeding      made[*entries]
	siblings     map[string]*made[*filled] // by service
	cluster      made[*stage.Citus]
	distributed  map[string]*made[*entries] // by database
}

// made is something that is made when it is first asked for, well or not.
type made[T any] struct {
	thing T
	err   error
	tried bool
}

func (m *made[T]) once(do func() (T, error)) (T, error) {
	if !m.tried {
		m.tried = true
		m.thing, m.err = do()
	}
	return m.thing, m.err
}

// New returns a Bench.
func New(s *stage.Stage, o Options) *Bench {
	return &Bench{Options: o, stage: s, siblings: map[string]*made[*filled]{}, distributed: map[string]*made[*entries]{}}
}

// Group is rows that are measured together.
type Group struct {
	// Names are the rows'.
	Names []string
	// Measure measures all of them.
	Measure func(context.Context) ([]report.Result, error)
}

// Groups lists everything that can be measured. Those that change the data of others come last.
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

// Run measures the rows of those names, all when there are none, and gives each row's results to done.
// A row that fails does not keep the others from being measured.
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

// contender is one of those that are measured in turn.
type contender func(context.Context) (float64, error)

// rounds runs the contenders in turn, n times, in the opposite order every other time, and returns what
// each measured.
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
