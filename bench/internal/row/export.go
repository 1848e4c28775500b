package row

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/lectern-dev/lectern/bench/internal/must"
	"github.com/lectern-dev/lectern/bench/internal/report"
	"github.com/lectern-dev/lectern/bench/internal/stage"
)

// answer is the measured result of a GET of a list: the number of rows, the next cursor, and times.
type answer struct {
	rows   int // lines of the body
	cursor string
	first  time.Duration // until the first byte of the body
	whole  time.Duration
}

// ndjson is the media type of newline-delimited JSON: one record a line.
const ndjson = "application/x-ndjson"

// get requests a list by client, reads the body to its end in pieces of 64 KiB, and discards the body. accept is the media
// type of the header Accept; if it is empty, get sends no such header.
func get(ctx context.Context, client *http.Client, url, key, accept string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("X-Api-Key", key)
	req.Header.Set("Accept-Encoding", "identity")
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	begin := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return answer{}, fmt.Errorf("GET %s: %s", req.URL.Path, resp.Status)
	}
	a := answer{cursor: resp.Header.Get("X-Next-Cursor")}
	buffer := make([]byte, 64<<10)
	for {
		n, err := resp.Body.Read(buffer)
		if n > 0 && a.first == 0 {
			a.first = time.Since(begin)
		}
		a.rows += bytes.Count(buffer[:n], []byte("\n"))
		if err == io.EOF {
			a.whole = time.Since(begin)
			return a, nil
		}
		if err != nil {
			return a, fmt.Errorf("GET %s: %w", req.URL.Path, err)
		}
	}
}

// exported reads a whole project from svc and returns the measured answer. exported panics by package must if the
// answer has another number of entries than rows.
func (e *entries) exported(ctx context.Context, svc *stage.Service, project string, rows int) answer {
	a := must.Get(get(ctx, http.DefaultClient, svc.URL+"/projects/"+project+"/entries?limit=1000000", e.keys[project], ""))
	if a.rows != rows {
		must.Do(fmt.Errorf("an export of %d entries has %d", rows, a.rows))
	}
	return a
}

// exports returns contenders that export a project of 100,000 entries, one for each version. figure makes the measured
// value from the answer.
func (b *Bench) exports(ctx context.Context, figure func(answer) float64) subjects {
	return b.each(func(v *version) *contender {
		e := v.entries(ctx)
		return &contender{cpu: e.CPU, run: func(ctx context.Context) (float64, int64) {
			a := e.exported(ctx, e.Service, bigProject, bigEntries)
			return figure(a), int64(a.rows)
		}}
	})
}

// export measures the rows a second of an export of 100,000 entries, against Postgres' COPY of the same rows.
func (b *Bench) export(ctx context.Context) []report.Result {
	exports := b.exports(ctx, func(a answer) float64 { return float64(a.rows) / a.whole.Seconds() })
	copied := b.tree().entries(ctx).copied(bigEntries, `SELECT row_to_json(e) FROM (
		SELECT entry_id, group_id, project_id, embeddable_id, contact_id, created_at, updated_at, entry_data
		FROM entries WHERE project_id = '`+bigProject+`' ORDER BY updated_at DESC, entry_id DESC) e`)
	rounds(ctx, max(b.Rounds, 7), append(exports, copied)...)
	return []report.Result{exports.result("export", report.RowsRate, report.AtLeast(0.7), "COPY (row_to_json)", copied)}
}

// copied returns a contender that runs the queries by Postgres' COPY. The figure is rows a second. rows is the number
// of rows that the queries return together.
func (e *entries) copied(rows int64, queries ...string) *contender {
	return figure(func(ctx context.Context) float64 {
		begin, copied := time.Now(), int64(0)
		for _, query := range queries {
			copied += e.Database.Dump(ctx, query)
		}
		if copied != rows {
			must.Do(fmt.Errorf("COPY of %d rows gave %d", rows, copied))
		}
		return float64(rows) / time.Since(begin).Seconds()
	})
}

// firstByte measures the milliseconds until the first byte of an export of 100,000 entries. VACUUM runs before the
// rounds.
func (b *Bench) firstByte(ctx context.Context) []report.Result {
	exports := b.exports(ctx, func(a answer) float64 { return milliseconds(a.first) })
	for _, v := range b.versions {
		v.entries(ctx).Database.Run(ctx, "VACUUM (ANALYZE) entries")
	}
	rounds(ctx, 2*b.Rounds+1, exports...)
	return []report.Result{exports.result("export_first_byte", report.Milliseconds, report.AtMost(20), "", nil)}
}

// exportMemory measures the peak memory of a fresh process that exports a million rows.
func (b *Bench) exportMemory(ctx context.Context) []report.Result {
	for _, v := range b.versions {
		v.grown(ctx)
	}
	return b.memory(ctx, "export_memory_1m", grownIn, func(v *version, svc *stage.Service) {
		v.grown(ctx).exported(ctx, svc, hugeProject, hugeEntries)
	})
}
