// Package load puts load on servers with the usual tools: wrk for HTTP and pgbench for Postgres.
package load

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Request is one request that wrk sends repeatedly, among others.
type Request struct {
	Path string // with its query
	Key  string // the API key
	Body string // JSON in one line, to POST; empty: a GET
}

// Rate is the result of a round of load.
type Rate struct {
	PerSecond float64
	Count     int64 // of requests
	P50       time.Duration
}

// Time is how long one of connections waited for an answer, on average.
func (r Rate) Time(connections int) time.Duration {
	return time.Duration(float64(connections) / r.PerSecond * float64(time.Second))
}

//go:embed requests.lua
var requestsLua []byte

// HTTP is a load of requests on a server, by wrk with one thread.
type HTTP struct {
	// Header has lines that every request has in addition.
	Header []string

	script, requests string
	next             int64 // request: a round goes on where the one before has ended
}

// NewHTTP prepares a load, with its files in folder under that name.
func NewHTTP(folder, name string, requests []Request) (*HTTP, error) {
	h := &HTTP{script: filepath.Join(folder, name+".lua"), requests: filepath.Join(folder, name+".requests")}
	var b strings.Builder
	for _, r := range requests {
		fmt.Fprintf(&b, "%s\t%s\t%s\n", r.Path, r.Key, r.Body)
	}
	return h, errors.Join(os.WriteFile(h.script, requestsLua, 0o600), os.WriteFile(h.requests, []byte(b.String()), 0o600))
}

// Run sends requests to the server at base over that many connections for d, in whole seconds. An answer
// other than 2xx, or none, is an error.
func (h *HTTP) Run(ctx context.Context, base string, connections int, d time.Duration) (Rate, error) {
	ctx, cancel := context.WithTimeout(ctx, d+time.Minute)
	defer cancel()
	args := []string{"-t1", "--timeout", "60s", "-c" + strconv.Itoa(connections), "-d" + strconv.Itoa(int(d.Seconds())) + "s", "-s", h.script}
	for _, line := range h.Header {
		args = append(args, "-H", line)
	}
	cmd := exec.CommandContext(ctx, "wrk", append(args, base, "--", h.requests, strconv.FormatInt(h.next, 10))...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return Rate{}, fmt.Errorf("wrk: %w\n%s", err, out)
	}
	var count, micros, status, broken, p50 int64
	_, line, _ := strings.Cut(string(out), "\nsummary ")
	if _, err := fmt.Sscan(line, &count, &micros, &status, &broken, &p50); err != nil {
		return Rate{}, fmt.Errorf("wrk said no summary: %w\n%s", err, out)
	}
	if status > 0 || broken > 0 || count == 0 {
		return Rate{}, fmt.Errorf("wrk: of %d requests, %d were not answered 2xx and %d had no answer", count, status, broken)
	}
	h.next += count
	return Rate{
		PerSecond: float64(count) / (float64(micros) / 1e6),
		Count:     count,
		P50:       time.Duration(p50) * time.Microsecond,
	}, nil
}
