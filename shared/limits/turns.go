package limits

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/metric"
	"golang.org/x/sync/semaphore"

	"github.com/lectern-dev/lectern/shared/config"
)

// ReadOptions bound how many statements of large lists one process runs at once.
type ReadOptions struct {
	// How many statements of large lists, and of lists whose filter has no index, query the database at once. The others
	// wait in turns. One project has at most half of them. Keep it below DATABASE_MAX_CONNS. 0: the CPUs that the process
	// may use.
	LargeReads int `env:"LARGE_READS" envDefault:"0"`
}

// mostReads is the greatest value of LARGE_READS that [ReadOptions.Validate] allows.
const mostReads = 100_000

// Validate reports a LARGE_READS below 0 or above 100,000.
func (o ReadOptions) Validate() error {
	if o.LargeReads < 0 || o.LargeReads > mostReads {
		return config.Invalid("LARGE_READS", o.LargeReads, "an integer from 0 to 100000")
	}
	return nil
}

// Turns bounds how many holders work at once. A holder first waits until it is below its share, then until all are below
// the bound. A holder with much work therefore competes with other holders for only as many turns as its share.
type Turns struct {
	holder  func(context.Context) Holder
	all     *semaphore.Weighted
	share   int64
	waiting atomic.Int64

	mu      sync.Mutex
	holders map[Holder]*turns
}

// turns are those of one holder. count is how many have a turn or wait for one.
type turns struct {
	count int // under Turns.mu
	own   *semaphore.Weighted
}

// NewTurns returns Turns for size at once, of which one holder may have share. holder returns the holder of a context.
func NewTurns(size, share int, holder func(context.Context) Holder) *Turns {
	return &Turns{holder: holder, all: semaphore.NewWeighted(int64(size)), share: int64(share), holders: map[Holder]*turns{}}
}

// Acquire waits for a turn of the holder of ctx. The caller calls release after its work. If ctx ends first, Acquire returns the
// error of ctx. A turn that is free is taken even then.
func (t *Turns) Acquire(ctx context.Context) (release func(), err error) {
	holder := t.holder(ctx)
	own := t.join(holder)
	t.waiting.Add(1)
	defer t.waiting.Add(-1)
	if err := acquire(ctx, own); err != nil {
		t.part(holder)
		return nil, err
	}
	if err := acquire(ctx, t.all); err != nil {
		own.Release(1)
		t.part(holder)
		return nil, err
	}
	return func() {
		t.all.Release(1)
		own.Release(1)
		t.part(holder)
	}, nil
}

func acquire(ctx context.Context, s *semaphore.Weighted) error {
	if s.TryAcquire(1) {
		return nil
	}
	return s.Acquire(ctx, 1)
}

func (t *Turns) join(h Holder) *semaphore.Weighted {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.holders[h]
	if of == nil {
		of = &turns{own: semaphore.NewWeighted(t.share)}
		t.holders[h] = of
	}
	of.count++
	return of.own
}

// part notes that a turn of the holder has ended or was given up. After the last, part removes the holder.
func (t *Turns) part(h Holder) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if of := t.holders[h]; of.count > 1 {
		of.count--
	} else {
		delete(t.holders, h)
	}
}

// NewReads returns Turns of the statements of large lists. o.LargeReads run at once, or as many as the process has CPUs if
// o.LargeReads is 0. One project may run half of these statements, and at least 1. project returns the id of the project
// whose records a statement reads.
func NewReads(o ReadOptions, project func(context.Context) string) *Turns {
	size := o.LargeReads
	if size <= 0 {
		size = runtime.GOMAXPROCS(0)
	}
	return NewTurns(size, max(1, size/2), func(ctx context.Context) Holder { return Project(project(ctx)) })
}

// Measure registers one metric:
//
//	lectern.large_reads.waiting   statements that wait for their turn
func (t *Turns) Measure(provider metric.MeterProvider) error {
	_, err := provider.Meter("github.com/lectern-dev/lectern/shared/limits").Int64ObservableGauge("lectern.large_reads.waiting",
		metric.WithDescription("Statements of large lists that wait for their turn to query the database."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(t.waiting.Load())
			return nil
		}))
	return err
}
