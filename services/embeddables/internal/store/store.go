// Package store keeps embeddables, their versions and their definitions in Postgres. The package owns the service's SQL
// and schema, and turns rows into the JSON of the API without a struct for each row. Package api handles HTTP.
package store

import (
	"context"
	"embed"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/postgres/lists"
	"github.com/lectern-dev/lectern/shared/postgres/migrate"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/wire"

	"github.com/lectern-dev/lectern/services/embeddables/internal/embeddable"
)

// migrations holds the SQL files of the schema, one for each migration.
//
//go:embed migrations/*.sql
var migrations embed.FS

// Schema returns the service's migrations and the rights of each role. The reader role only selects. The ingest role
// also writes, but deletes nothing. The remover role selects and deletes.
func Schema() migrate.Schema {
	return migrate.Schema{
		Name:       "embeddables",
		Migrations: migrate.Files(migrations),
		Grants: map[migrate.Role][]string{
			migrate.Reader:  {"SELECT ON embeddables, versions, definitions"},
			migrate.Ingest:  {"SELECT, INSERT, UPDATE ON embeddables", "SELECT, INSERT ON versions, definitions"},
			migrate.Remover: {"SELECT, DELETE ON embeddables, versions, definitions"},
		},
	}
}

// Store reads embeddables, versions and definitions with one pool.
type Store struct {
	pool pgdb.Querier
}

// New returns a Store that reads from pool. The pool's role needs SELECT.
func New(pool pgdb.Querier) *Store { return &Store{pool: pool} }

// Embeddables opens a page of a project's embeddables. The caller must close the List.
func (s *Store) Embeddables(ctx context.Context, projectID string, page lists.Page) (*lists.List, error) {
	return lists.Open(ctx, embeddableQuery(s.pool, projectID), page)
}

// Versions opens a page of an embeddable's versions. The caller must close the List. The error is an
// EmbeddableDoesNotExist if the project has no such embeddable.
func (s *Store) Versions(ctx context.Context, projectID, embeddableID string, descending bool, page lists.Page) (*lists.List, error) {
	return lists.Open(ctx, versionQuery(s.pool, projectID, embeddableID, descending), page)
}

// Embeddable returns one embeddable with its definition. The error is an EmbeddableDoesNotExist if the project has no
// such embeddable.
func (s *Store) Embeddable(ctx context.Context, projectID, embeddableID string) (embeddable.Document, error) {
	project, id := wire.AppendText(nil, []byte(projectID)), wire.AppendText(nil, []byte(embeddableID))
	head := func(raw *pgdb.Raw) []byte { return appendEmbeddableHead(nil, project, id, raw) }
	return s.document(ctx, head, apierr.NoEmbeddable(embeddableID), getEmbeddable, projectID, embeddableID)
}

// Version returns one version with its definition. The error is an EmbeddableVersionDoesNotExist if the project has no
// such embeddable or the embeddable has no such version.
func (s *Store) Version(ctx context.Context, projectID, embeddableID string, number int64) (embeddable.Document, error) {
	id := wire.AppendText(nil, []byte(embeddableID))
	head := func(raw *pgdb.Raw) []byte { return appendVersionHead(nil, id, number, raw) }
	return s.document(ctx, head, apierr.NoEmbeddableVersion(embeddableID, number), getVersion, projectID, embeddableID, number)
}
