package row

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"regexp"
	"strconv"

	"github.com/lectern-dev/lectern/bench/internal/load"
	"github.com/lectern-dev/lectern/bench/internal/report"
	"github.com/lectern-dev/lectern/bench/internal/stage"
)

// proxied is the credential proxy before a target over TLS, with its references.
type proxied struct {
	target *stage.Target
	proxy  *stage.Service
	bare   *stage.Service
	nginx  *stage.Service // nil where it is not installed
}

func (b *Bench) proxied(ctx context.Context) (*proxied, error) {
	var p proxied
	var err error
	if p.target, err = b.stage.StartTarget(ctx); err != nil {
		return nil, err
	}
	if p.proxy, err = b.stage.StartProxy(ctx, p.target); err != nil {
		return nil, err
	}
	if p.bare, err = b.stage.StartForward(ctx, p.target); err != nil {
		return nil, err
	}
	p.nginx, err = b.stage.StartNginx(ctx, p.target)
	if errors.Is(err, stage.ErrNoNginx) {
		b.Note("%v", err)
		err = nil
	}
	return &p, err
}

func (p *proxied) stop() error {
	err := errors.Join(p.proxy.Stop(), p.bare.Stop(), p.target.Stop())
	if p.nginx != nil {
		err = errors.Join(err, p.nginx.Stop())
	}
	return err
}

// through returns the path of the proxy for a path of the target.
func (p *proxied) through(path string) string {
	return "/proxy?url=" + url.QueryEscape(p.target.URL+path)
}

// headers returns the headers of a page's request as lines. If used is set they have the credential; otherwise they
// select the endpoint without one.
func headers(used bool) []string {
	lines := []string{"X-Project-ID: " + stage.ProxyProject, "Origin: " + stage.ProxyOrigin}
	if used {
		return append(lines, "X-Environment: "+stage.ProxyEnvironment, "Authorization: Bearer {{ "+stage.ProxyCredential+" }}")
	}
	return append(lines, "X-Environment: "+stage.ProxyPlainEnvironment)
}

// proxyRate compares small requests with one credential in a header with a bare ReverseProxy and nginx. It also
// measures the time that the proxy adds to one request at a time.
func (b *Bench) proxyRate(ctx context.Context) (_ []report.Result, err error) {
	p, err := b.proxied(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	small := func(name, path string) (*load.HTTP, error) {
		return load.NewHTTP(b.stage.Folder, name, []load.Request{{Path: path}})
	}
	direct, err := small("proxy_direct", "/small")
	if err != nil {
		return nil, err
	}
	through, err := small("proxy_through", p.through("/small"))
	if err != nil {
		return nil, err
	}
	through.Header = headers(true)

	served, bare := &driven{of: p.proxy}, &driven{of: p.bare}
	contenders := []contender{served.by(through, b.Round), bare.by(direct, b.Round)}
	if p.nginx != nil {
		contenders = append(contenders, (&driven{of: p.nginx}).by(direct, b.Round))
	}
	if _, err := rounds(ctx, 1, contenders...); err != nil { // warm
		return nil, err
	}
	served.cpu, bare.cpu = nil, nil
	v, err := rounds(ctx, b.Rounds, contenders...)
	if err != nil {
		return nil, err
	}
	results := []report.Result{
		report.Ratios("proxy_rps", report.RequestsRate, report.AtLeast(0.85), v[0], "bare ReverseProxy", v[1]),
		report.Ratios("proxy_rps_cpu", report.Nanoseconds, report.Floor{}, served.cpu, "bare ReverseProxy", bare.cpu),
	}
	if p.nginx != nil {
		results = append(results, report.Ratios("proxy_rps_nginx", report.RequestsRate, report.AtLeast(0.35), v[0], "nginx", v[2]))
	}

	one := func(requests *load.HTTP, base string) contender {
		return func(ctx context.Context) (float64, error) {
			rate, err := requests.Run(ctx, base, 1, b.Round)
			return milliseconds(rate.P50), err
		}
	}
	v, err = rounds(ctx, b.Rounds, one(through, p.proxy.URL), one(direct, p.target.URL), one(direct, p.bare.URL))
	if err != nil {
		return nil, err
	}
	added, bareAdded := make([]float64, len(v[0])), make([]float64, len(v[0]))
	for i := range added {
		added[i], bareAdded[i] = v[0][i]-v[1][i], v[2][i]-v[1][i]
	}
	return append(results,
		report.Ratios("proxy_added_p50", report.Milliseconds, report.AtMost(1.2), added, "added by a bare ReverseProxy", bareAdded),
	), nil
}

// templating runs the Go benchmarks of inserting values into bodies.
func (b *Bench) templating(ctx context.Context) ([]report.Result, error) {
	return b.throughput(ctx, "templating", "./proxy/internal/template", "BenchmarkBody", 500)
}

// scrubbing runs the Go benchmarks of removing values from answers.
func (b *Bench) scrubbing(ctx context.Context) ([]report.Result, error) {
	return b.throughput(ctx, "scrubbing", "./proxy/internal/scrub", "BenchmarkStream", 300)
}

// throughput runs a Go benchmark once a round. Each of its kinds becomes a result.
func (b *Bench) throughput(ctx context.Context, row, pkg, name string, floor float64) ([]report.Result, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^"+name+"$", "-benchtime", "500ms",
		"-count", strconv.Itoa(b.Rounds), pkg)
	cmd.Dir = b.stage.Root
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("go test -bench: %w\n%s", err, out)
	}
	line := regexp.MustCompile(`(?m)^` + name + `/(\w+)(?:-\d+)?\s+\d+\s+[0-9.]+ ns/op\s+([0-9.]+) MB/s`)
	var kinds []string
	rates := map[string][]float64{}
	for _, m := range line.FindAllStringSubmatch(string(out), -1) {
		rate, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return nil, err
		}
		if rates[m[1]] == nil {
			kinds = append(kinds, m[1])
		}
		rates[m[1]] = append(rates[m[1]], rate)
	}
	if len(kinds) == 0 {
		return nil, fmt.Errorf("go test -bench %s said no figure:\n%s", name, out)
	}
	var results []report.Result
	for _, kind := range kinds {
		results = append(results, report.Values(row+"_"+kind, report.BytesRate, report.AtLeast(floor), rates[kind]))
	}
	return results, nil
}
