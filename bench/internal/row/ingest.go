package row

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/lectern-dev/lectern/bench/internal/report"
	"github.com/lectern-dev/lectern/bench/internal/sample"
	"github.com/lectern-dev/lectern/bench/internal/stage"
)

const (
	// firstIngested is the id before that of the first round's project.
	firstIngested = 7_500_000_000
	ingestEntries = 100_000
)

// ingest measures taking entries in, new ones and then the same again, beside COPY of the same rows
// into a table of the same columns, rows and indexes.
func (b *Bench) ingest(ctx context.Context) ([]report.Result, error) {
	e, err := b.entries(ctx)
	if err != nil {
		return nil, err
	}
	err = e.Database.Run(ctx, `DROP TABLE IF EXISTS reference`, `CREATE TABLE reference (LIKE entries INCLUDING ALL)`,
		`INSERT INTO reference TABLE entries`, `VACUUM (ANALYZE) reference`)
	if err != nil {
		return nil, err
	}
	var fresh, repeated, copied []float64
	for round := range max(3, b.Rounds/2) {
		// The next checkpoint would write what this round dirties during another's turn.
		if err := b.stage.Checkpoint(ctx); err != nil {
			return nil, err
		}
		project := strconv.Itoa(firstIngested + 1 + round)
		all := make([]sample.Entry, ingestEntries)
		for i := range all {
			all[i] = sample.EntryOf(project, 1+i, ingestEntries)
		}
		text, lines := string(sample.CopyText(all)), sample.NDJSON(all)
		copyIn := func() error {
			begin := time.Now()
			n, err := e.Database.LoadText(ctx, "reference", sample.EntryColumns(), text)
			copied = append(copied, float64(n)/time.Since(begin).Seconds())
			return err
		}
		post := func(rates *[]float64, want summary) error {
			begin := time.Now()
			got, err := postEntries(ctx, e.Service, lines)
			if err == nil && got != want {
				err = fmt.Errorf("ingest of %d entries said %+v, want %+v", ingestEntries, got, want)
			}
			*rates = append(*rates, ingestEntries/time.Since(begin).Seconds())
			return err
		}
		steps := []func() error{
			copyIn,
			func() error { return post(&fresh, summary{Stored: ingestEntries}) },
			func() error { return post(&repeated, summary{Existing: ingestEntries}) },
		}
		if round%2 == 1 {
			steps = append(steps[1:], steps[0])
		}
		for _, step := range steps {
			if err := step(); err != nil {
				return nil, err
			}
		}
	}
	return []report.Result{
		report.Ratios("ingest", report.RowsRate, report.AtLeast(0.4), fresh, "COPY", copied),
		report.Ratios("ingest_repeated", report.RowsRate, report.AtLeast(0.4), repeated, "COPY", copied),
	}, nil
}

// summary is what the ingest answers, as far as it is looked at.
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
