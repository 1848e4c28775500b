package row

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/lectern-dev/lectern/bench/internal/load"
	"github.com/lectern-dev/lectern/bench/internal/must"
	"github.com/lectern-dev/lectern/bench/internal/report"
)

const (
	// largeLimit is the number of entries in each list that the large project requests. On a busy machine too, such
	// lists end within a round. largeExports is the number of such lists in flight at once.
	largeLimit   = 20_000
	largeExports = 8
	// tenantRate is how many lists of ten entries all small projects together request a second, evenly. The rate is
	// about a tenth of the rate that the service can answer.
	tenantRate = 400
	// tenantRound is the length of a round. At tenantRate, the slowest 1 % of a round's requests are 20 requests.
	tenantRound = 5 * time.Second
	// tenantWarmUp is how long the exports of the large project run before a round measures the small projects.
	tenantWarmUp = 5 * time.Second
)

// tenants measures how one project of a million entries slows small projects, while the large project exports its data
// several times at once. The figure is the 99th percentile of the small projects' times, and the reference that
// without exports.
func (b *Bench) tenants(ctx context.Context) []report.Result {
	beside := b.each(func(v *version) *contender {
		e := v.grown(ctx)
		list := fmt.Sprintf("/projects/%s/entries?limit=%d", hugeProject, largeLimit)
		exports := must.Get(load.NewHTTP(v.Folder, "tenants", []load.Request{{Path: list, Key: e.keys[hugeProject]}}))
		must.Get(get(ctx, http.DefaultClient, e.URL+list, e.keys[hugeProject], "")) // from now on, the table is in memory
		return figure(func(ctx context.Context) float64 {
			exported := make(chan error, 1)
			go func() {
				_, err := exports.Run(ctx, e.URL, largeExports, tenantWarmUp+tenantRound)
				exported <- err
			}()
			_, err := e.paced(ctx, tenantWarmUp)
			took, err2 := e.paced(ctx, tenantRound)
			must.Do(errors.Join(err, err2, <-exported))
			return quantile(took, 0.99)
		})
	})
	quiet := figure(func(ctx context.Context) float64 {
		return quantile(must.Get(b.tree().grown(ctx).paced(ctx, tenantRound)), 0.99)
	})
	rounds(ctx, max(b.Rounds, 3), append(beside, quiet)...)
	return []report.Result{beside.result("tenants", report.Milliseconds, report.AtMost(3), "p99, nobody exports", quiet)}
}

// paced requests lists of the small projects in turn, tenantRate times a second. paced returns the time of each answer
// in milliseconds, ascending. A time counts from when its request was due, so that a slow answer does not hide the
// wait of later requests.
func (e *entries) paced(ctx context.Context, during time.Duration) ([]float64, error) {
	n := int(during.Seconds() * tenantRate)
	took := make([]float64, n)
	errs := make([]error, n)
	transport := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
	var asked sync.WaitGroup
	begin := time.Now()
	for i := range n {
		due := begin.Add(time.Duration(i) * time.Second / tenantRate)
		time.Sleep(time.Until(due))
		asked.Go(func() {
			project := projectID(1 + i%e.projects)
			_, errs[i] = get(ctx, client, e.URL+"/projects/"+project+"/entries", e.keys[project], "")
			took[i] = milliseconds(time.Since(due))
		})
	}
	asked.Wait()
	slices.Sort(took)
	return took, errors.Join(errs...)
}

// quantile returns the q-th quantile of ascending values, such as the median for q = 0.5. ascending must not be empty.
func quantile(ascending []float64, q float64) float64 {
	return ascending[min(int(q*float64(len(ascending))), len(ascending)-1)]
}
