package row

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/lectern-dev/lectern/bench/internal/must"
	"github.com/lectern-dev/lectern/bench/internal/report"
	"github.com/lectern-dev/lectern/bench/internal/stage"
)

// copier runs the command "lectern sync" to copy the project with the longest change feed. copier collects the
// processor time and the peak memory of the command.
type copier struct {
	*entries
	program   string
	warehouse stage.Database
	spent     time.Duration // processor time of all commands
	peaks     []float64     // memory of each command in MiB
}

func (v *version) copier(ctx context.Context) *copier {
	return &copier{entries: v.followed(ctx), program: v.Build(ctx, "cli/cmd/lectern"), warehouse: v.Stage.Database(ctx, "warehouse")}
}

// run runs lectern sync with the destination to, and returns the changes a second.
func (c *copier) run(ctx context.Context, to string, args ...string) float64 {
	cmd := exec.CommandContext(ctx, c.program, append([]string{"sync", "--quiet"}, args...)...)
	cmd.Env = append(os.Environ(), "LECTERN_URL="+c.URL, "LECTERN_PROJECT_ID="+projectID(1), "LECTERN_API_KEY="+c.keys[projectID(1)], "LECTERN_SYNC_TO="+to)
	begin := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		must.Do(fmt.Errorf("lectern sync: %w: %s", err, out))
	}
	took := time.Since(begin)
	c.spent += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		c.peaks = append(c.peaks, mebibytes(usage.Maxrss<<10))
	}
	return feedRows / took.Seconds()
}

func (c *copier) toPostgres(ctx context.Context) float64 {
	const schema = "copy"
	rate := c.run(ctx, c.warehouse.Owner, "--schema", schema)
	n := c.warehouse.Number(ctx, `SELECT (SELECT count(*) FROM `+schema+`.entries) + (SELECT count(*) FROM `+schema+`.events)`)
	if n != feedRows {
		must.Do(fmt.Errorf("a copy of %d changes has %d rows", feedRows, n))
	}
	c.warehouse.Run(ctx, `DROP SCHEMA `+schema+` CASCADE`)
	return rate
}

func (c *copier) toParquet(ctx context.Context) float64 {
	folder := must.Get(os.MkdirTemp(c.of.Folder, "sync"))
	rate := c.run(ctx, "file://"+folder+"/copy")
	must.Do(os.RemoveAll(folder))
	return rate
}

// load returns a contender that makes a copy by run in each round. The processor time is that of the command and of
// the service together.
func (c *copier) load(run func(context.Context) float64) *contender {
	return &contender{
		run: func(ctx context.Context) (float64, int64) { return run(ctx), feedRows },
		cpu: func() (time.Duration, error) {
			served, err := c.CPU()
			return served + c.spent, err
		},
	}
}

// sync measures copies of a project by lectern sync, into Postgres and into Parquet files, and the memory of the
// command. The reference is a client that reads the feed from beginning to end.
func (b *Bench) sync(ctx context.Context) []report.Result {
	var copiers []*copier
	var parquet, memory subjects
	postgres := b.each(func(v *version) *contender {
		c := v.copier(ctx)
		copiers = append(copiers, c)
		parquet = append(parquet, c.load(c.toParquet))
		return c.load(c.toPostgres)
	})
	reading := b.tree().reading(ctx)
	rounds(ctx, 3, slices.Concat(postgres, parquet, subjects{reading})...)
	for _, c := range copiers {
		memory = append(memory, &contender{Figures: report.Figures{Values: c.peaks}})
	}
	return []report.Result{
		postgres.result("sync_postgres", report.RowsRate, report.AtLeast(0.18), "reading the feed", reading),
		parquet.result("sync_parquet", report.RowsRate, report.AtLeast(0.2), "reading the feed", reading),
		memory.result("sync_memory", report.Mebibytes, report.AtMost(128), "", nil),
	}
}
