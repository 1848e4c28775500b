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

	"github.com/lectern-dev/lectern/bench/internal/report"
	"github.com/lectern-dev/lectern/bench/internal/sample"
	"github.com/lectern-dev/lectern/bench/internal/stage"
)

const (
	// firstIngested is the id before the first round's project.
	firstIngested = 7_500_000_000
	ingestEntries = 100_000
	// firstShared is the id before the first project that several senders fill, and senders the number of them.
	firstShared = 7_800_000_000
	senders     = 8
)

// ingest measures the ingest of entries, first new ones and then the same again. It compares it with COPY of the same
// rows into a table with the same columns and indexes.
func (b *Bench) ingest(ctx context.Context) ([]report.Result, error) {
	e, err := b.entries(ctx)
	if err != nil {
		return nil, err
	}
	v, err := b.ingestRounds(ctx, e, firstIngested, 1, ingestEntries)
	if err != nil {
		return nil, err
	}
	return []report.Result{
		report.Ratios("ingest", report.RowsRate, report.AtLeast(0.4), v.fresh, "COPY", v.copied),
		report.Ratios("ingest_repeated", report.RowsRate, report.AtLeast(0.4), v.repeated, "COPY", v.copied),
	}, nil
}

// ingestEight compares eight senders to one project at once with one sender of the same entries.
func (b *Bench) ingestEight(ctx context.Context) ([]report.Result, error) {
	e, err := b.entries(ctx)
	if err != nil {
		return nil, err
	}
	round := 0
	by := func(senders int) contender {
		return func(ctx context.Context) (float64, error) {
			round++
			all := make([]sample.Entry, ingestEntries)
			for i := range all {
				all[i] = sample.EntryOf(strconv.Itoa(firstShared+round), 1+i, len(all))
			}
			bodies := make([][]byte, 0, senders)
			for part := range slices.Chunk(all, len(all)/senders) {
				bodies = append(bodies, sample.NDJSON(part))
			}
			if err := e.Database.Checkpoint(ctx); err != nil {
				return 0, err
			}
			begin := time.Now()
			errs := make([]error, senders)
			var sending sync.WaitGroup
			for i, lines := range bodies {
				sending.Go(func() {
					got, err := postEntries(ctx, e.Service, lines)
					if want := (summary{Stored: len(all) / senders}); err == nil && got != want {
						err = fmt.Errorf("ingest of a part said %+v, want %+v", got, want)
					}
					errs[i] = err
				})
			}
			sending.Wait()
			return float64(len(all)) / time.Since(begin).Seconds(), errors.Join(errs...)
		}
	}
	v, err := rounds(ctx, max(3, b.Rounds/2), by(senders), by(1))
	if err != nil {
		return nil, err
	}
	return []report.Result{report.Ratios("ingest_eight", report.RowsRate, report.AtLeast(0.7), v[0], "one sender", v[1])}, nil
}

// distributeReference distributes COPY's table over the machines that have entries.
const distributeReference = `
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
        PERFORM create_distributed_table('reference', 'project_id', colocate_with => 'entries');
    END IF;
END $$`

// ingested has the rows a second of each round.
type ingested struct{ fresh, repeated, copied []float64 }

// ingestRounds sends entries of the given number of projects in turn to e, all in one body. The projects have ids
// after before; each round has its own.
func (b *Bench) ingestRounds(ctx context.Context, e *entries, before, projects, count int) (v ingested, err error) {
	err = e.Database.Run(ctx, `DROP TABLE IF EXISTS reference`, `CREATE TABLE reference (LIKE entries INCLUDING ALL)`,
		distributeReference, `INSERT INTO reference TABLE entries`, `VACUUM (ANALYZE) reference`)
	if err != nil {
		return v, err
	}
	for round := range max(3, b.Rounds/2) {
		// Otherwise the next checkpoint would write this round's pages during another's turn.
		if err := e.Database.Checkpoint(ctx); err != nil {
			return v, err
		}
		all := make([]sample.Entry, count)
		for i := range all {
			project := strconv.Itoa(before + 1 + round*projects + i%projects)
			all[i] = sample.EntryOf(project, 1+i/projects, count/projects)
		}
		text, lines := string(sample.CopyText(all)), sample.NDJSON(all)
		copyIn := func() error {
			begin := time.Now()
			n, err := e.Database.LoadText(ctx, "reference", sample.EntryColumns(), text)
			v.copied = append(v.copied, float64(n)/time.Since(begin).Seconds())
			return err
		}
		post := func(rates *[]float64, want summary) error {
			begin := time.Now()
			got, err := postEntries(ctx, e.Service, lines)
			if err == nil && got != want {
				err = fmt.Errorf("ingest of %d entries said %+v, want %+v", count, got, want)
			}
			*rates = append(*rates, float64(count)/time.Since(begin).Seconds())
			return err
		}
		steps := []func() error{
			copyIn,
			func() error { return post(&v.fresh, summary{Stored: count}) },
			func() error { return post(&v.repeated, summary{Existing: count}) },
		}
		if round%2 == 1 {
			steps = append(steps[1:], steps[0])
		}
		for _, step := range steps {
			if err := step(); err != nil {
				return v, err
			}
		}
	}
	return v, nil
}

// summary is the part of ingest's answer that the benchmark reads.
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
