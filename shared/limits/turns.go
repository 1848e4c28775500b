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

// Reads bounds how many statements of large lists run at once in a process. A statement
// first waits until its project is below its share, then until the process is below its bound. A project with many
// statements therefore competes with other projects for only as many places as its share.
type Reads struct {
	project func(context.Context) string
	all     *semaphore.Weighted
	share   int64
	waiting atomic.Int64

	mu       sync.Mutex
	projects map[string]*readers
}

// readers bounds the large reads of one project. count is how many large reads run or wait. turns lets as many run as
// the project's share.
type readers struct {
	count int // under Reads.mu
	turns *semaphore.Weighted
}

// NewReads returns a Reads that lets o.LargeReads statements run at once. If o.LargeReads is 0, the Reads lets as many run
// as the process has CPUs. One project may run half of these statements, and at least 1. Acquire calls project for the id
// of the project whose records a statement reads.
func NewReads(o ReadOptions, project func(context.Context) string) *Reads {
	size := o.LargeReads
	if size <= 0 {
		size = runtime.GOMAXPROCS(0)
	}
	return &Reads{project: project, all: semaphore.NewWeighted(int64(size)), share: int64(max(1, size/2)), projects: map[string]*readers{}}
}

// Acquire waits until one more statement may run, both of the project and of the process. The
// caller calls release after the statement. If ctx ends first, Acquire returns the error of ctx.
func (r *Reads) Acquire(ctx context.Context) (release func(), err error) {
	id := r.project(ctx)
	p := r.join(id)
	r.waiting.Add(1)
	defer r.waiting.Add(-1)
	if err := p.turns.Acquire(ctx, 1); err != nil {
		r.part(id, p)
		return nil, err
	}
	if err := r.all.Acquire(ctx, 1); err != nil {
		p.turns.Release(1)
		r.part(id, p)
		return nil, err
	}
	return func() {
		r.all.Release(1)
		p.turns.Release(1)
		r.part(id, p)
	}, nil
}

func (r *Reads) join(id string) *readers {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.projects[id]
	if p == nil {
		p = &readers{turns: semaphore.NewWeighted(r.share)}
		r.projects[id] = p
	}
	p.count++
	return p
}

// part notes that a read of the project has ended or given up. After the project's last read, part removes the project.
func (r *Reads) part(id string, p *readers) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.count--; p.count == 0 {
		delete(r.projects, id)
	}
}

// Measure registers one metric:
//
//	lectern.large_reads.waiting   statements that wait for their turn
func (r *Reads) Measure(provider metric.MeterProvider) error {
	_, err := provider.Meter("github.com/lectern-dev/lectern/shared/limits").Int64ObservableGauge("lectern.large_reads.waiting",
		metric.WithDescription("Statements of large lists that wait for their turn to query the database."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(r.waiting.Load())
			return nil
		}))
	return err
}
