package store

import (
	"bytes"
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/postgres/lists"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/wire"

	"github.com/lectern-dev/lectern/services/entries/internal/entry"
)

// viewColumns has the columns of a page view. The constants below are the indexes of these columns.
const viewColumns = `"timestamp", arrival, page_id, page_key, page_index, url`

const (
	columnViewTimestamp = iota
	columnViewArrival
	columnViewPageID
	columnViewPageKey
	columnViewPageIndex
	columnViewURL
)

// firstViewColumn is the index of a page view's first column in a row that begins with entryHeadColumns.
const firstViewColumn = columnUpdatedAt + 1

// maxViewRows bounds the rows that one statement reads, even if an entry has more page views.
const maxViewRows = 5000

// pageViewList returns the statement that reads a chunk of entries with their page views. entries is the statement
// that reads the entries alone, and its last parameter is their limit. The result has a row for each page view, and
// one row for an entry without page views. The last parameter is the limit of rows. The subquery also has that limit,
// so that Postgres does not sort all page views of an entry that has very many.
func pageViewList(entries lists.Statements, descending bool) string {
	direction := ""
	if descending {
		direction = " DESC"
	}
	limit := "$" + strconv.Itoa(entries.Parameters+1)
	return `
SELECT e.entry_id, e.group_id, e.embeddable_id, e.contact_id, e.created_at, e.updated_at,
       v."timestamp", v.arrival, v.page_id, v.page_key, v.page_index, v.url
FROM (` + entries.Chunk + `) e
LEFT JOIN LATERAL (
    SELECT v."timestamp", v.arrival, v.page_id, v.page_key, v.page_index, v.url
    FROM events v
    WHERE v.project_id = $1 AND v.entry_id = e.entry_id AND v.event_type = 'flowpage.viewed'
    ORDER BY v."timestamp", v.arrival LIMIT ` + limit + `
) v ON true
ORDER BY e.updated_at` + direction + `, e.entry_id` + direction + `, v."timestamp", v.arrival LIMIT ` + limit
}

// furtherViews reads the page views of one entry after the position of a page view.
const furtherViews = `
SELECT ` + viewColumns + `
FROM events
WHERE project_id = $1 AND entry_id = $2 AND event_type = 'flowpage.viewed'
  AND ("timestamp", arrival) > ($3, $4)
ORDER BY "timestamp", arrival LIMIT $5`

// viewSource reads entries with their page views, with one statement for each chunk. If the page views of an entry do
// not fit, a separate statement continues the entry, in the next chunk if necessary.
type viewSource struct {
	*lists.Query // reads the positions of the entries
	sql          string
	project      string
	projectText  []byte // as a JSON string
	urls         bool

	// The entry whose record has begun but not ended, and the position of its last page view.
	id      []byte // nil: none
	views   int
	time    int64
	arrival int64
}

func newViewSource(pool pgdb.Querier, l entry.List) *viewSource {
	entries := entryQuery(pool, entryHeadColumns, l)
	return &viewSource{
		Query: entries, sql: pageViewList(entries.SQL, l.Descending),
		project: l.ProjectID, projectText: wire.AppendText(nil, []byte(l.ProjectID)), urls: l.IncludeURLs,
	}
}

// Chunk reads the next entries with their page views into sink. Chunk first completes the entry that the chunk before
// has left open.
func (s *viewSource) Chunk(ctx context.Context, sink *lists.Sink, after, end lists.Position, limit int) error {
	for s.id != nil {
		if sink.Full() {
			sink.Cut()
			return nil
		}
		if err := s.further(ctx, sink); err != nil {
			return err
		}
	}
	return s.entries(ctx, sink, after, end, limit)
}

// entries reads the entries after a position, each with its first page views.
func (s *viewSource) entries(ctx context.Context, sink *lists.Sink, after, end lists.Position, limit int) error {
	read := 0
	err := s.Pool.Query(ctx, func(rows pgx.Rows) error {
		row := pgdb.NewRaw(rows)
		var skipped []byte
		for read = 0; rows.Next(); read++ {
			row.Next(rows)
			key, id, _ := s.Key(&row)
			if skipped != nil && bytes.Equal(id, skipped) {
				continue
			}
			skipped = nil
			if s.id == nil || !bytes.Equal(id, s.id) {
				s.end(sink)
				switch sink.Begin(key, id) {
				case lists.Stop:
					return nil
				case lists.Skip:
					skipped = bytes.Clone(id)
					continue
				}
				s.begin(sink, id, &row)
			}
			if !row.Null(firstViewColumn + columnViewTimestamp) {
				s.view(sink, &row, firstViewColumn)
			}
		}
		switch {
		case rows.Err() != nil:
		case read == maxViewRows:
			sink.Cut() // the last entry can have more page views
		default:
			s.end(sink)
		}
		return nil
	}, s.sql, s.Arguments(after, end, limit, maxViewRows)...)
	if read > 0 && lists.Retryable(err) {
		sink.Cut() // the next chunk continues on another connection
		return nil
	}
	return err
}

// further reads more page views of the open entry, and ends its record if there are no more.
func (s *viewSource) further(ctx context.Context, sink *lists.Sink) error {
	read := 0
	err := s.Pool.Query(ctx, func(rows pgx.Rows) error {
		row := pgdb.NewRaw(rows)
		for read = 0; rows.Next(); read++ {
			row.Next(rows)
			s.view(sink, &row, 0)
		}
		if read < maxViewRows && rows.Err() == nil {
			s.end(sink)
		}
		return nil
	}, furtherViews, s.project, string(s.id), pgdb.Timestamp(s.time), s.arrival, maxViewRows)
	if read > 0 && lists.Retryable(err) {
		return nil // the caller calls again from the new position
	}
	return err
}

// begin begins the record of an entry: it appends the first part of an EntryPageViews of the API to sink.
func (s *viewSource) begin(sink *lists.Sink, id []byte, row *pgdb.Raw) {
	s.id = bytes.Clone(id)
	s.views = 0
	sink.SetBytes(append(appendEntryHead(sink.Bytes(), s.projectText, row), `,"page_views":[`...))
}

// view appends a page view to the open record, as a PageView of the API. first is the index of the page view's first
// column.
func (s *viewSource) view(sink *lists.Sink, row *pgdb.Raw, first int) {
	dst := sink.Bytes()
	if s.views > 0 {
		dst = append(dst, ',')
	}
	s.views++
	s.time, s.arrival = row.Micros(first+columnViewTimestamp), row.Int(first+columnViewArrival)
	dst = append(dst, `{"timestamp":`...)
	dst = wire.AppendTime(dst, s.time)
	dst = append(dst, `,"page_id":`...)
	dst = wire.AppendText(dst, row.Text(first+columnViewPageID))
	dst = append(dst, `,"page_key":`...)
	dst = wire.AppendText(dst, row.Text(first+columnViewPageKey))
	dst = append(dst, `,"page_index":`...)
	dst = row.AppendInt(dst, first+columnViewPageIndex)
	if s.urls {
		dst = append(dst, `,"url":`...)
		dst = wire.AppendNullableText(dst, row.Text(first+columnViewURL))
	}
	sink.SetBytes(append(dst, '}'))
}

// end ends the open record, if there is one.
func (s *viewSource) end(sink *lists.Sink) {
	if s.id == nil {
		return
	}
	s.id = nil
	sink.SetBytes(append(sink.Bytes(), "]}"...))
	sink.End()
}
