package row

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lectern-dev/lectern/bench/internal/report"
)

const (
	// bulkBytes is the size of the body each way.
	bulkBytes = 1 << 30
	// streams is the number of streams open at a time.
	streams = 1000
	// settle is how long the streams are idle before memory is measured.
	settle = 3 * time.Second
)

// request makes a request with the given lines of header.
func request(ctx context.Context, method, address string, body io.Reader, header []string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, err
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	return req, nil
}

// proxyBulk measures a large body down and another one up, by an endpoint without credentials. It compares them with
// a bare ReverseProxy and with direct access.
func (b *Bench) proxyBulk(ctx context.Context) (_ []report.Result, err error) {
	p, err := b.proxied(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	const down = "/bulk?bytes="
	size := strconv.Itoa(bulkBytes)
	plain := &http.Client{Transport: &http.Transport{DisableCompression: true, ReadBufferSize: 64 << 10, WriteBufferSize: 64 << 10}}
	n := min(b.Rounds, 5)
	v, err := rounds(ctx, n,
		fetch(plain, p.proxy.URL+p.through(down+size), headers(false)),
		fetch(plain, p.bare.URL+down+size, nil),
		fetch(p.target.Client, p.target.URL+down+size, nil))
	if err != nil {
		return nil, err
	}
	w, err := rounds(ctx, n,
		send(plain, p.proxy.URL+p.through("/sink"), headers(false)),
		send(plain, p.bare.URL+"/sink", nil),
		send(p.target.Client, p.target.URL+"/sink", nil))
	if err != nil {
		return nil, err
	}
	return []report.Result{
		report.Ratios("proxy_bulk_down", report.BytesRate, report.AtLeast(0.95), v[0], "bare ReverseProxy", v[1]),
		report.Ratios("proxy_bulk_down_direct", report.BytesRate, report.Floor{}, v[0], "direct", v[2]),
		report.Ratios("proxy_bulk_up", report.BytesRate, report.AtLeast(0.95), w[0], "bare ReverseProxy", w[1]),
		report.Ratios("proxy_bulk_up_direct", report.BytesRate, report.Floor{}, w[0], "direct", w[2]),
	}, nil
}

func megabytes(n int64, d time.Duration) float64 { return float64(n) / 1e6 / d.Seconds() }

// fetch reads bulkBytes.
func fetch(client *http.Client, address string, header []string) contender {
	return func(ctx context.Context) (float64, error) {
		req, err := request(ctx, http.MethodGet, address, nil, header)
		if err != nil {
			return 0, err
		}
		begin := time.Now()
		resp, err := client.Do(req)
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{resp.Body}, make([]byte, 64<<10))
		if err == nil && (n != bulkBytes || resp.StatusCode != http.StatusOK) {
			err = fmt.Errorf("GET: %s with %d bytes, want %d", resp.Status, n, bulkBytes)
		}
		return megabytes(n, time.Since(begin)), err
	}
}

// send sends bulkBytes.
func send(client *http.Client, address string, header []string) contender {
	return func(ctx context.Context) (float64, error) {
		req, err := request(ctx, http.MethodPost, address, io.LimitReader(zeros{}, bulkBytes), header)
		if err != nil {
			return 0, err
		}
		req.ContentLength = bulkBytes
		begin := time.Now()
		resp, err := client.Do(req)
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		said, err := io.ReadAll(resp.Body)
		if err == nil && string(said) != strconv.Itoa(bulkBytes) {
			err = fmt.Errorf("POST: %s: %.200s, want %d", resp.Status, said, bulkBytes)
		}
		return megabytes(bulkBytes, time.Since(begin)), err
	}
}

// zeros is an endless reader.
type zeros struct{}

// Read fills b with zeros.
func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// proxyMemory measures the resident memory of a proxy with many open streams of events. Each is searched for the
// credential of its request.
func (b *Bench) proxyMemory(ctx context.Context) (_ []report.Result, err error) {
	target, err := b.stage.StartTarget(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, target.Stop()) }()
	var idles []float64
	v, err := rounds(ctx, 3, func(ctx context.Context) (_ float64, err error) {
		proxy, err := b.stage.StartProxy(ctx, target)
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, proxy.Stop()) }()
		before, _, err := proxy.Memory()
		if err != nil {
			return 0, err
		}
		idles = append(idles, mebibytes(before))
		p := &proxied{target: target, proxy: proxy}
		closeAll, err := openStreams(ctx, proxy.URL+p.through("/events"))
		defer closeAll()
		if err != nil {
			return 0, err
		}
		select {
		case <-time.After(settle):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		now, _, err := proxy.Memory()
		return mebibytes(now), err
	})
	if err != nil {
		return nil, err
	}
	return []report.Result{
		report.Values("proxy_memory", report.Mebibytes, report.Floor{}, v[0]),
		report.Values("proxy_memory_idle", report.Mebibytes, report.Floor{}, idles),
	}, nil
}

// openStreams opens the streams, waits for the first event of each, and reads them until the returned function is
// called.
func openStreams(ctx context.Context, address string) (closeAll func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	var reading sync.WaitGroup
	first := make(chan error, streams)
	for range streams {
		reading.Go(func() {
			req, err := request(ctx, http.MethodGet, address, nil, headers(true))
			if err != nil {
				first <- err
				return
			}
			resp, err := client.Do(req)
			if err != nil {
				first <- err
				return
			}
			defer resp.Body.Close()
			events := bufio.NewReaderSize(resp.Body, 64)
			line, err := events.ReadString('\n')
			if err == nil && line != "data: 0\n" {
				err = fmt.Errorf("GET: %s: %.200q, want an event", resp.Status, line)
			}
			first <- err
			_, _ = io.Copy(io.Discard, events) // it ends when it is cancelled
		})
	}
	closeAll = func() { cancel(); reading.Wait() }
	for range streams {
		if e := <-first; e != nil && err == nil {
			err = e
			cancel() // the others would be waited for
		}
	}
	return closeAll, err
}
