package row

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/lectern-dev/lectern/bench/internal/report"
	"github.com/lectern-dev/lectern/bench/internal/stage"
)

const (
	// firstTenant is the id before the first of the small projects, which have tenantEntries each.
	firstTenant   = 7_600_000_000
	tenants       = 200
	tenantEntries = 500
	// largeTenant has largeEntries, and exports them in largeExports lists at once.
	largeTenant  = "7700000000"
	largeEntries = 5_000_000
	largeExports = 8
	// tenantRate is how many lists of ten all small projects together request a second, evenly: about a tenth of what
	// the service can answer.
	tenantRate = 400
	// tenantRound is the length of a round: p99 is then made of the 20 slowest requests.
	tenantRound = 5 * time.Second
	// tenantWarmUp is how long exports may take to begin.
	tenantWarmUp = time.Minute
)

// tenants measures how small projects are affected by one project that exports all its data several times at once. It
// compares the time of their lists, from when they were due, with the time without exports.
func (b *Bench) tenants(ctx context.Context) ([]report.Result, error) {
	d := stage.Definition{Name: "entries", Database: "entries_tenants"}
	b.Note("making %d entries in one project, and %d in each of %d", largeEntries, tenantEntries, tenants)
	db, err := b.stage.Migrated(ctx, d)
	if err != nil {
		return nil, err
	}
	err = db.WithoutIndexes(ctx, "entries", func() error {
		return db.Run(ctx, `ALTER TABLE entries SET UNLOGGED`, // nothing is written once it is read
			tenantEntriesOf(fmt.Sprintf("(%d + p)::text", firstTenant), tenantEntries, fmt.Sprintf("generate_series(1, %d) p", tenants)),
			tenantEntriesOf("'"+largeTenant+"'", largeEntries, "(SELECT 1 p) one"))
	})
	if err == nil {
		err = db.Run(ctx, addCounters, "VACUUM (ANALYZE) entries")
	}
	if err = errors.Join(err, db.Checkpoint(ctx)); err != nil {
		return nil, err
	}
	svc, err := b.stage.Start(ctx, d)
	if err != nil {
		return nil, err
	}
	// The same without bounds on the number of lists that read at a time.
	d.Environ = []string{"PROJECT_MAX_READS=1000", "MAX_EXPORT_READS=1000"}
	loose, err := b.stage.Start(ctx, d)
	if err != nil {
		return nil, err
	}
	var small, smallLoose []pacedClient
	for n := range tenants {
		project := strconv.Itoa(firstTenant + 1 + n)
		key, err := b.stage.Key(ctx, project)
		if err != nil {
			return nil, err
		}
		small = append(small, pacedClient{svc.URL + "/projects/" + project + "/entries", key})
		smallLoose = append(smallLoose, pacedClient{loose.URL + "/projects/" + project + "/entries", key})
	}
	large, err := b.stage.Key(ctx, largeTenant)
	if err != nil {
		return nil, err
	}
	for _, clients := range [][]pacedClient{small, smallLoose} {
		if _, err := paced(ctx, clients, time.Second); err != nil {
			return nil, err
		}
	}
	var medians [2][]float64 // with exports, and without
	rates := map[*stage.Service][]float64{}
	exporting := func(of *stage.Service, clients []pacedClient) func(context.Context) ([]float64, error) {
		return func(ctx context.Context) ([]float64, error) {
			drain, err := b.stage.StartDrain(ctx, all(of, largeTenant), large, largeExports)
			if err != nil {
				return nil, err
			}
			// Before their first byte, each passes a million rows of an index.
			for begin := time.Now(); !drain.Flowing() && time.Since(begin) < tenantWarmUp; {
				if _, err := paced(ctx, clients, time.Second); err != nil {
					return nil, err
				}
			}
			took, err := paced(ctx, clients, tenantRound)
			got, drainErr := drain.Finish()
			if drainErr == nil && (got.Rows == 0 || got.Refused > 0) {
				drainErr = fmt.Errorf("%d rows were exported, %d requests refused", got.Rows, got.Refused)
			}
			rates[of] = append(rates[of], float64(got.Rows)/got.Seconds)
			return took, errors.Join(err, drainErr)
		}
	}
	besideBounded, besideNone := exporting(svc, small), exporting(loose, smallLoose)
	beside := func(ctx context.Context) (float64, error) {
		took, err := besideBounded(ctx)
		if err != nil {
			return 0, err
		}
		medians[0] = append(medians[0], quantile(took, 0.5))
		return quantile(took, 0.99), nil
	}
	unbounded := func(ctx context.Context) (float64, error) {
		took, err := besideNone(ctx)
		if err != nil {
			return 0, err
		}
		return quantile(took, 0.99), nil
	}
	quiet := func(ctx context.Context) (float64, error) {
		took, err := paced(ctx, small, tenantRound)
		if err != nil {
			return 0, err
		}
		medians[1] = append(medians[1], quantile(took, 0.5))
		return quantile(took, 0.99), nil
	}
	v, err := rounds(ctx, max(b.Rounds, 3), beside, quiet, unbounded)
	if err != nil {
		return nil, err
	}
	b.Note("p99 in ms: beside exports %.1f, alone %.1f, beside exports without bounds %.1f", v[0], v[1], v[2])
	return []report.Result{
		report.Ratios("tenants", report.Milliseconds, report.AtMost(3), v[0], "p99, nobody exports", v[1]),
		report.Ratios("tenants_p50", report.Milliseconds, report.Floor{}, medians[0], "p50, nobody exports", medians[1]),
		report.Ratios("tenants_unbounded", report.Milliseconds, report.Floor{}, v[2], "p99, nobody exports", v[1]),
		report.Values("tenants_export", report.RowsRate, report.Floor{}, rates[svc]),
		report.Values("tenants_export_unbounded", report.RowsRate, report.Floor{}, rates[loose]),
	}, nil
}

