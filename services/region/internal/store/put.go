package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/postgres/insert"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"

	"github.com/lectern-dev/lectern/services/region/internal/project"
)

// Writer stores incoming projects, with a pool whose role may write.
type Writer struct {
	pool *pgdb.Pool
}

// NewWriter returns a Writer to pool. The pool's role needs SELECT, INSERT, UPDATE and DELETE.
func NewWriter(pool *pgdb.Pool) *Writer { return &Writer{pool: pool} }

// PutProject stores the records of one project in one transaction and in order. It returns how many of
// them were new or changed the stored project, and how many of these replaced it. PutProject may be repeated.
func (w *Writer) PutProject(ctx context.Context, id string, sent []project.Project) (stored, replaced int, err error) {
	err = w.pool.InTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		stored = 0
		known, err := insert.Count(ctx, tx, knownProjects, id)
		if err != nil {
			return err
		}
		for i := range sent {
			tag, err := tx.Exec(ctx, putProject, id, sent[i].Title, sent[i].Region)
			if err != nil {
				return err
			}
			stored += int(tag.RowsAffected())
		}
		replaced = insert.Replaced(stored, min(1, len(sent)), known)
		return nil
	})
	return stored, replaced, err
}
