package row

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	"github.com/lectern-dev/lectern/bench/internal/report"
	"github.com/lectern-dev/lectern/bench/internal/stage"
)

// coldStart measures how long a service takes from the start of its process to readiness.
func (b *Bench) coldStart(ctx context.Context) ([]report.Result, error) {
	d := stage.Definition{Name: "entries"}
	if _, err := b.stage.Migrated(ctx, d); err != nil {
		return nil, err
	}
	v, err := rounds(ctx, max(b.Rounds, 7), func(ctx context.Context) (float64, error) {
		svc, err := b.stage.Start(ctx, d)
		if err != nil {
			return 0, err
		}
		return milliseconds(svc.Started), svc.Stop()
	})
	if err != nil {
		return nil, err
	}
	return []report.Result{report.Values("cold_start", report.Milliseconds, report.AtMost(300), v[0])}, nil
}

// idle is how long a service is idle before its memory is measured.
const idle = 5 * time.Second

// idleMemory measures the resident memory of a service that received no request.
func (b *Bench) idleMemory(ctx context.Context) ([]report.Result, error) {
	d := stage.Definition{Name: "entries"}
	if _, err := b.stage.Migrated(ctx, d); err != nil {
		return nil, err
	}
	v, err := rounds(ctx, 3, func(ctx context.Context) (float64, error) {
		svc, err := b.stage.Start(ctx, d)
		if err != nil {
			return 0, err
		}
		select {
		case <-time.After(idle):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		now, _, err := svc.Memory()
		if err != nil {
			return 0, err
		}
		return mebibytes(now), svc.Stop()
	})
	if err != nil {
		return nil, err
	}
	return []report.Result{report.Values("idle_memory", report.Mebibytes, report.AtMost(40), v[0])}, nil
}

// keyCheck runs the Go benchmark of a warm verification.
func (b *Bench) keyCheck(ctx context.Context) ([]report.Result, error) {
	took, allocations, err := b.goBenchmark(ctx, "./shared/auth", "BenchmarkVerifyWarm")
	if err != nil {
		return nil, err
	}
	return []report.Result{
		report.Values("key_check", report.Nanoseconds, report.AtMost(1000), took),
		report.Values("key_check_allocs", report.Allocations, report.AtMost(0), allocations),
	}, nil
}

// goBenchmark runs a Go benchmark once a round. It returns nanoseconds and allocations of an operation.
func (b *Bench) goBenchmark(ctx context.Context, pkg, name string) (took, allocations []float64, err error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^"+name+"$", "-benchmem",
		"-count", strconv.Itoa(b.Rounds), pkg)
	cmd.Dir = b.stage.Root
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, nil, fmt.Errorf("go test -bench: %w\n%s", err, out)
	}
	line := regexp.MustCompile(`(?m)^` + name + `(?:-\d+)?\s+\d+\s+([0-9.]+) ns/op\s+\d+ B/op\s+(\d+) allocs/op`)
	for _, m := range line.FindAllSubmatch(out, -1) {
		ns, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil {
			return nil, nil, err
		}
		n, err := strconv.ParseFloat(string(m[2]), 64)
		if err != nil {
			return nil, nil, err
		}
		took, allocations = append(took, ns), append(allocations, n)
	}
	if len(took) == 0 {
		return nil, nil, fmt.Errorf("go test -bench %s said no figure:\n%s", name, out)
	}
	return took, allocations, nil
}
