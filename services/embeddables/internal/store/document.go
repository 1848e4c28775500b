package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/wire"

	"github.com/lectern-dev/lectern/services/embeddables/internal/embeddable"
)

// The indexes of the columns of a row with one part of a definition. furtherParts returns only columnContent.
// getEmbeddable and getVersion also return columnHash, and then columns of the record.
const (
	columnContent = iota
	columnHash    // in hexadecimal

	columnDocumentTitle   = 2 // of getEmbeddable
	columnDocumentGroupID = 3
	columnDocumentSavedAt = 2 // of getVersion
)

// getEmbeddable and getVersion read a record with the first parts of its definition, one part a row. The last
// parameter is the number of parts. The limit in the subquery keeps Postgres from reading all definitions of the
// project for a join. The hash is text, because the format of bytea depends on whether statements are prepared.
const getEmbeddable = `
SELECT d.content, encode(e.definition_hash, 'hex'), e.title, e.group_id
FROM (
    SELECT title, group_id, definition_hash FROM embeddables
    WHERE project_id = $1 AND embeddable_id = $2
) e
CROSS JOIN LATERAL (
    SELECT d.part, d.content FROM definitions d
    WHERE d.project_id = $1 AND d.definition_hash = e.definition_hash
    ORDER BY d.part LIMIT $3
) d
ORDER BY d.part`

const getVersion = `
SELECT d.content, encode(v.definition_hash, 'hex'), v.saved_at
FROM (SELECT embeddable_id FROM embeddables WHERE project_id = $1 AND embeddable_id = $2) e
CROSS JOIN (
    SELECT saved_at, definition_hash FROM versions
    WHERE project_id = $1 AND embeddable_id = $2 AND version_number = $3
) v
CROSS JOIN LATERAL (
    SELECT d.part, d.content FROM definitions d
    WHERE d.project_id = $1 AND d.definition_hash = v.definition_hash
    ORDER BY d.part LIMIT $4
) d
ORDER BY d.part`

const furtherParts = `
SELECT content FROM definitions
WHERE project_id = $1 AND definition_hash = decode($2, 'hex') AND part >= $3
ORDER BY part LIMIT $4`

// partsAtOnce is how many parts of a definition one statement reads: a megabyte.
const partsAtOnce = 4

// document reads a record and the first parts of its definition with sql from pool. args begin with the project. head
// returns the beginning of the JSON from the first row. missing is the error when there is no record. document reads
// further parts only when the caller iterates over Pieces, and holds no connection while the caller has a piece.
func document(ctx context.Context, pool pgdb.Querier, head func(raw *pgdb.Raw) []byte, missing error, sql string, args ...any) (embeddable.Document, error) {
	var body, tag []byte
	var name string // of the definition: its hash
	content := sha256.New()
	parts := 0
	pool = pgdb.Pinned(pool) // all parts come from one database
	err := pool.Query(ctx, func(rows pgx.Rows) error {
		raw := pgdb.NewRaw(rows)
		for ; rows.Next(); parts++ {
			raw.Next(rows)
			if parts == 0 {
				name = string(raw.Text(columnHash))
				body = head(&raw)
				tag = append(slices.Clone(body), name...)
			}
			part := raw.Text(columnContent)
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
	return embeddable.Document{Whole: append(body, documentTail...)}, nil
}

// errIncomplete is the error for a definition whose stored parts do not match its hash, so that an incomplete document
// does not look complete.
var errIncomplete = errors.New("a definition is not what its hash says")

// named reports whether the hash of content is name, in hexadecimal.
func named(content hash.Hash, name string) bool { return hex.EncodeToString(content.Sum(nil)) == name }

// pieces returns an iterator for one use. The iterator yields first, the first piece of a long document, and then reads
// on. content holds the hash of the parts so far. The last piece comes only if all parts together have the hash name,
// and otherwise errIncomplete.
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
					part := raw.Text(columnContent)
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
				piece = append(piece, documentTail...)
			}
			if !yield(piece, err) || err != nil || last {
				return
			}
		}
	}
}

// documentTail ends a document after the text of its definition.
const documentTail = "\"}\n"

// appendEmbeddableHead appends the beginning of an embeddable's document, up to the text of its definition. id and
// project are JSON strings.
func appendEmbeddableHead(dst, project, id []byte, row *pgdb.Raw) []byte {
	dst = append(dst, `{"embeddable_id":`...)
	dst = append(dst, id...)
	dst = appendMembers(dst, project, row.Text(columnDocumentTitle), row.Text(columnDocumentGroupID))
	return append(dst, `,"json_string_prod":"`...)
}

// appendVersionHead appends the beginning of a version's document, up to the text of its definition. id is the id of
// the embeddable as a JSON string.
func appendVersionHead(dst, id []byte, number int64, row *pgdb.Raw) []byte {
	dst = append(dst, `{"embeddable_id":`...)
	dst = append(dst, id...)
	dst = append(dst, `,"version_number":`...)
	dst = strconv.AppendInt(dst, number, 10)
	dst = append(dst, `,"saved_at":`...)
	dst = wire.AppendTime(dst, row.Micros(columnDocumentSavedAt))
	return append(dst, `,"json_string":"`...)
}
