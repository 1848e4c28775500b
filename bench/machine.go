package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/lectern-dev/lectern/shared/testing/pglocal"
)

// describe returns a description of the machine.
func describe(ctx context.Context) string {
	versions := []string{runtime.Version()}
	if folder, err := pglocal.Binaries(); err == nil {
		versions = append(versions, firstLine(ctx, folder+"/postgres", "--version"))
	}
	versions = append(versions, firstLine(ctx, "redis-server", "--version"), firstLine(ctx, "wrk", "-v"))
	return fmt.Sprintf("%d × %s, %s memory, %s %s; %s; load average %s at the start",
		runtime.NumCPU(), field("/proc/cpuinfo", "model name"), field("/proc/meminfo", "MemTotal"),
		runtime.GOOS, firstLine(ctx, "uname", "-r"), strings.Join(versions, "; "), loadAverage())
}

// field returns the value of the first line "name: value" of a file, or "?" if there is none.
func field(file, name string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return "?"
	}
	for line := range bytes.Lines(b) {
		if key, value, ok := strings.Cut(string(line), ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "?"
}

// firstLine returns the first line of a program's output. Some programs print their version and exit with an error.
func firstLine(ctx context.Context, name string, args ...string) string {
	out, _ := exec.CommandContext(ctx, name, args...).Output()
	line, _, _ := strings.Cut(string(out), "\n")
	if line == "" {
		return name + " ?"
	}
	return strings.TrimSpace(line)
}

func loadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	return strings.Join(strings.Fields(string(b))[:3], " ")
}
