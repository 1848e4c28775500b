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

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lectern-dev/lectern/shared/wire"
)

// bare runs a server that answers lists and records by net/http, a connection pool and the service's SQL statements.
// The server checks no key, limits no rate, and neither logs, counts, compresses nor streams. An answer has no cursor.
// Rows go from Postgres' wire format to JSON without a struct, as in the service.
func bare(server *http.Server) error {
	h := &handler{buffers: sync.Pool{New: func() any { return new([]byte) }}}
	if err := json.Unmarshal([]byte(os.Getenv("STATEMENTS")), &h.statements); err != nil {
		return fmt.Errorf("STATEMENTS: %w", err)
	}
	cfg, err := pgxpool.ParseConfig(os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	cfg.MaxConns = max(8, 4*int32(runtime.GOMAXPROCS(0))) // as in the service
	if h.pool, err = pgxpool.NewWithConfig(context.Background(), cfg); err != nil {
		return err
	}
	defer h.pool.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ready", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /projects/{project}/entries", h.list)
	mux.HandleFunc("GET /projects/{project}/entries/{entry}", h.one)
	mux.HandleFunc("GET /projects/{project}/entries/{entry}/events", h.events)
	server.Handler = mux
	return server.ListenAndServe()
}

// rows is how many records a list reads: ten, and another record to know whether the list has more.
const rows = 11

type handler struct {
	pool       *pgxpool.Pool
	statements map[string]string // read-only
	buffers    sync.Pool
}

func infinity(m pgtype.InfinityModifier) pgtype.Timestamptz {
	return pgtype.Timestamptz{InfinityModifier: m, Valid: true}
}

func (h *handler) list(w http.ResponseWriter, r *http.Request) {
	h.answer(w, r, "list", array, r.PathValue("project"), infinity(pgtype.Infinity), "", infinity(pgtype.NegativeInfinity), "", rows)
}

func (h *handler) one(w http.ResponseWriter, r *http.Request) {
	h.answer(w, r, "one", object, r.PathValue("project"), r.PathValue("entry"))
}

func (h *handler) events(w http.ResponseWriter, r *http.Request) {
	h.answer(w, r, "events", array, r.PathValue("project"), r.PathValue("entry"),
		infinity(pgtype.Infinity), int64(0), infinity(pgtype.NegativeInfinity), int64(0), rows)
}

// answer runs the named statement with args, and writes the rows as encode encodes them. A fault of the database is
// status 500.
func (h *handler) answer(w http.ResponseWriter, r *http.Request, name string, encode func([]byte, pgx.Rows) []byte, args ...any) {
	buffer := h.buffers.Get().(*[]byte)
	defer h.buffers.Put(buffer)
	found, err := h.pool.Query(r.Context(), h.statements[name], args...)
	if err == nil {
		*buffer = encode((*buffer)[:0], found)
		found.Close()
		err = found.Err()
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header()["Content-Type"] = []string{"application/json"}
	w.Header()["Content-Length"] = []string{strconv.Itoa(len(*buffer))}
	_, _ = w.Write(*buffer)
}

func object(dst []byte, found pgx.Rows) []byte {
	for found.Next() {
		dst = append(members(append(dst, '{'), found), '}')
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
		dst = append(members(append(dst, '{'), found), '}')
	}
	return append(dst, ']')
}

// epoch is the time that Postgres' binary format stores as 0, 2000-01-01 UTC, in Unix microseconds.
const epoch = 946684800_000000

// members appends the columns of the current row to dst as members of a JSON object, without braces.
func members(dst []byte, found pgx.Rows) []byte {
	columns, values := found.FieldDescriptions(), found.RawValues()
	for i := range values {
		if i > 0 {
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
