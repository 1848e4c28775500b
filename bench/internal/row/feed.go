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
	"sync/atomic"
	"time"

	"github.com/lectern-dev/lectern/bench/internal/must"
	"github.com/lectern-dev/lectern/bench/internal/report"
	"github.com/lectern-dev/lectern/bench/internal/sample"
	"github.com/lectern-dev/lectern/bench/internal/stage"
)

const (
	// feedEntries is the number of entries of the project whose feed is measured, and feedEvents the number of events
	// of each entry.
	feedEntries = 100_000
	feedEvents  = 8
	// deepEvents is how many events of the feed come before the page that feed_deep measures: half of all events.
	deepEvents = feedEntries * feedEvents / 2
	// followers is how many clients wait for changes at once.
	followers = 1000
	// firstFollowed plus n is the id of the n-th project, from 1, whose changes feed_latency measures.
	firstFollowed = 7_900_000_000
)

var followedIn = stage.Definition{Name: "entries", Database: "entries_feed"}

// followed returns the entries service with one project of 100,000 entries and 800,000 events. The first call makes
// the data.
func (v *version) followed(ctx context.Context) *entries {
	return v.feeding.once(func() *entries {
		return v.makeEntries(ctx, followedIn, shape{projects: 1, each: feedEntries, events: feedEvents})
	})
}

// feedRows is how many changes the feed of the project with feedEntries entries has: one for each entry and each
// event.
const feedRows = feedEntries * (1 + feedEvents)

// follow reads the change feed of the first project from svc, from beginning to end. follow panics by package must if
// the feed has another number of changes than feedRows.
func (e *entries) follow(ctx context.Context, svc *stage.Service) answer {
	a := must.Get(get(ctx, http.DefaultClient, changesOf(svc, projectID(1))+"?limit=1000000", e.keys[projectID(1)], ndjson))
	if a.rows != feedRows {
		must.Do(fmt.Errorf("a feed of %d changes has %d", feedRows, a.rows))
	}
	return a
}

// reading returns a contender that reads a project's change feed of 900,000 changes. The figure is changes a second.
func (v *version) reading(ctx context.Context) *contender {
	e := v.followed(ctx)
	return &contender{cpu: e.CPU, run: func(ctx context.Context) (float64, int64) {
		a := e.follow(ctx, e.Service)
		return float64(a.rows) / a.whole.Seconds(), int64(a.rows)
	}}
}

// feed measures the changes a second of a project's change feed, read from beginning to end. The reference is
// Postgres' COPY of the same rows.
func (b *Bench) feed(ctx context.Context) []report.Result {
	readers := b.each(func(v *version) *contender { return v.reading(ctx) })
	where := ` WHERE project_id = '` + projectID(1) + `' ORDER BY seq`
	copied := b.tree().followed(ctx).copied(feedRows,
		`SELECT row_to_json(c) FROM (SELECT seq, entry_id, group_id, project_id, embeddable_id, contact_id, created_at, updated_at,
			entry_data FROM entries`+where+`) c`,
		`SELECT row_to_json(c) FROM (SELECT seq, entry_id, contact_id, project_id, group_id, embeddable_id, embeddable_version_number,
			"timestamp", page_id, page_key, page_index, max_page_id, max_page_key, max_page_index, total_pages, event_type, view_type,
			custom_event_name, custom_event_props, event_id, url, event_key FROM events`+where+`) c`)
	rounds(ctx, max(3, b.Rounds/2), append(readers, copied)...)
	return []report.Result{readers.result("feed", report.RowsRate, report.AtLeast(0.7), "COPY (row_to_json)", copied)}
}

// feedMemory measures the peak memory of a fresh process that sends the whole feed.
func (b *Bench) feedMemory(ctx context.Context) []report.Result {
	for _, v := range b.versions {
		v.followed(ctx)
	}
	return b.memory(ctx, "feed_memory", followedIn, func(v *version, svc *stage.Service) { v.followed(ctx).follow(ctx, svc) })
}

func changesOf(svc *stage.Service, project string) string {
	return svc.URL + "/projects/" + project + "/entries-changes"
}

// feedDeep measures the time of a page of events in the middle of the feed, against the first page.
func (b *Bench) feedDeep(ctx context.Context) []report.Result {
	return b.deep(ctx, "feed_deep", (*version).followed, projectID(1), "/entries-changes?types=event&limit=%d", 100, deepEvents, report.AtMost(1.1))
}

// follower is a client that waits for changes of one project by long polling.
type follower struct {
	of      *stage.Service
	project string
	key     string
	cursor  string
	client  *http.Client
}

// wait requests the changes after the cursor, and reports whether the answer has any. The service answers after at most
// a minute. wait treats status 503 as no changes, and sleeps a second. Otherwise wait moves the cursor to the end of
// the answer.
func (f *follower) wait(ctx context.Context) (changed bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, changesOf(f.of, f.project)+"?wait=60&cursor="+f.cursor, nil)
	if err != nil {
		return false, err
	}
	if f.cursor == "" {
		req.URL.RawQuery = "wait=60"
	}
	req.Header.Set("X-Api-Key", f.key)
	req.Header.Set("Accept", ndjson)
	resp, err := f.client.Do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	switch {
	case resp.StatusCode == http.StatusServiceUnavailable: // a busy machine rejects some of a thousand clients that begin at once
		time.Sleep(time.Second)
		return false, err
	case err == nil && resp.StatusCode != http.StatusOK:
		err = fmt.Errorf("GET %s: %s", req.URL.Path, resp.Status)
	}
	f.cursor = resp.Header.Get("X-Next-Cursor")
	return n > 0, err
}

