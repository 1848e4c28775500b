package store

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/lectern-dev/lectern/shared/pgdb"
	"github.com/lectern-dev/lectern/shared/pgrecord"

	"github.com/lectern-dev/lectern/services/embeddables/internal/embeddable"
)

// Writer stores what comes in, with a pool whose role may write.
type Writer struct {
	pool *pgdb.Pool
}

// NewWriter returns a Writer to pool, whose role needs SELECT and INSERT, and UPDATE of embeddables.
func NewWriter(pool *pgdb.Pool) *Writer { return &Writer{pool: pool} }

var (
	embeddablesPut = pgrecord.Put{Arrays: putEmbeddables, Values: putEmbeddable, Key: 1}
	versionsPut    = pgrecord.Put{Arrays: putVersions, Values: putVersion, Key: 2}
	definitionsPut = pgrecord.Put{Arrays: putDefinitions, Values: putDefinition}
)

// PutEmbeddables stores embeddables of one project in one transaction and tells how many changed what
// was stored. It has the outcome of storing them one after the other. It may be repeated.
func (w *Writer) PutEmbeddables(ctx context.Context, projectID string, list []embeddable.Embeddable) (stored int, err error) {
	waves := pgrecord.Waves(list, func(e *embeddable.Embeddable) string { return e.ID })
	err = w.pool.InProjectTx(ctx, projectID, func(ctx context.Context, tx pgx.Tx) error {
		stored = 0
		for _, wave := range waves {
			n, err := embeddablesPut.StoredIn(ctx, w.pool, tx, projectID, embeddableColumns(wave)...)
			if err != nil {
				return err
			}
			stored += n
		}
		if stored == 0 {
			return nil
		}
		return putAllDefinitions(ctx, w.pool, tx, projectID, list, func(e *embeddable.Embeddable) string { return e.Definition })
	})
	return stored, err
}

func embeddableColumns(list []embeddable.Embeddable) []any {
	return []any{
		pgrecord.Column(list, func(e *embeddable.Embeddable) string { return e.ID }),
		pgrecord.Column(list, func(e *embeddable.Embeddable) string { return e.Title }),
		pgrecord.Column(list, func(e *embeddable.Embeddable) string { return e.GroupID }),
		pgrecord.Column(list, func(e *embeddable.Embeddable) []byte { return hashOf(e.Definition) }),
	}
}

// PutVersions stores versions of one project in one transaction. It tells how many were new, and which
// say another thing than the one stored under their number, by their index in order. It may be
// repeated.
func (w *Writer) PutVersions(ctx context.Context, projectID string, versions []embeddable.Version) (stored int, conflicts []int, err error) {
	columns := versionColumns(versions)
	err = w.pool.InProjectTx(ctx, projectID, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		conflicts = nil
		if stored, err = versionsPut.StoredIn(ctx, w.pool, tx, projectID, columns...); err != nil {
			return err
		}
		if stored < len(versions) {
			if conflicts, err = conflictsAmong(ctx, tx, append([]any{projectID}, columns...)); err != nil {
				return err
			}
		}
		if stored == 0 {
			return nil
		}
		kept := slices.Clone(versions)
		for _, i := range slices.Backward(conflicts) {
			kept = slices.Delete(kept, i, i+1)
		}
		return putAllDefinitions(ctx, w.pool, tx, projectID, kept, func(v *embeddable.Version) string { return v.Definition })
	})
	return stored, conflicts, err
}

func versionColumns(versions []embeddable.Version) []any {
	return []any{
		pgrecord.Column(versions, func(v *embeddable.Version) string { return v.EmbeddableID }),
		pgrecord.Column(versions, func(v *embeddable.Version) int64 { return v.Number }),
		pgrecord.Column(versions, func(v *embeddable.Version) pgtype.Timestamptz { return pgdb.Timestamp(v.SavedAt) }),
		pgrecord.Column(versions, func(v *embeddable.Version) []byte { return hashOf(v.Definition) }),
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

// putAllDefinitions stores the definitions of records, each content once. All who write do so last and
// in the order of the hashes, so that they wait for each other at most, and not in a circle.
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
