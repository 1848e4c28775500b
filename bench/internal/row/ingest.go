package row

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/lectern-dev/lectern/bench/internal/must"
	"github.com/lectern-dev/lectern/bench/internal/report"
	"github.com/lectern-dev/lectern/bench/internal/sample"
	"github.com/lectern-dev/lectern/bench/internal/stage"
)

const (
	// firstIngested plus n is the id of the project that round n of ingest fills.
	firstIngested = 7_500_000_000
	ingestEntries = 100_000
	// firstShared plus n is the id of the project that several senders fill in round n. senders is the number of
	// senders.
	firstShared = 7_800_000_000
	senders     = 8
)

// batch returns 100,000 generated entries of a project, which one round of ingest sends.
func batch(project string) []sample.Entry {
	all := make([]sample.Entry, ingestEntries)
	for i := range all {
		all[i] = sample.EntryOf(project, 1+i, len(all))
	}
	return all
}

// ingest measures the rows a second of ingest, of new entries and of entries that are already stored. The reference is
// Postgres' COPY of the same rows into a table with the same columns and indexes.
func (b *Bench) ingest(ctx context.Context) []report.Result {
	var repeated subjects
	fresh := b.each(func(v *version) *contender {
		e := v.entries(ctx)
		stored := sample.NDJSON(batch(strconv.Itoa(firstIngested)))
		must.Get(e.post(ctx, 1, summary{Stored: ingestEntries}, stored))
		repeated = append(repeated, e.posted(1, summary{Existing: ingestEntries}, func() [][]byte { return [][]byte{stored} }))
		round := 0
		return e.posted(1, summary{Stored: ingestEntries}, func() [][]byte {
			round++
			return [][]byte{sample.NDJSON(batch(strconv.Itoa(firstIngested + round)))}
		})
	})
	db := b.tree().entries(ctx).Database
	db.Run(ctx, `DROP TABLE IF EXISTS reference`, `CREATE TABLE reference (LIKE entries INCLUDING ALL)`,
		`INSERT INTO reference TABLE entries`, `VACUUM (ANALYZE) reference`)
	round := 0
	copied := figure(func(ctx context.Context) float64 {
		round++
		all := batch(strconv.Itoa(firstIngested + 1000 + round))
		db.Checkpoint(ctx)
		begin := time.Now()
		db.Load(ctx, "reference", sample.EntryColumns(), len(all), func(i int) []any { return all[i].Row() })
		return ingestEntries / time.Since(begin).Seconds()
	})
	rounds(ctx, max(3, b.Rounds/2), slices.Concat(fresh, repeated, subjects{copied})...)
	return []report.Result{
		fresh.result("ingest", report.RowsRate, report.AtLeast(0.4), "COPY", copied),
		repeated.result("ingest_repeated", report.RowsRate, report.AtLeast(0.4), "COPY", copied),
	}
}

// ingestEight measures eight senders that fill one project at once, against one sender of the same entries.
func (b *Bench) ingestEight(ctx context.Context) []report.Result {
	by := func(e *entries, first, senders int) *contender {
		round := 0
		return e.posted(senders, summary{Stored: ingestEntries / senders}, func() (bodies [][]byte) {
			round++
			for part := range slices.Chunk(batch(strconv.Itoa(first+round)), ingestEntries/senders) {
				bodies = append(bodies, sample.NDJSON(part))
			}
			return bodies
		})
	}
	eight := b.each(func(v *version) *contender { return by(v.entries(ctx), firstShared, senders) })
	one := by(b.tree().entries(ctx), firstShared+1000, 1)
	rounds(ctx, max(3, b.Rounds/2), append(eight, one)...)
	return []report.Result{eight.result("ingest_eight", report.RowsRate, report.AtLeast(0.7), "one sender", one)}
}

// posted returns a contender that sends all of bodies at once and expects the answer want to each. The figure is rows
// a second. At the beginning of each round, posted calls bodies, which is not measured.
func (e *entries) posted(senders int, want summary, bodies func() [][]byte) *contender {
	return &contender{cpu: e.CPU, run: func(ctx context.Context) (float64, int64) {
		all := bodies()
		e.Database.Checkpoint(ctx) // otherwise a later checkpoint would write this round's pages while another contender runs
		took := must.Get(e.post(ctx, senders, want, all...))
		return ingestEntries / took.Seconds(), ingestEntries
	}}
}

// post sends each of bodies in its own request, all at once, and returns the time until the last answer. An answer
// other than want is an error.
func (e *entries) post(ctx context.Context, senders int, want summary, bodies ...[]byte) (time.Duration, error) {
	errs := make([]error, senders)
	var sending sync.WaitGroup
	begin := time.Now()
	for i, lines := range bodies {
		sending.Go(func() {
			got, err := postEntries(ctx, e.Service, lines)
			if err == nil && got != want {
				err = fmt.Errorf("ingest returned %+v, want %+v", got, want)
			}
			errs[i] = err
		})
	}
	sending.Wait()
	return time.Since(begin), errors.Join(errs...)
}

// summary is the part of ingest's answer that the benchmark reads: how many entries were stored, existed already, or
// were rejected.
type summary struct {
	Stored, Existing, Rejected int
}

func postEntries(ctx context.Context, svc *stage.Service, lines []byte) (summary, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, svc.InternalURL+"/internal/entries", bytes.NewReader(lines))
	if err != nil {
		return summary{}, err
	}
	req.Header.Set("X-Api-Key", stage.IngestKey)
	req.Header.Set("Content-Type", "application/x-ndjson")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return summary{}, err
	}
	defer resp.Body.Close()
	var s summary
	if resp.StatusCode != http.StatusOK {
		return s, fmt.Errorf("POST /internal/entries: %s", resp.Status)
	}
	return s, json.NewDecoder(resp.Body).Decode(&s)
}
