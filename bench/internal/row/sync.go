package row

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/lectern-dev/lectern/bench/internal/report"
)

// sync measures copies of a project by lectern sync, into Postgres and into Parquet files, and the memory of the
// command. It compares them with reading the feed from beginning to end.
func (b *Bench) sync(ctx context.Context) ([]report.Result, error) {
	e, err := b.followed(ctx)
	if err != nil {
		return nil, err
	}
	program, err := b.stage.Build(ctx, "cli/cmd/lectern")
	if err != nil {
		return nil, err
	}
	warehouse, err := b.stage.Database(ctx, "warehouse")
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp(b.stage.Folder, "sync")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)

	const rows = feedEntries * (1 + feedEvents)
	project := projectID(1)
	var peaks []float64
	// copied copies the project and returns the changes a second.
	copied := func(ctx context.Context, to string, args ...string) (float64, error) {
		cmd := exec.CommandContext(ctx, program, append([]string{"sync", "--quiet"}, args...)...)
		cmd.Env = append(os.Environ(), "LECTERN_URL="+e.URL, "LECTERN_PROJECT_ID="+project, "LECTERN_API_KEY="+e.keys[project], "LECTERN_SYNC_TO="+to)
		begin := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("lectern sync: %w: %s", err, out)
		}
		took := time.Since(begin)
		if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			peaks = append(peaks, mebibytes(usage.Maxrss<<10))
		}
		return rows / took.Seconds(), nil
	}
	round := 0
	v, err := rounds(ctx, 3,
		func(ctx context.Context) (float64, error) {
			round++
			schema := "copy_" + strconv.Itoa(round)
			rate, err := copied(ctx, warehouse.Owner, "--schema", schema)
			if err != nil {
				return 0, err
			}
			n, err := warehouse.Number(ctx, `SELECT (SELECT count(*) FROM `+schema+`.entries) + (SELECT count(*) FROM `+schema+`.events)`)
			if err == nil && n != rows {
				err = fmt.Errorf("a copy of %d changes has %d rows", rows, n)
			}
			if err != nil {
				return 0, err
			}
			return rate, warehouse.Run(ctx, `DROP SCHEMA `+schema+` CASCADE`)
		},
		func(ctx context.Context) (float64, error) {
			place := filepath.Join(folder, strconv.Itoa(round))
			rate, err := copied(ctx, "file://"+place)
			if err != nil {
				return 0, err
			}
			return rate, os.RemoveAll(place)
		},
		func(ctx context.Context) (float64, error) {
			a, err := getLines(ctx, changesOf(e.Service, project)+"?limit=1000000", e.keys[project])
			if err == nil && a.rows != rows {
				err = fmt.Errorf("a feed of %d changes has %d", rows, a.rows)
			}
			return float64(a.rows) / a.whole.Seconds(), err
		})
	if err != nil {
		return nil, err
	}
	return []report.Result{
		report.Ratios("sync_postgres", report.RowsRate, report.AtLeast(0.1), v[0], "reading the feed", v[2]),
		report.Ratios("sync_parquet", report.RowsRate, report.AtLeast(0.2), v[1], "reading the feed", v[2]),
		report.Values("sync_memory", report.Mebibytes, report.AtMost(128), peaks),
	}, nil
}