// tenantEntriesOf makes entries of projects in their database, like those of package sample: five million would take
// long over the network.
func tenantEntriesOf(project string, each int, projects string) string {
	return fmt.Sprintf(`
		INSERT INTO entries (project_id, entry_id, group_id, embeddable_id, contact_id, created_at, updated_at, entry_data, seq)
		SELECT %[1]s, (1000000000000000 + i * 48611)::text, 'gr_' || %[1]s, 'flow_' || i %% 20, 'ct_' || i * 7919, at - interval '3 minutes', at,
		       '{"first_name":"Visitor ' || i || '","email":"visitor.' || i || '@example.com","phone":"+1 555 ' || i %% 8999999 ||
		       '","answers":{"budget":' || i %% 50 * 1000 || ',"timeline":"' || i %% 12 + 1 || ' months","rooms":["kitchen","bath room ' || i %% 4 ||
		       '"],"note":"Please call after five; the bell says \\"Miller\\"."},"utm":{"source":"newsletter","medium":"email","campaign":"spring-' || i %% 7 ||
		       '"},"score":' || i %% 100 || ',"consent":true,"referrer":null}', i
		FROM %[3]s CROSS JOIN LATERAL (
			SELECT i, timestamptz '2024-01-01' + 7 * (i * 7368787 %% %[2]d) * interval '1 s' AS at
			FROM generate_series(1, %[2]d::bigint) i) e`, project, each, projects)
}

// pacedClient is a client that requests one list now and then.
type pacedClient struct{ url, key string }

// paced lets the clients send requests in turn, tenantRate times a second. It returns the time of each answer in
// milliseconds, ascending. The time counts from when the request was due, so that a slow answer does not hide the
// wait of later requests.
func paced(ctx context.Context, clients []pacedClient, during time.Duration) ([]float64, error) {
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
		select {
		case <-time.After(time.Until(due)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		asked.Go(func() {
			errs[i] = clients[i%len(clients)].ask(ctx, client)
			took[i] = milliseconds(time.Since(due))
		})
	}
	asked.Wait()
	slices.Sort(took)
	return took, errors.Join(errs...)
}

func (p pacedClient) ask(ctx context.Context, client *http.Client) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("X-Api-Key", p.key)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", req.URL.Path, resp.Status)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// quantile returns a quantile of ascending values.
func quantile(ascending []float64, q float64) float64 {
	return ascending[min(int(q*float64(len(ascending))), len(ascending)-1)]
}
