// Package store keeps projects in Postgres. The package owns the service's SQL and schema. Requests and answers of HTTP
// are the task of package api.
package store

import (
	"context"
	"embed"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/postgres/migrate"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"

	"github.com/lectern-dev/lectern/services/region/internal/project"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Schema returns the service's migrations and the rights of each database role. The reader selects. The ingest role
// also writes, and deletes single projects. The remover only selects and deletes.
func Schema() migrate.Schema {
	return migrate.Schema{
		Name:       "region",
		Migrations: migrate.Files(migrations),
		Grants: map[migrate.Role][]string{
			migrate.Reader:  {"SELECT ON projects"},
			migrate.Ingest:  {"SELECT, INSERT, UPDATE, DELETE ON projects"},
			migrate.Remover: {"SELECT, DELETE ON projects"},
		},
	}
}

// Store reads projects from Postgres.
type Store struct {
	pool *pgdb.Pool
}

// New returns a Store that reads from pool. The pool's role needs SELECT.
func New(pool *pgdb.Pool) *Store { return &Store{pool: pool} }

// Project returns the id and the title of a project as JSON. The error is a ProjectNotFound if the project is not
// stored.
func (s *Store) Project(ctx context.Context, id string) ([]byte, error) {
	var body []byte
	err := s.pool.Query(ctx, func(rows pgx.Rows) error {
		raw := pgdb.NewRaw(rows)
		for rows.Next() {
			raw.Next(rows)
			body = append(project.Append(nil, id, raw.Text(0)), '\n')
		}
		return nil
	}, getTitle, id)
	if err == nil && body == nil {
		err = apierr.New(apierr.ProjectNotFound, "The project with the specified ID does not exist.").With("projectId", id)
	}
	return body, err
}

// Titles returns the titles of those of the projects that are stored, by id.
func (s *Store) Titles(ctx context.Context, ids []string) (map[string]string, error) {
	titles := map[string]string{}
	err := s.pool.Query(ctx, func(rows pgx.Rows) error {
		raw := pgdb.NewRaw(rows)
		for rows.Next() {
			raw.Next(rows)
			titles[string(raw.Text(0))] = string(raw.Text(1))
		}
		return nil
	}, getTitles, ids)
	return titles, err
}

// Region returns the region of a project, or "" if the project has no region or is unknown.
func (s *Store) Region(ctx context.Context, id string) (string, error) {
	region := ""
	err := s.pool.Query(ctx, func(rows pgx.Rows) error {
		raw := pgdb.NewRaw(rows)
		for rows.Next() {
			raw.Next(rows)
			region = string(raw.Text(0))
		}
		return nil
	}, getRegion, id)
	return region, err
}
