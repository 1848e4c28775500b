// Command bare is the reference that the service is measured against, in addition to Postgres: net/http, a pool and
// the same statements. It checks no key, limits no rate, logs, counts, compresses and streams nothing. It sets two
// headers and gives no cursor. Its rows go from Postgres' wire to JSON without a struct, as the service's do.
package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lectern-dev/lectern/shared/wire"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "bare:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var statements map[string]string
	if err := json.Unmarshal([]byte(os.Getenv("STATEMENTS")), &statements); err != nil {
		return fmt.Errorf("STATEMENTS: %w", err)
	}
	cfg, err := pgxpool.ParseConfig(os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	cfg.MaxConns = max(8, 4*int32(runtime.GOMAXPROCS(0))) // as in the service
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer pool.Close()
	b := &bare{pool: pool, statements: statements, buffers: sync.Pool{New: func() any { return new([]byte) }}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ready", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /projects/{project}/entries", b.list)
	mux.HandleFunc("GET /projects/{project}/entries/{entry}", b.one)
	mux.HandleFunc("GET /projects/{project}/entries/{entry}/events", b.events)
	mux.HandleFunc("GET /projects/{project}/entries-page-views", b.pageViews)
	mux.HandleFunc("POST /api/projects/region", region)
	server := &http.Server{
		Addr: os.Getenv("LISTEN"), Handler: mux,
		ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute, // no server should run without these
	}
	return server.ListenAndServe()
}

// rows is how many records a list reads: ten, and one more to know whether there are more.
const rows = 11

// viewRows bounds the page views of a list, as the service does.
const viewRows = 5000

type bare struct {
	pool       *pgxpool.Pool
	statements map[string]string // read-only
	buffers    sync.Pool
}

func infinity(m pgtype.InfinityModifier) pgtype.Timestamptz {
	return pgtype.Timestamptz{InfinityModifier: m, Valid: true}
}

func (b *bare) list(w http.ResponseWriter, r *http.Request) {
	b.answer(w, r, "list", array, r.PathValue("project"), infinity(pgtype.Infinity), "", infinity(pgtype.NegativeInfinity), "", rows)
}

func (b *bare) one(w http.ResponseWriter, r *http.Request) {
	b.answer(w, r, "one", object, r.PathValue("project"), r.PathValue("entry"))
}

func (b *bare) events(w http.ResponseWriter, r *http.Request) {
	b.answer(w, r, "events", array, r.PathValue("project"), r.PathValue("entry"),
		infinity(pgtype.Infinity), int64(0), infinity(pgtype.NegativeInfinity), int64(0), rows)
}

func (b *bare) pageViews(w http.ResponseWriter, r *http.Request) {
	b.answer(w, r, "page_views", nested, r.PathValue("project"),
		infinity(pgtype.Infinity), "", infinity(pgtype.NegativeInfinity), "", rows, viewRows)
}

// region reads a look-up and returns an answer that is always the same.
func region(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		ProjectID string `json:"projectId"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.ProjectID == "" {
		http.Error(w, "no project", http.StatusBadRequest)
		return
	}
	h := w.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{strconv.Itoa(len(regionAnswer))}
	_, _ = w.Write([]byte(regionAnswer))
}

const regionAnswer = `{"region":"America/Los_Angeles","offsetInMinutes":-480}` + "\n"

// answer runs a statement and writes its rows, encoded by encode.
func (b *bare) answer(w http.ResponseWriter, r *http.Request, name string, encode func([]byte, pgx.Rows) []byte, args ...any) {
	buffer := b.buffers.Get().(*[]byte)
	defer b.buffers.Put(buffer)
	found, err := b.pool.Query(r.Context(), b.statements[name], args...)
	if err == nil {
		*buffer = encode((*buffer)[:0], found)
		found.Close()
		err = found.Err()
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{strconv.Itoa(len(*buffer))}
	_, _ = w.Write(*buffer)
}

func object(dst []byte, found pgx.Rows) []byte {
	for found.Next() {
		dst = append(members(append(dst, '{'), found, 0, len(found.RawValues())), '}')
	}
	return dst
}

func array(dst []byte, found pgx.Rows) []byte {
	dst = append(dst, '[')
	for n := 0; found.Next(); n++ {
		if n == rows-1 {
			continue
		}
		if n > 0 {
			dst = append(dst, ',')
		}
		dst = append(members(append(dst, '{'), found, 0, len(found.RawValues())), '}')
	}
	return append(dst, ']')
}

// entryColumns is how many columns of a page view's row are its entry's.
const entryColumns = 6

// nested returns each entry once, with the page views of all its rows.
func nested(dst []byte, found pgx.Rows) []byte {
	dst = append(dst, '[')
	var id []byte
	entries := 0
	for found.Next() {
		values := found.RawValues()
		if string(values[0]) != string(id) {
			id = append(id[:0], values[0]...)
			if entries++; entries == rows {
				continue
			}
			if entries > 1 {
				dst = append(dst, "]},"...)
			}
			dst = append(members(append(dst, '{'), found, 0, entryColumns), `,"page_views":[`...)
		} else if entries < rows {
			dst = append(dst, ',')
		}
		if entries < rows {
			dst = append(members(append(dst, '{'), found, entryColumns, len(values)), '}')
		}
	}
	if entries > 0 {
		dst = append(dst, "]}"...)
	}
	return append(dst, ']')
}

// epoch is the zero of timestamptz, 2000-01-01 UTC, in Unix microseconds.
const epoch = 946684800_000000

// members appends the columns from first up to end of the row as members of an object.
func members(dst []byte, found pgx.Rows, first, end int) []byte {
	columns, values := found.FieldDescriptions(), found.RawValues()
	for i := first; i < end; i++ {
		if i > first {
			dst = append(dst, ',')
		}
		dst = append(dst, '"')
		dst = append(dst, columns[i].Name...)
		dst = append(dst, `":`...)
		switch {
		case values[i] == nil:
			dst = append(dst, "null"...)
		case columns[i].DataTypeOID == pgtype.TimestamptzOID:
			dst = wire.AppendTime(dst, int64(binary.BigEndian.Uint64(values[i]))+epoch)
		case columns[i].DataTypeOID == pgtype.Int8OID:
			dst = strconv.AppendInt(dst, int64(binary.BigEndian.Uint64(values[i])), 10)
		default:
			dst = wire.AppendText(dst, values[i])
		}
	}
	return dst
}
