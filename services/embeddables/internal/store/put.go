package store

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/lectern-dev/lectern/shared/postgres/insert"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"

	"github.com/lectern-dev/lectern/services/embeddables/internal/embeddable"
)

// Each INSERT has the two forms that [insert.Put] requires, and returns a row for each record that it stored. Its
// ON CONFLICT has no parameter, because Citus allows none there.

const insertEmbeddables = `
INSERT INTO embeddables AS e (project_id, embeddable_id, title, group_id, definition_hash, changed, since)`

// unlessSame replaces a stored embeddable with a record that differs, so that the last record sent is kept.
const unlessSame = `
ON CONFLICT (project_id, embeddable_id) DO UPDATE
SET title = excluded.title, group_id = excluded.group_id, definition_hash = excluded.definition_hash,
    changed = excluded.changed
WHERE (excluded.title, excluded.group_id, excluded.definition_hash)
      IS DISTINCT FROM (e.title, e.group_id, e.definition_hash)
RETURNING 1`

const putEmbeddables = insertEmbeddables + `
SELECT $1, u.embeddable_id, u.title, u.group_id, u.definition_hash, u.changed, u.changed
FROM unnest($2::text[], $3::text[], $4::text[], $5::bytea[], $6::bigint[])
     AS u (embeddable_id, title, group_id, definition_hash, changed)
ORDER BY u.embeddable_id` + unlessSame

const putEmbeddable = insertEmbeddables + `
VALUES ($1, $2, $3, $4, $5, $6, $6)` + unlessSame

const insertVersions = `
INSERT INTO versions (project_id, embeddable_id, version_number, saved_at, definition_hash, changed)`

// unlessNumbered keeps a stored version. Of several new versions with the same number, the first is stored.
const unlessNumbered = `
ON CONFLICT (project_id, embeddable_id, version_number) DO NOTHING
RETURNING 1`

const putVersions = insertVersions + `
SELECT $1, u.embeddable_id, u.version_number, u.saved_at, u.definition_hash, u.changed
FROM unnest($2::text[], $3::bigint[], $4::timestamptz[], $5::bytea[], $6::bigint[])
     WITH ORDINALITY AS u (embeddable_id, version_number, saved_at, definition_hash, changed, line)
ORDER BY u.embeddable_id, u.version_number, u.line` + unlessNumbered

const putVersion = insertVersions + `
VALUES ($1, $2, $3, $4, $5, $6)` + unlessNumbered

// touchEmbeddables gives the embeddables $3 the number $2, if a version of them has that number.
const touchEmbeddables = `
UPDATE embeddables e
SET changed = $2
WHERE e.project_id = $1 AND e.embeddable_id = ANY($3::text[]) AND EXISTS (
    SELECT FROM versions v
    WHERE v.project_id = $1 AND v.embeddable_id = e.embeddable_id AND v.changed = $2)`

// conflictingVersions returns the positions, from 1, of the given versions that differ from the stored version of the
// same number.
const conflictingVersions = `
SELECT u.line
FROM unnest($2::text[], $3::bigint[], $4::timestamptz[], $5::bytea[])
     WITH ORDINALITY AS u (embeddable_id, version_number, saved_at, definition_hash, line)
JOIN versions v ON v.project_id = $1 AND v.embeddable_id = u.embeddable_id AND v.version_number = u.version_number
WHERE (v.saved_at, v.definition_hash) IS DISTINCT FROM (u.saved_at, u.definition_hash)
ORDER BY u.line`

const insertDefinitions = `
INSERT INTO definitions (project_id, definition_hash, part, content)`

const unlessKnown = `
ON CONFLICT (project_id, definition_hash, part) DO NOTHING
RETURNING 1`

const putDefinitions = insertDefinitions + `
SELECT $1, u.definition_hash, u.part, u.content
FROM unnest($2::bytea[], $3::integer[], $4::text[]) AS u (definition_hash, part, content)` + unlessKnown

const putDefinition = insertDefinitions + `
VALUES ($1, $2, $3, $4)` + unlessKnown

// knownEmbeddables returns how many of the given embeddables are stored.
const knownEmbeddables = `
SELECT count(*)
FROM embeddables
WHERE project_id = $1 AND embeddable_id = ANY($2::text[])`

// Writer stores incoming records, with a pool whose role may write.
type Writer struct {
	pool *pgdb.Pool
}

// NewWriter returns a Writer that writes to pool. The pool's role needs SELECT and INSERT, and UPDATE of
// embeddables and embeddable_changes.
func NewWriter(pool *pgdb.Pool) *Writer { return &Writer{pool: pool} }

var (
	embeddablesPut = insert.Put{Arrays: putEmbeddables, Values: putEmbeddable, Key: 1}
	versionsPut    = insert.Put{Arrays: putVersions, Values: putVersion, Key: 2}
	definitionsPut = insert.Put{Arrays: putDefinitions, Values: putDefinition}
)

