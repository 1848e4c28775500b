package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"

	"github.com/lectern-dev/lectern/services/region/internal/project"
)

// Get returns a stored project from the database to which the Writer writes. The error is a ProjectNotFound if the
// project is not stored.
func (w *Writer) Get(ctx context.Context, id string) (project.Project, error) {
	var found *project.Project
	err := w.pool.Query(ctx, func(rows pgx.Rows) error {
		raw := pgdb.NewRaw(rows)
		for rows.Next() {
			raw.Next(rows)
			found = &project.Project{ID: id, Title: string(raw.Text(0))}
			if region := raw.Text(1); region != nil {
				text := string(region)
				found.Region = &text
			}
		}
		return nil
	}, getProject, id)
	switch {
	case err != nil:
		return project.Project{}, err
	case found == nil:
		return project.Project{}, apierr.New(apierr.ProjectNotFound, "The project with the specified ID does not exist.").With("projectId", id)
	}
	return *found, nil
}

// DeleteProject deletes a project and reports whether it existed. DeleteProject may be repeated.
func (w *Writer) DeleteProject(ctx context.Context, id string) (deleted bool, err error) {
	err = w.pool.InTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, deleteProject, id)
		deleted = tag.RowsAffected() > 0
		return err
	})
	return deleted, err
}
