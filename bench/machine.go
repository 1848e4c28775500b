package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// describe returns one line about the machine and its software: processors, kernel, Go, Postgres and Redis. Unknown
// parts are empty.
func describe(ctx context.Context) string {
	cpu, _ := os.ReadFile("/proc/cpuinfo")
	_, model, _ := strings.Cut(string(cpu), "model name\t: ")
	kernel, _ := exec.CommandContext(ctx, "uname", "-sr").Output()
	postgres, _ := exec.CommandContext(ctx, "psql", "--version").Output()
	redis, _ := exec.CommandContext(ctx, "redis-server", "--version").Output()
	return fmt.Sprintf("%d × %s, %s; %s; %s; %s", runtime.NumCPU(), firstLine([]byte(model)), firstLine(kernel), runtime.Version(), firstLine(postgres), firstLine(redis))
}

// firstLine returns the first line of out, a program's output, without the line break.
func firstLine(out []byte) string {
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}

func loadAverage() string {
	b, _ := os.ReadFile("/proc/loadavg")
	average, _, _ := strings.Cut(string(b), " ")
	return average
}
