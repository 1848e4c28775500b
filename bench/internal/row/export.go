package row

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/lectern-dev/lectern/bench/internal/report"
	"github.com/lectern-dev/lectern/bench/internal/stage"
)

// answer is the result of a GET.
type answer struct {
	rows   int // lines of the body
	bytes  int64
	cursor string
	first  time.Duration // until the first byte of the body
	whole  time.Duration
}

// get reads a list to its end and discards it.
func get(ctx context.Context, url, key string) (answer, error) {
	return read64(ctx, url, key, "", true)
}

// getLines reads a list as [get] does, one record a line.
func getLines(ctx context.Context, url, key string) (answer, error) {
	return read64(ctx, url, key, "application/x-ndjson", true)
}

// getFirst reads the first bytes of a list and no more.
func getFirst(ctx context.Context, url, key string) (answer, error) {
	return read64(ctx, url, key, "", false)
}

// read64 reads the body in pieces of 64 KiB.
func read64(ctx context.Context, url, key, accept string, all bool) (answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the body's connection where it is not read to its end
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
	resp, err := http.DefaultClient.Do(req)
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
		a.bytes += int64(n)
		a.rows += bytes.Count(buffer[:n], []byte("\n"))
		if err == io.EOF || n > 0 && !all {
			a.whole = time.Since(begin)
			return a, nil
		}
		if err != nil {
			return a, fmt.Errorf("GET %s: after %d bytes: %w", req.URL.Path, a.bytes, err)
		}
	}
}

// all requests every entry of a project at once.
func all(e *stage.Service, project string) string {
	return e.URL + "/projects/" + project + "/entries?limit=1000000"
}

// exported reads a whole project, which has the given number of entries.
func exported(ctx context.Context, e *stage.Service, project, key string, rows int) (answer, error) {
	a, err := get(ctx, all(e, project), key)
	if err == nil && a.rows != rows {
		err = fmt.Errorf("an export of %d entries has %d", rows, a.rows)
	}
	return a, err
}

// export compares an export of a project with Postgres' own.
func (b *Bench) export(ctx context.Context) ([]report.Result, error) {
	e, err := b.entries(ctx)
	if err != nil {
		return nil, err
	}
	return b.exportOf(ctx, e, "export")
}

// exportOf measures an export of e's big project under a row's name.
func (b *Bench) exportOf(ctx context.Context, e *entries, name string) ([]report.Result, error) {
	query := `SELECT row_to_json(e) FROM (
		SELECT entry_id, group_id, project_id, embeddable_id, contact_id, created_at, updated_at, entry_data
		FROM entries WHERE project_id = '` + e.big + `' ORDER BY updated_at DESC, entry_id DESC) e`
	v, err := rounds(ctx, max(b.Rounds, 7),
		func(ctx context.Context) (float64, error) {
			a, err := exported(ctx, e.Service, e.big, e.keys[e.big], e.bigEntries)
			return float64(a.rows) / a.whole.Seconds(), err
		},
		func(ctx context.Context) (float64, error) {
			begin := time.Now()
			n, err := e.Database.Dump(ctx, query)
			if err == nil && n != int64(e.bigEntries) {
				err = fmt.Errorf("COPY of %d entries gave %d", e.bigEntries, n)
			}
			return float64(n) / time.Since(begin).Seconds(), err
		})
	if err != nil {
		return nil, err
	}
	return []report.Result{report.Ratios(name, report.RowsRate, report.AtLeast(0.7), v[0], "COPY (row_to_json)", v[1])}, nil
}

// firstByte measures the time to the first byte of an export in three situations:
//   - after VACUUM and a complete export;
//   - after an export that was broken off at its first byte, which the database has yet to notice;
//   - after an update of a tenth of the rows.
func (b *Bench) firstByte(ctx context.Context) ([]report.Result, error) {
	e, err := b.entries(ctx)
	if err != nil {
		return nil, err
	}
	first := func(a answer, err error) (float64, error) { return milliseconds(a.first), err }
	whole := func(ctx context.Context) (float64, error) {
		return first(exported(ctx, e.Service, bigProject, e.keys[bigProject], bigEntries))
	}
	brokenOff := func(ctx context.Context) (float64, error) {
		return first(getFirst(ctx, all(e.Service, bigProject), e.keys[bigProject]))
	}
	measure := func(each contender) ([]float64, error) {
		v, err := rounds(ctx, 2*b.Rounds+1, each)
		if err != nil {
			return nil, err
		}
		return v[0], nil
	}
	if err := e.Database.Run(ctx, "VACUUM (ANALYZE) entries"); err != nil {
		return nil, err
	}
	vacuumed, err := measure(whole)
	if err != nil {
		return nil, err
	}
	left, err := measure(brokenOff)
	if err != nil {
		return nil, err
	}
	err = e.Database.Run(ctx, `UPDATE entries SET updated_at = updated_at + interval '1 millisecond'
		WHERE project_id = '`+bigProject+`' AND entry_id::bigint % 10 = 0`)
	if err != nil {
		return nil, err
	}
	updated, err := measure(whole)
	if err != nil {
		return nil, err
	}
	return []report.Result{
		report.Values("export_first_byte", report.Milliseconds, report.AtMost(20), vacuumed),
		report.Values("export_first_byte_left", report.Milliseconds, report.Floor{}, left),
		report.Values("export_first_byte_updated", report.Milliseconds, report.Floor{}, updated),
	}, e.Database.Run(ctx, "VACUUM (ANALYZE) entries")
}

// exportMemory measures the memory of a fresh process for an export.
func (b *Bench) exportMemory(ctx context.Context) ([]report.Result, error) {
	e, err := b.entries(ctx)
	if err != nil {
		return nil, err
	}
	return b.peakMemory(ctx, "export_memory", stage.Definition{Name: "entries"}, func(ctx context.Context, svc *stage.Service) error {
		_, err := exported(ctx, svc, bigProject, e.keys[bigProject], bigEntries)
		return err
	})
}

// exportMemoryMillion does the same for a million rows.
func (b *Bench) exportMemoryMillion(ctx context.Context) ([]report.Result, error) {
	g, err := b.grown(ctx)
	if err != nil {
		return nil, err
	}
	d := stage.Definition{Name: "entries", Database: "entries_grown"}
	return b.peakMemory(ctx, "export_memory_1m", d, func(ctx context.Context, svc *stage.Service) error {
		_, err := exported(ctx, svc, hugeProject, g.keys[hugeProject], hugeEntries)
		return err
	})
}

// peakMemory measures the peak memory of a fresh process.
func (b *Bench) peakMemory(ctx context.Context, name string, d stage.Definition, do func(context.Context, *stage.Service) error) ([]report.Result, error) {
	v, err := rounds(ctx, 3, func(ctx context.Context) (float64, error) {
		svc, err := b.stage.Start(ctx, d)
		if err != nil {
			return 0, err
		}
		if err := do(ctx, svc); err != nil {
			return 0, err
		}
		_, peak, err := svc.Memory()
		if err != nil {
			return 0, err
		}
		return mebibytes(peak), svc.Stop()
	})
	if err != nil {
		return nil, err
	}
	return []report.Result{report.Values(name, report.Mebibytes, report.AtMost(64), v[0])}, nil
}
