package row

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/lectern-dev/lectern/bench/internal/load"
	"github.com/lectern-dev/lectern/bench/internal/must"
	"github.com/lectern-dev/lectern/bench/internal/report"
	"github.com/lectern-dev/lectern/bench/internal/stage"
)

// proxied starts a target server with TLS, and a bare httputil.ReverseProxy in front of the target. Both stop when the
// row ends.
func (b *Bench) proxied(ctx context.Context) (target *stage.Target, bare *stage.Service) {
	target = b.tree().StartTarget(ctx)
	b.atEnd(target.Stop)
	bare = b.tree().StartForward(ctx, target)
	b.atEnd(bare.Stop)
	return target, bare
}

// through returns the path and query with which the proxy requests path of target.
func through(target *stage.Target, path string) string {
	return "/proxy?url=" + url.QueryEscape(target.URL+path)
}

// headers returns the headers of a page's request to the proxy, as lines. If used is set, the request uses the
// credential. Otherwise the headers select the environment whose endpoint needs no credential.
func headers(used bool) []string {
	lines := []string{"X-Project-ID: " + stage.ProxyProject, "Origin: " + stage.ProxyOrigin}
	if used {
		return append(lines, "X-Environment: "+stage.ProxyEnvironment, "Authorization: Bearer {{ "+stage.ProxyCredential+" }}")
	}
	return append(lines, "X-Environment: "+stage.ProxyPlainEnvironment)
}

// proxyRate measures the rate of small requests through the proxy, with a credential in a header, against a bare
// ReverseProxy. proxyRate also measures the time that the proxy adds to one request at a time.
func (b *Bench) proxyRate(ctx context.Context) []report.Result {
	target, bare := b.proxied(ctx)
	var ones subjects
	served := b.each(func(v *version) *contender {
		proxy := v.StartProxy(ctx, target)
		b.atEnd(proxy.Stop)
		requests := must.Get(load.NewHTTP(v.Folder, "proxy", []load.Request{{Path: through(target, "/small")}}))
		requests.Header = headers(true)
		ones = append(ones, b.alone(proxy, requests))
		return b.driven(ctx, proxy, requests)
	})
	direct := must.Get(load.NewHTTP(b.tree().Folder, "proxy_direct", []load.Request{{Path: "/small"}}))
	reference := b.driven(ctx, bare, direct)
	rounds(ctx, b.Rounds, append(served, reference)...)
	one, oneDirect := b.alone(bare, direct), b.alone(target.Service, direct)
	rounds(ctx, b.Rounds, append(ones, one, oneDirect)...)
	for i := range ones {
		ones[i] = added(ones[i], oneDirect)
	}
	return []report.Result{
		served.result("proxy_rps", report.RequestsRate, report.AtLeast(0.85), "bare ReverseProxy", reference),
		ones.result("proxy_added_p50", report.Milliseconds, report.AtMost(1.2), "added by a bare ReverseProxy", added(one, oneDirect)),
	}
}

// bulkBytes is the size of the body that proxy_bulk downloads: 1 GiB.
const bulkBytes = 1 << 30

// proxyBulk measures the download of a large body through the proxy, without credentials, against a bare ReverseProxy.
func (b *Bench) proxyBulk(ctx context.Context) []report.Result {
	target, bare := b.proxied(ctx)
	path := "/bulk?bytes=" + strconv.Itoa(bulkBytes)
	downs := b.each(func(v *version) *contender {
		proxy := v.StartProxy(ctx, target)
		b.atEnd(proxy.Stop)
		return fetch(proxy, through(target, path), headers(false))
	})
	bareDown := fetch(bare, path, nil)
	rounds(ctx, min(b.Rounds, 5), append(downs, bareDown)...)
	return []report.Result{downs.result("proxy_bulk", report.BytesRate, report.AtLeast(0.95), "bare ReverseProxy", bareDown)}
}

// fetch returns a contender that downloads one body of bulkBytes from svc. The figure is megabytes a second, and the
// processor time is that of 1 MiB.
func fetch(svc *stage.Service, path string, header []string) *contender {
	client := &http.Client{Transport: &http.Transport{DisableCompression: true, ReadBufferSize: 64 << 10}}
	return &contender{cpu: svc.CPU, run: func(ctx context.Context) (float64, int64) {
		req := must.Get(http.NewRequestWithContext(ctx, http.MethodGet, svc.URL+path, nil))
		for _, line := range header {
			name, value, _ := strings.Cut(line, ": ")
			req.Header.Set(name, value)
		}
		begin := time.Now()
		resp, err := client.Do(req)
		must.Do(err)
		defer resp.Body.Close()
		n := must.Get(io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{resp.Body}, make([]byte, 64<<10)))
		if n != bulkBytes || resp.StatusCode != http.StatusOK {
			must.Do(fmt.Errorf("GET: %s with %d bytes, want %d", resp.Status, n, bulkBytes))
		}
		return bulkBytes / 1e6 / time.Since(begin).Seconds(), bulkBytes >> 20
	}}
}