// following starts the followers and waits until svc counts all of them as waiting, at most three minutes. The
// followers wait again after each answer, until the row ends. Each answer with changes calls seen with the follower's
// index.
func (b *Bench) following(ctx context.Context, svc *stage.Service, all []*follower, seen func(i int)) {
	transport := &http.Transport{MaxIdleConnsPerHost: len(all), DisableCompression: true}
	client := &http.Client{Transport: transport}
	waitCtx, cancel := context.WithCancel(ctx)
	errs := make([]error, len(all))
	var waiting sync.WaitGroup
	for i, f := range all {
		f.client = client
		waiting.Go(func() {
			for {
				changed, err := f.wait(waitCtx)
				if err != nil {
					if waitCtx.Err() == nil {
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
	b.atEnd(func() error {
		cancel()
		waiting.Wait()
		transport.CloseIdleConnections()
		return errors.Join(errs...)
	})
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		n := gauge(ctx, svc, "lectern_feed_waiting")
		if n == float64(len(all)) {
			return
		}
		if time.Since(begin) > 3*time.Minute {
			must.Do(fmt.Errorf("of %d clients, %v wait after three minutes", len(all), n))
		}
	}
}

// gauge returns the value of the metric name of svc, summed over its labels. gauge panics by package must if svc has no
// such metric.
func gauge(ctx context.Context, svc *stage.Service, name string) (sum float64) {
	resp, err := http.DefaultClient.Do(must.Get(http.NewRequestWithContext(ctx, http.MethodGet, svc.InternalURL+"/metrics", nil)))
	must.Do(err)
	defer resp.Body.Close()
	text := must.Get(io.ReadAll(resp.Body))
	found := regexp.MustCompile(`(?m)^`+name+`(?:\{.*\})? (\S+)$`).FindAllSubmatch(text, -1)
	if found == nil {
		must.Do(fmt.Errorf("the service has no metric %s", name))
	}
	for _, m := range found {
		sum += must.Get(strconv.ParseFloat(string(m[1]), 64))
	}
	return sum
}

// feedIdle measures the processor time of the service while a thousand clients wait on 50 projects without changes.
// feedIdle also measures how many database connections are in use meanwhile.
func (b *Bench) feedIdle(ctx context.Context) []report.Result {
	var unexpected atomic.Int64
	idle := b.each(func(v *version) *contender {
		e := v.entries(ctx)
		all := make([]*follower, followers)
		for i := range all {
			f := &follower{of: e.Service, project: projectID(1 + i%e.projects)}
			f.key = e.keys[f.project]
			if i < e.projects {
				f.cursor = must.Get(get(ctx, http.DefaultClient, changesOf(e.Service, f.project)+"?limit=1000000", f.key, ndjson)).cursor
			} else {
				f.cursor = all[i%e.projects].cursor
			}
			all[i] = f
		}
		b.following(ctx, e.Service, all, func(int) { unexpected.Add(1) })
		return figure(func(ctx context.Context) float64 {
			before, begin := must.Get(e.CPU()), time.Now()
			time.Sleep(b.Round)
			took := time.Since(begin)
			return 100 * float64(must.Get(e.CPU())-before) / float64(took)
		})
	})
	rounds(ctx, b.Rounds, idle...)
	held := figure(func(ctx context.Context) float64 {
		time.Sleep(37 * time.Millisecond) // not in step with the service's look-ups, one a second and project
		return gauge(ctx, b.tree().entries(ctx).Service, "pgxpool_acquired_connections")
	})
	rounds(ctx, 50, held) // after the other rounds, because a read of the metrics takes processor time
	if n := unexpected.Load(); n > 0 {
		must.Do(fmt.Errorf("%d clients received changes, and there were none", n))
	}
	return []report.Result{
		idle.result("feed_idle", report.Percent, report.AtMost(5), "", nil),
		subjects{held}.result("feed_idle_held", report.Connections, report.AtMost(0), "", nil),
	}
}

// feedLatency measures the 99th percentile of the time from the answer of ingest until a waiting client receives the
// change.
func (b *Bench) feedLatency(ctx context.Context) []report.Result {
	all := b.each(func(v *version) *contender { return v.latency(ctx) })
	rounds(ctx, b.Rounds, all...)
	return []report.Result{all.result("feed_latency", report.Milliseconds, report.AtMost(50), "", nil)}
}

func (v *version) latency(ctx context.Context) *contender {
	e := v.entries(ctx)
	ids := make([]string, projects)
	for i := range ids {
		ids[i] = strconv.Itoa(firstFollowed + 1 + i)
	}
	keys := v.Keys(ctx, ids)
	all, seen := make([]*follower, projects), make([]chan time.Time, projects)
	for i, id := range ids {
		all[i] = &follower{of: e.Service, project: id, key: keys[id]}
		seen[i] = make(chan time.Time, 1)
	}
	v.following(ctx, e.Service, all, func(i int) { seen[i] <- time.Now() })
	sent := 0
	return &contender{cpu: e.CPU, run: func(ctx context.Context) (float64, int64) {
		var took []float64
		for begin := time.Now(); time.Since(begin) < v.Round || len(took) < 200; {
			i := sent % projects
			sent++
			must.Get(postEntries(ctx, e.Service, sample.NDJSON([]sample.Entry{sample.EntryOf(ids[i], sent, 1_000_003)})))
			answered := time.Now()
			select {
			case at := <-seen[i]:
				took = append(took, max(0, milliseconds(at.Sub(answered))))
			case <-time.After(10 * time.Second):
				must.Do(fmt.Errorf("a change of %s did not come in 10 s", ids[i]))
			}
		}
		slices.Sort(took)
		return quantile(took, 0.99), int64(len(took))
	}}
}
