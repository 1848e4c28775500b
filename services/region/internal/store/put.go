package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/pgdb"

	"github.com/lectern-dev/lectern/services/region/internal/project"
)

// Writer stores what comes in, with a pool whose role may write.
type Writer struct {
	pool *pgdb.Pool
}

// NewWriter returns a Writer to pool, whose role needs SELECT, INSERT, UPDATE and DELETE.
func NewWriter(pool *pgdb.Pool) *Writer { return &Writer{pool: pool} }

// PutProject stores what was sent of one project, in one transaction and in that order, and tells how
// much of it changed what was stored. A change is announced with the commit: who hears of it reads what
// was committed. It may be repeated.
func (w *Writer) PutProject(ctx context.Context, id string, sent []project.Project) (stored int, err error) {
	err = w.pool.InProjectTx(ctx, id, func(ctx context.Context, tx pgx.Tx) error {
		stored = 0
		for i := range sent {
			tag, err := tx.Exec(ctx, putProject, id, sent[i].Title, sent[i].Region)
			if err != nil {
				return err
			}
			stored += int(tag.RowsAffected())
		}
		if stored == 0 {
			return nil
		}
		_, err := tx.Exec(ctx, announce, id)
		return err
	})
	return stored, err
}
