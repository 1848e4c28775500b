package store

import (
	"bytes"
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/pagelist"
	"github.com/lectern-dev/lectern/shared/pgdb"
	"github.com/lectern-dev/lectern/shared/pgrecord"

	"github.com/lectern-dev/lectern/services/entries/internal/entry"
)

// mostViewRows bounds the rows of one statement for page views, however many an entry has.
const mostViewRows = 5000

// viewSource reads entries with their page views, one statement a chunk. An entry whose page views do
// not fit is continued by a statement of its own, in the next chunk if need be.
type viewSource struct {
	*pgrecord.List // settles
	sql            string
	row            entryRow
	project        string
	urls           bool

	// The entry whose record has begun and not ended, if any, and the place of its last page view.
	id      []byte
	views   int
	time    int64
	arrival int64
}

func newViewSource(pool pgdb.Querier, l entry.List) *viewSource {
	list := newEntryList(pool, l)
	return &viewSource{
		List: list, sql: orderOf(l).pageViews, row: list.Row.(entryRow), project: l.ProjectID, urls: l.IncludeURLs,
	}
}

// Chunk reads entries with their page views.
func (s *viewSource) Chunk(ctx context.Context, sink *pagelist.Sink, after, end pagelist.Position, limit int) error {
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

// entries reads the entries behind after, each with the first of its page views.
func (s *viewSource) entries(ctx context.Context, sink *pagelist.Sink, after, end pagelist.Position, limit int) error {
	read := 0
	err := s.Pool.Query(ctx, func(rows pgx.Rows) error {
		raw := pgdb.NewRaw(rows)
		var skipped []byte
		for read = 0; rows.Next(); read++ {
			raw.Next(rows)
			id := raw.Text(entry.ColumnEntryID)
			if skipped != nil && bytes.Equal(id, skipped) {
				continue
			}
			skipped = nil
			if s.id == nil || !bytes.Equal(id, s.id) {
				s.end(sink)
				switch sink.Begin(raw.Micros(s.row.key), id) {
				case pagelist.Stop:
					return nil
				case pagelist.Skip:
					skipped = bytes.Clone(id)
					continue
				}
				s.begin(sink, &raw)
			}
			if !raw.Null(entry.ColumnViewTimestamp) {
				s.view(sink, &raw, entry.ColumnViewTimestamp)
			}
		}
		switch {
		case rows.Err() != nil:
		case read == mostViewRows:
			sink.Cut() // and the last entry's page views may go on
		default:
			s.end(sink)
		}
		return nil
	}, s.sql, s.Arguments(after, end, limit, mostViewRows)...)
	if read > 0 && pgrecord.Passes(err) {
		sink.Cut() // what broke off goes on with the next chunk, on another connection
		return nil
	}
	return err
}

// further reads more page views of the entry whose record is open, and ends it when there are no more.
func (s *viewSource) further(ctx context.Context, sink *pagelist.Sink) error {
	read := 0
	err := s.Pool.Query(ctx, func(rows pgx.Rows) error {
		raw := pgdb.NewRaw(rows)
		for read = 0; rows.Next(); read++ {
			raw.Next(rows)
			s.view(sink, &raw, 0)
		}
		if read < mostViewRows && rows.Err() == nil {
			s.end(sink)
		}
		return nil
	}, furtherViews, s.project, string(s.id), pgdb.Timestamp(s.time), s.arrival, mostViewRows)
	if read > 0 && pgrecord.Passes(err) {
		return nil // asked for again from where it stands
	}
	return err
}

func (s *viewSource) begin(sink *pagelist.Sink, raw *pgdb.Raw) {
	s.id = append([]byte{}, raw.Text(entry.ColumnEntryID)...)
	s.views = 0
	sink.SetBytes(entry.AppendViewsHead(sink.Bytes(), s.row.project, raw))
}

// view appends the page view whose columns begin at first.
func (s *viewSource) view(sink *pagelist.Sink, raw *pgdb.Raw, first int) {
	b := sink.Bytes()
	if s.views > 0 {
		b = append(b, ',')
	}
	s.views++
	s.time, s.arrival = raw.Micros(first), raw.Int(first+1)
	sink.SetBytes(entry.AppendView(b, raw, first, s.urls))
}

func (s *viewSource) end(sink *pagelist.Sink) {
	if s.id == nil {
		return
	}
	s.id = nil
	sink.SetBytes(entry.AppendViewsTail(sink.Bytes()))
	sink.End()
}
