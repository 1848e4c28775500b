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

// Request is one of the GET requests that wrk sends in turn.
type Request struct {
	Path string // with its query
	Key  string // the API key
}

// Rate is the result of one round of load: requests a second, the number of requests, and the median time of an
// answer.
type Rate struct {
	PerSecond float64
	Count     int64 // of requests
	P50       time.Duration
}

// Time returns the average time of an answer, if each of the connections always waited for one.
func (r Rate) Time(connections int) time.Duration {
	return time.Duration(float64(connections) / r.PerSecond * float64(time.Second))
}

//go:embed requests.lua
var requestsLua []byte

// HTTP is a benchmark load: wrk sends a list of requests to a server, with one thread.
type HTTP struct {
	// Header has further headers of every request, as lines such as "Origin: https://app.example.com".
	Header []string

	script, requests string
	next             int64 // index of the request with which the next round begins
}

// NewHTTP writes the script of wrk and the list of requests to the files name.lua and name.requests in folder.
func NewHTTP(folder, name string, requests []Request) (*HTTP, error) {
	h := &HTTP{script: filepath.Join(folder, name+".lua"), requests: filepath.Join(folder, name+".requests")}
	var b strings.Builder
	for _, r := range requests {
		fmt.Fprintf(&b, "%s\t%s\n", r.Path, r.Key)
	}
	return h, errors.Join(os.WriteFile(h.script, requestsLua, 0o600), os.WriteFile(h.requests, []byte(b.String()), 0o600))
}

// Run lets wrk send the requests to the server at base over the given number of connections. d is how long, in whole
// seconds. Run returns an error if an answer has another status than 2xx, or a request has no answer.
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
