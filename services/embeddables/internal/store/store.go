// Package store keeps embeddables, their versions and their definitions in Postgres. The package owns the service's SQL
// and schema, and turns rows into the JSON of the API without a struct for each row. Package api handles HTTP.
package store

import (
	"context"
	"embed"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/postgres/changed"
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
// also writes, but deletes nothing. The remover role selects and deletes, and takes the lock of a project's changes.
func Schema() migrate.Schema {
	return migrate.Schema{
		Name:       "embeddables",
		Migrations: migrate.Files(migrations),
		Grants: map[migrate.Role][]string{
			migrate.Reader:  {"SELECT ON embeddables, versions, definitions, embeddable_changes"},
			migrate.Ingest:  {"SELECT, INSERT, UPDATE ON embeddables, embeddable_changes", "SELECT, INSERT ON versions, definitions"},
			migrate.Remover: {"SELECT, DELETE ON embeddables, versions, definitions", "SELECT, INSERT, UPDATE, DELETE ON embeddable_changes"},
		},
	}
}

// numbers has the numbers of all stored changes of embeddables, versions and definitions.
var numbers = changed.In("embeddable_changes")

// Store reads embeddables, versions and definitions.
type Store struct {
	pool    pgdb.Querier
	primary pgdb.Querier
}

// New returns a Store that reads from pool, and from primary what has changed. The role of both needs SELECT.
func New(pool, primary pgdb.Querier) *Store { return &Store{pool: pool, primary: primary} }

// View returns a view of a project, for a reader that asks for the records changed after a number or for [changed.All].
// The error is a HistoryLost if the project does not know the number.
func (s *Store) View(ctx context.Context, projectID string, after int64) (changed.View, error) {
	return numbers.View(ctx, s.pool, s.primary, projectID, after)
}

// Embeddables opens a page of a project's embeddables in a view. The caller must close the List.
func (s *Store) Embeddables(ctx context.Context, v changed.View, projectID string, page lists.Page) (*lists.List, error) {
	page.Scans = v.After != changed.All
	return lists.Open(ctx, embeddableQuery(v, projectID), page)
}

// Versions opens a page of an embeddable's versions in a view. The caller must close the List. The error is an
// EmbeddableDoesNotExist if the project has no such embeddable.
func (s *Store) Versions(ctx context.Context, v changed.View, projectID, embeddableID string, descending bool, page lists.Page) (*lists.List, error) {
	page.Scans = v.After != changed.All
	return lists.Open(ctx, versionQuery(v, projectID, embeddableID, descending), page)
}

// Embeddable returns one embeddable with its definition, at least as new as the change after, unless after is
// [changed.All]. The error is an EmbeddableDoesNotExist if the project has no such embeddable.
func (s *Store) Embeddable(ctx context.Context, projectID, embeddableID string, after int64) (embeddable.Document, error) {
	pool, err := numbers.Reader(ctx, s.pool, s.primary, projectID, after)
	if err != nil {
		return embeddable.Document{}, err
	}
	project, id := wire.AppendText(nil, []byte(projectID)), wire.AppendText(nil, []byte(embeddableID))
	head := func(raw *pgdb.Raw) []byte { return appendEmbeddableHead(nil, project, id, raw) }
	return document(ctx, pool, head, apierr.NoEmbeddable(embeddableID), getEmbeddable, projectID, embeddableID)
}

// Version returns one version with its definition, at least as new as the change after, unless after is [changed.All].
// The error is an EmbeddableVersionDoesNotExist if the project has no such embeddable or the embeddable has no such
// version.
func (s *Store) Version(ctx context.Context, projectID, embeddableID string, number, after int64) (embeddable.Document, error) {
	pool, err := numbers.Reader(ctx, s.pool, s.primary, projectID, after)
	if err != nil {
		return embeddable.Document{}, err
	}
	id := wire.AppendText(nil, []byte(embeddableID))
	head := func(raw *pgdb.Raw) []byte { return appendVersionHead(nil, id, number, raw) }
	return document(ctx, pool, head, apierr.NoEmbeddableVersion(embeddableID, number), getVersion, projectID, embeddableID, number)
}
