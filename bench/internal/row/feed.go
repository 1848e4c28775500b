package row

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/lectern-dev/lectern/bench/internal/report"
	"github.com/lectern-dev/lectern/bench/internal/sample"
	"github.com/lectern-dev/lectern/bench/internal/stage"
)

const (
	// feedEntries is the number of entries of the followed project, and feedEvents the number of events of each.
	feedEntries = 100_000
	feedEvents  = 8
	// deepEvents is the position of a page of the feed in the middle of the events.
	deepEvents = feedEntries * feedEvents / 2
	// followers is how many clients wait at once for changes.
	followers = 1000
	// firstFollowed is the id before the first project whose changes are timed.
	firstFollowed = 7_900_000_000
)

// followed returns the service over one project of 100,000 entries with 800,000 events.
func (b *Bench) followed(ctx context.Context) (*entries, error) {
	return b.feeding.once(func() (*entries, error) {
		return b.makeEntries(ctx, followedIn, shape{projects: 1, each: feedEntries, events: feedEvents})
	})
}

var followedIn = stage.Definition{Name: "entries", Database: "entries_feed"}

// feed compares the change feed of a project, from beginning to end, with COPY of the same rows. It also measures the
// memory of a fresh process for it.
func (b *Bench) feed(ctx context.Context) ([]report.Result, error) {
	e, err := b.followed(ctx)
	if err != nil {
		return nil, err
	}
	const rows = feedEntries * (1 + feedEvents)
	project := projectID(1)
	follow := func(ctx context.Context, svc *stage.Service) (answer, error) {
		a, err := getLines(ctx, changesOf(svc, project)+"?limit=1000000", e.keys[project])
		if err == nil && a.rows != rows {
			err = fmt.Errorf("a feed of %d changes has %d", rows, a.rows)
		}
		return a, err
	}
	where := ` WHERE project_id = '` + project + `' ORDER BY seq`
	copies := []string{
		`SELECT row_to_json(c) FROM (SELECT seq, entry_id, group_id, project_id, embeddable_id, contact_id, created_at, updated_at,
			entry_data FROM entries` + where + `) c`,
		`SELECT row_to_json(c) FROM (SELECT seq, entry_id, contact_id, project_id, group_id, embeddable_id, embeddable_version_number,
			"timestamp", page_id, page_key, page_index, max_page_id, max_page_key, max_page_index, total_pages, event_type, view_type,
			custom_event_name, custom_event_props, event_id, url, event_key FROM events` + where + `) c`,
	}
	v, err := rounds(ctx, max(3, b.Rounds/2),
		func(ctx context.Context) (float64, error) {
			a, err := follow(ctx, e.Service)
			return float64(a.rows) / a.whole.Seconds(), err
		},
		func(ctx context.Context) (float64, error) {
			begin, copied := time.Now(), int64(0)
			for _, query := range copies {
				n, err := e.Database.Dump(ctx, query)
				if err != nil {
					return 0, err
				}
				copied += n
			}
			if copied != rows {
				return 0, fmt.Errorf("COPY of %d rows gave %d", rows, copied)
			}
			return rows / time.Since(begin).Seconds(), nil
		})
	if err != nil {
		return nil, err
	}
	memory, err := b.peakMemory(ctx, "feed_memory", followedIn, func(ctx context.Context, svc *stage.Service) error {
		_, err := follow(ctx, svc)
		return err
	})
	return append(memory, report.Ratios("feed", report.RowsRate, report.AtLeast(0.7), v[0], "COPY (row_to_json)", v[1])), err
}

func changesOf(svc *stage.Service, project string) string {
	return svc.URL + "/projects/" + project + "/entries-changes"
}

// feedDeep compares a page of events in the middle of the feed with the first page.
func (b *Bench) feedDeep(ctx context.Context) ([]report.Result, error) {
	e, err := b.followed(ctx)
	if err != nil {
		return nil, err
	}
	return b.deep(ctx, e, "feed_deep", projectID(1), "/entries-changes?types=event&limit=%d", 100, deepEvents, report.AtMost(1.1))
}

// follower waits for changes of a project.
type follower struct {
	of      *stage.Service
	project string
	key     string
	cursor  string
	client  *http.Client
}

// wait requests the changes after the cursor, waits up to a minute, and reports whether there was one.
func (f *follower) wait(ctx context.Context) (changed bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, changesOf(f.of, f.project)+"?wait=60&cursor="+f.cursor, nil)
	if err != nil {
		return false, err
	}
	if f.cursor == "" {
		req.URL.RawQuery = "wait=60"
	}
	req.Header.Set("X-Api-Key", f.key)
	req.Header.Set("Accept", "application/x-ndjson")
	resp, err := f.client.Do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s", req.URL.Path, resp.Status)
	}
	f.cursor = resp.Header.Get("X-Next-Cursor")
	return n > 0, err
}

