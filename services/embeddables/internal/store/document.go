package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/pgdb"
	"github.com/lectern-dev/lectern/shared/wire"

	"github.com/lectern-dev/lectern/services/embeddables/internal/embeddable"
)

// partsAtOnce is how many parts of a definition one statement reads: a megabyte.
const partsAtOnce = 4

// document reads a record and the first parts of its definition with a statement whose last parameter
// is how many. What follows is read when it is asked for, by connections that are returned before a
// piece is handed out. A definition never changes under its hash.
func (s *Store) document(ctx context.Context, head func(raw *pgdb.Raw) []byte, missing error, sql string, args ...any) (embeddable.Document, error) {
	var body, tag []byte
	var name string // of the definition: its hash
	content := sha256.New()
	parts := 0
	pool := pgdb.Pinned(s.pool) // all parts come from one database
	err := pool.Query(ctx, func(rows pgx.Rows) error {
		raw := pgdb.NewRaw(rows)
		for ; rows.Next(); parts++ {
			raw.Next(rows)
			if parts == 0 {
				name = string(raw.Text(embeddable.ColumnHash))
				body = head(&raw)
				tag = append(slices.Clone(body), name...)
			}
			part := raw.Text(embeddable.ColumnContent)
			body = wire.AppendTextPart(body, part)
			_, _ = content.Write(part) // never fails
		}
		return nil
	}, sql, append(args, partsAtOnce)...)
	switch {
	case err != nil:
		return embeddable.Document{}, err
	case parts == 0:
		return embeddable.Document{}, missing
	case parts == partsAtOnce:
		return embeddable.Document{Name: tag, Pieces: pieces(ctx, pool, body, content, args[0], name)}, nil
	case !named(content, name):
		return embeddable.Document{}, errIncomplete
	}
	return embeddable.Document{Whole: embeddable.AppendDocumentTail(body)}, nil
}

// errIncomplete keeps a document from looking whole that is not.
var errIncomplete = errors.New("a definition is not what its hash says")

// named tells whether content has the hash name.
func named(content hash.Hash, name string) bool { return hex.EncodeToString(content.Sum(nil)) == name }

// pieces gives the first piece of a long document, of whose definition content has the parts so far, and
// then reads on. The last piece is given only when all parts together have the hash.
func pieces(ctx context.Context, pool pgdb.Querier, first []byte, content hash.Hash, project any, name string) func(yield func([]byte, error) bool) {
	return func(yield func([]byte, error) bool) {
		if !yield(first, nil) {
			return
		}
		piece := first[:0]
		for part := partsAtOnce; ; part += partsAtOnce {
			piece = piece[:0]
			read := 0
			err := pool.Query(ctx, func(rows pgx.Rows) error {
				raw := pgdb.NewRaw(rows)
				for ; rows.Next(); read++ {
					raw.Next(rows)
					part := raw.Text(embeddable.ColumnContent)
					piece = wire.AppendTextPart(piece, part)
					_, _ = content.Write(part) // never fails
				}
				return nil
			}, furtherParts, project, name, part, partsAtOnce)
			last := read < partsAtOnce
			switch {
			case err != nil:
			case last && !named(content, name):
				err = errIncomplete
			case last:
				piece = embeddable.AppendDocumentTail(piece)
			}
			if !yield(piece, err) || err != nil || last {
				return
			}
		}
	}
}
