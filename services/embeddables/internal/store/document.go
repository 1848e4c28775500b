package store

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/httpapi"
	"github.com/lectern-dev/lectern/shared/pgdb"

	"github.com/lectern-dev/lectern/services/embeddables/internal/embeddable"
)

// partsAtOnce is how many parts of a definition one statement reads: a megabyte.
const partsAtOnce = 4

// document reads a record and the first parts of its definition with a statement whose last parameter
// is how many. What follows is read when it is asked for, by connections that are returned before a
// piece is handed out; a definition never changes under its hash.
func (s *Store) document(ctx context.Context, head func(raw *pgdb.Raw) []byte, missing error, sql string, args ...any) (embeddable.Document, error) {
	var body, name []byte
	var hash string
	parts := 0
	err := s.pool.Query(ctx, func(rows pgx.Rows) error {
		raw := pgdb.NewRaw(rows)
		for ; rows.Next(); parts++ {
			raw.Next(rows)
			if parts == 0 {
				hash = string(raw.Text(embeddable.ColumnHash))
				body = head(&raw)
				name = append(slices.Clone(body), hash...)
			}
			body = httpapi.AppendTextPart(body, raw.Text(embeddable.ColumnContent))
		}
		return nil
	}, sql, append(args, partsAtOnce)...)
	switch {
	case err != nil:
		return embeddable.Document{}, err
	case parts == 0:
		return embeddable.Document{}, missing
	case parts < partsAtOnce:
		return embeddable.Document{Whole: embeddable.AppendDocumentTail(body)}, nil
	}
	return embeddable.Document{Name: name, Pieces: s.pieces(ctx, body, args[0], hash)}, nil
}

// pieces gives the first piece of a long document, and then reads on.
func (s *Store) pieces(ctx context.Context, first []byte, project any, hash string) func(yield func([]byte, error) bool) {
	return func(yield func([]byte, error) bool) {
		if !yield(first, nil) {
			return
		}
		piece := first[:0]
		for part := partsAtOnce; ; part += partsAtOnce {
			piece = piece[:0]
			read := 0
			err := s.pool.Query(ctx, func(rows pgx.Rows) error {
				raw := pgdb.NewRaw(rows)
				for ; rows.Next(); read++ {
					raw.Next(rows)
					piece = httpapi.AppendTextPart(piece, raw.Text(embeddable.ColumnContent))
				}
				return nil
			}, furtherParts, project, hash, part, partsAtOnce)
			if err == nil && read < partsAtOnce {
				piece = embeddable.AppendDocumentTail(piece)
			}
			if !yield(piece, err) || err != nil || read < partsAtOnce {
				return
			}
		}
	}
}