// following starts all followers and returns when all of them wait. They follow until stop is called, which returns
// the first error. seen is called for each answer with changes.
func following(ctx context.Context, svc *stage.Service, all []*follower, seen func(i int)) (stop func() error, err error) {
	transport := &http.Transport{MaxIdleConnsPerHost: len(all), DisableCompression: true}
	client := &http.Client{Transport: transport}
	ctx, cancel := context.WithCancel(ctx)
	errs := make([]error, len(all))
	var waiting sync.WaitGroup
	for i, f := range all {
		f.client = client
		waiting.Go(func() {
			for {
				changed, err := f.wait(ctx)
				if err != nil {
					if ctx.Err() == nil {
						errs[i] = err
					}
					return
				}
				if changed {
					seen(i)
				}
			}
		})
	}
	stop = func() error {
		cancel()
		waiting.Wait()
		transport.CloseIdleConnections()
		return errors.Join(errs...)
	}
	for begin := time.Now(); ; {
		n, err := gauge(ctx, svc, "lectern_feed_waiting")
		switch {
		case err == nil && n == float64(len(all)):
			return stop, nil
		case err == nil && time.Since(begin) > time.Minute:
			err = fmt.Errorf("of %d clients, %v wait after a minute", len(all), n)
		}
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// gauge returns a metric of a service, summed over its labels.
func gauge(ctx context.Context, svc *stage.Service, name string) (sum float64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, svc.InternalURL+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	found := regexp.MustCompile(`(?m)^`+name+`(?:\{.*\})? (\S+)$`).FindAllSubmatch(text, -1)
	if found == nil {
		return 0, fmt.Errorf("the service has no metric %s", name)
	}
	for _, m := range found {
		v, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, nil
}

// feedIdle measures the processor time for a thousand clients that wait on 50 projects without changes. It also
// measures the database connections in use.
func (b *Bench) feedIdle(ctx context.Context) ([]report.Result, error) {
	e, err := b.entries(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]*follower, followers)
	for i := range all {
		f := &follower{of: e.Service, project: projectID(1 + i%e.projects)}
		f.key = e.keys[f.project]
		if i < e.projects {
			end, err := getLines(ctx, changesOf(e.Service, f.project)+"?limit=1000000", f.key)
			if err != nil {
				return nil, err
			}
			f.cursor = end.cursor
		} else {
			f.cursor = all[i%e.projects].cursor
		}
		all[i] = f
	}
	var changed sync.Once
	var unexpected error
	stop, err := following(ctx, e.Service, all, func(i int) {
		changed.Do(func() { unexpected = fmt.Errorf("project %s changed", all[i].project) })
	})
	if err != nil {
		return nil, err
	}
	var service, postgres, held []float64
	err = func() error {
		for range b.Rounds {
			own, err1 := e.CPU()
			others, err2 := b.stage.Usage()
			begin := time.Now()
			time.Sleep(b.Round)
			took := time.Since(begin)
			ownAfter, err3 := e.CPU()
			othersAfter, err4 := b.stage.Usage()
			if err := errors.Join(err1, err2, err3, err4, ctx.Err()); err != nil {
				return err
			}
			service = append(service, 100*float64(ownAfter-own)/float64(took))
			postgres = append(postgres, 100*float64(othersAfter.Postgres-others.Postgres)/float64(took))
		}
		for range 50 { // after the rounds: a look at the metrics takes time of the processor
			n, err := gauge(ctx, e.Service, "pgxpool_acquired_connections")
			if err != nil {
				return err
			}
			held = append(held, n)
			time.Sleep(37 * time.Millisecond) // not in step with the looks, of which there is one a second and project
		}
		return nil
	}()
	if err := errors.Join(err, stop(), unexpected); err != nil {
		return nil, err
	}
	return []report.Result{
		report.Values("feed_idle", report.Percent, report.AtMost(5), service),
		report.Values("feed_idle_postgres", report.Percent, report.Floor{}, postgres),
		report.Values("feed_idle_held", report.Connections, report.AtMost(0), held),
	}, nil
}

// feedLatency measures the time from ingest's answer until a waiting client has the change.
func (b *Bench) feedLatency(ctx context.Context) ([]report.Result, error) {
	e, err := b.entries(ctx)
	if err != nil {
		return nil, err
	}
	ids := make([]string, projects)
	for i := range ids {
		ids[i] = strconv.Itoa(firstFollowed + 1 + i)
	}
	keys, err := b.stage.Keys(ctx, ids)
	if err != nil {
		return nil, err
	}
	all, seen := make([]*follower, projects), make([]chan time.Time, projects)
	for i := range all {
		all[i] = &follower{of: e.Service, project: ids[i], key: keys[i]}
		seen[i] = make(chan time.Time, 1)
	}
	stop, err := following(ctx, e.Service, all, func(i int) { seen[i] <- time.Now() })
	if err != nil {
		return nil, err
	}
	sent := 0
	var medians []float64
	v, err := rounds(ctx, b.Rounds, func(ctx context.Context) (float64, error) {
		var took []float64
		for begin := time.Now(); time.Since(begin) < b.Round || len(took) < 200; {
			i := sent % projects
			sent++
			lines := sample.NDJSON([]sample.Entry{sample.EntryOf(ids[i], sent, 1_000_003)})
			if _, err := postEntries(ctx, e.Service, lines); err != nil {
				return 0, err
			}
			answered := time.Now()
			select {
			case at := <-seen[i]:
				took = append(took, max(0, milliseconds(at.Sub(answered))))
			case <-time.After(10 * time.Second):
				return 0, fmt.Errorf("a change of %s did not come in 10 s", ids[i])
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		slices.Sort(took)
		medians = append(medians, quantile(took, 0.5))
		return quantile(took, 0.99), nil
	})
	if err := errors.Join(err, stop()); err != nil {
		return nil, err
	}
	return []report.Result{
		report.Values("feed_latency", report.Milliseconds, report.AtMost(50), v[0]),
		report.Values("feed_latency_p50", report.Milliseconds, report.Floor{}, medians),
	}, nil
}