// PutEmbeddables stores embeddables of one project in one transaction. stored is how many were new or changed the
// stored ones, and replaced is how many of these replaced a stored one. replaced is exact unless another transaction
// stores the same ids meanwhile. The database ends up as if the embeddables were stored one by one.
func (w *Writer) PutEmbeddables(ctx context.Context, projectID string, list []embeddable.Embeddable) (stored, replaced int, err error) {
	batches := insert.Batches(list, func(e *embeddable.Embeddable) string { return e.ID })
	err = numbers.InTx(ctx, w.pool, projectID, func(ctx context.Context, tx pgx.Tx, number int64) (int, error) {
		stored = 0
		distinct := insert.Column(batches[0], func(e *embeddable.Embeddable) string { return e.ID })
		known, err := insert.Count(ctx, tx, knownEmbeddables, projectID, distinct)
		if err != nil {
			return 0, err
		}
		for _, batch := range batches {
			n, err := embeddablesPut.StoredIn(ctx, w.pool, tx, projectID, embeddableColumnsOf(batch, number)...)
			if err != nil {
				return 0, err
			}
			stored += n
		}
		replaced = insert.Replaced(stored, len(distinct), known)
		if stored == 0 {
			return 0, nil
		}
		return stored, putAllDefinitions(ctx, w.pool, tx, projectID, list, func(e *embeddable.Embeddable) string { return e.Definition })
	})
	return stored, replaced, err
}

// embeddableColumnsOf returns the columns of the embeddables in list, in the order of insertEmbeddables. number is the
// number of their change.
func embeddableColumnsOf(list []embeddable.Embeddable, number int64) []any {
	return []any{
		insert.Column(list, func(e *embeddable.Embeddable) string { return e.ID }),
		insert.Column(list, func(e *embeddable.Embeddable) string { return e.Title }),
		insert.Column(list, func(e *embeddable.Embeddable) string { return e.GroupID }),
		insert.Column(list, func(e *embeddable.Embeddable) []byte { return hashOf(e.Definition) }),
		slices.Repeat([]int64{number}, len(list)),
	}
}

// PutVersions stores versions of one project in one transaction. stored is how many versions were new. conflicts are
// the indexes, in order, of the versions that differ from the stored version of the same number. PutVersions is
// idempotent.
func (w *Writer) PutVersions(ctx context.Context, projectID string, versions []embeddable.Version) (stored int, conflicts []int, err error) {
	columns := versionColumnsOf(versions)
	err = numbers.InTx(ctx, w.pool, projectID, func(ctx context.Context, tx pgx.Tx, number int64) (int, error) {
		var err error
		conflicts = nil
		changed := slices.Repeat([]int64{number}, len(versions))
		if stored, err = versionsPut.StoredIn(ctx, w.pool, tx, projectID, append(columns, changed)...); err != nil {
			return 0, err
		}
		if stored < len(versions) {
			if conflicts, err = conflictsAmong(ctx, tx, append([]any{projectID}, columns...)); err != nil {
				return 0, err
			}
		}
		if stored == 0 {
			return 0, nil
		}
		if _, err := tx.Exec(ctx, touchEmbeddables, projectID, number, columns[0]); err != nil {
			return 0, err
		}
		kept := slices.Clone(versions)
		for _, i := range slices.Backward(conflicts) {
			kept = slices.Delete(kept, i, i+1)
		}
		return stored, putAllDefinitions(ctx, w.pool, tx, projectID, kept, func(v *embeddable.Version) string { return v.Definition })
	})
	return stored, conflicts, err
}

// versionColumnsOf returns the columns of versions in the order of insertVersions, without the number of their change.
func versionColumnsOf(versions []embeddable.Version) []any {
	return []any{
		insert.Column(versions, func(v *embeddable.Version) string { return v.EmbeddableID }),
		insert.Column(versions, func(v *embeddable.Version) int64 { return v.Number }),
		insert.Column(versions, func(v *embeddable.Version) pgtype.Timestamptz { return pgdb.Timestamp(v.SavedAt) }),
		insert.Column(versions, func(v *embeddable.Version) []byte { return hashOf(v.Definition) }),
	}
}

func conflictsAmong(ctx context.Context, tx pgx.Tx, args []any) ([]int, error) {
	rows, err := tx.Query(ctx, conflictingVersions, args...)
	if err != nil {
		return nil, err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[int])
	for i := range lines {
		lines[i]--
	}
	return lines, err
}

// putAllDefinitions stores the definitions that of returns for the records, each content once. Every transaction stores
// definitions last and in the order of the hashes. So one transaction may wait for another, but two do not deadlock.
func putAllDefinitions[T any](ctx context.Context, pool *pgdb.Pool, tx pgx.Tx, projectID string, records []T, of func(*T) string) error {
	contents := make(map[embeddable.Hash]string, len(records))
	for i := range records {
		definition := of(&records[i])
		contents[embeddable.HashOf(definition)] = definition
	}
	order := slices.SortedFunc(maps.Keys(contents), func(a, b embeddable.Hash) int { return bytes.Compare(a[:], b[:]) })
	var hashes [][]byte
	var numbers []int32
	var parts []string
	for i := range order {
		for number, part := range embeddable.Parts(contents[order[i]]) {
			hashes, numbers, parts = append(hashes, order[i][:]), append(numbers, int32(number)), append(parts, part)
		}
	}
	_, err := definitionsPut.StoredIn(ctx, pool, tx, projectID, hashes, numbers, parts)
	return err
}

func hashOf(definition string) []byte {
	hash := embeddable.HashOf(definition)
	return hash[:]
}
