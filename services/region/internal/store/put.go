package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/postgres/insert"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"

	"github.com/lectern-dev/lectern/services/region/internal/project"
)

// Writer stores, reads and deletes single projects. The role of its pool decides which of these a Writer may do.
type Writer struct {
	pool *pgdb.Pool
}

// NewWriter returns a Writer to pool. PutProject needs a role with SELECT, INSERT and UPDATE, Get a role with SELECT,
// and DeleteProject a role with SELECT and DELETE.
func NewWriter(pool *pgdb.Pool) *Writer { return &Writer{pool: pool} }

// PutProject stores the records of one project in order and in one transaction, and may be repeated. stored is how many
// records were new or changed the stored project, and replaced is how many of these replaced it. replaced is exact if
// no other transaction stores the project meanwhile.
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
