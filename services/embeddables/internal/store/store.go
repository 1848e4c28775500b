// Package store keeps embeddables, their versions and their definitions in Postgres. It owns the
// service's SQL and its schema; it knows nothing of HTTP. Rows go from Postgres' wire into the bytes of
// the answer: no struct is made of a row.
package store

import (
	"context"
	"embed"
	"io/fs"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/pagelist"
	"github.com/lectern-dev/lectern/shared/pgdb"
	"github.com/lectern-dev/lectern/shared/pgmigrate"
	"github.com/lectern-dev/lectern/shared/pgrecord"
	"github.com/lectern-dev/lectern/shared/wire"

	"github.com/lectern-dev/lectern/services/embeddables/internal/embeddable"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Schema is the service's database: its migrations, and what each role may do. The reader selects. The
// ingest role also writes, and deletes nothing.
func Schema() pgmigrate.Schema {
	sub, err := fs.Sub(migrations, "migrations")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return pgmigrate.Schema{
		Name:       "embeddables",
		Migrations: sub,
		Grants: map[pgmigrate.Role][]string{
			pgmigrate.Reader: {"SELECT ON embeddables, versions, definitions"},
			pgmigrate.Ingest: {"SELECT, INSERT, UPDATE ON embeddables", "SELECT, INSERT ON versions, definitions"},
		},
	}
}

// Store reads with one pool.
type Store struct {
	pool pgdb.Querier
}

// New returns a Store that reads from pool, whose role needs SELECT.
func New(pool pgdb.Querier) *Store { return &Store{pool: pool} }

// Embeddables opens a page of a project's embeddables.
func (s *Store) Embeddables(ctx context.Context, projectID string, page pagelist.Page) (*pagelist.List, error) {
	return pagelist.Open(ctx, newEmbeddableList(s.pool, projectID), page)
}

// Versions opens a page of an embeddable's versions. An embeddable that the project does not have is an
// EmbeddableDoesNotExist.
func (s *Store) Versions(ctx context.Context, projectID, embeddableID string, descending bool, page pagelist.Page) (*pagelist.List, error) {
	return pagelist.Open(ctx, newVersionList(s.pool, projectID, embeddableID, descending), page)
}

// Embeddable returns one embeddable with its definition. One that the project does not have is an
// EmbeddableDoesNotExist.
func (s *Store) Embeddable(ctx context.Context, projectID, embeddableID string) (embeddable.Document, error) {
	project, id := wire.AppendText(nil, []byte(projectID)), wire.AppendText(nil, []byte(embeddableID))
	head := func(raw *pgdb.Raw) []byte { return embeddable.AppendHead(nil, project, id, raw) }
	return s.document(ctx, head, apierr.NoEmbeddable(embeddableID), getEmbeddable, projectID, embeddableID)
}

// Version returns one version with its definition. One that the project does not have, or of an
// embeddable that it does not have, is an EmbeddableVersionDoesNotExist.
func (s *Store) Version(ctx context.Context, projectID, embeddableID string, number int64) (embeddable.Document, error) {
	id := wire.AppendText(nil, []byte(embeddableID))
	head := func(raw *pgdb.Raw) []byte { return embeddable.AppendVersionHead(nil, id, number, raw) }
	return s.document(ctx, head, apierr.NoEmbeddableVersion(embeddableID, number), getVersion, projectID, embeddableID, number)
}

// newEmbeddableList reads a project's embeddables.
func newEmbeddableList(pool pgdb.Querier, projectID string) *pgrecord.List {
	return &pgrecord.List{
		Pool: pgdb.Pinned(pool),
		SQL:  pgrecord.Statements{Chunk: embeddables, Nth: nthEmbeddable, Last: lastEmbeddable},
		Arguments: func(after, end pagelist.Position, own ...any) []any {
			return append([]any{projectID, after.ID, end.ID}, own...)
		},
		Row:      embeddableRow{project: wire.AppendText(nil, []byte(projectID))},
		Position: func(raw *pgdb.Raw) pagelist.Position { return pagelist.Position{ID: string(raw.Text(0))} },
	}
}

// embeddableRow is a row that holds an embeddable.
type embeddableRow struct {
	project []byte // as a JSON string
}

func (e embeddableRow) Place(raw *pgdb.Raw) (key int64, id []byte, ok bool) {
	return 0, raw.Text(embeddable.ColumnID), true
}

func (e embeddableRow) Append(dst []byte, raw *pgdb.Raw) []byte {
	return embeddable.Append(dst, e.project, raw)
}

// newVersionList reads an embeddable's versions.
func newVersionList(pool pgdb.Querier, projectID, embeddableID string, descending bool) *pgrecord.List {
	sql := pgrecord.Statements{First: firstVersionsAscending, Chunk: versionsAscending, Nth: nthVersionAscending, Last: lastVersionAscending}
	if descending {
		sql = pgrecord.Statements{First: firstVersionsDescending, Chunk: versionsDescending, Nth: nthVersionDescending, Last: lastVersionDescending}
	}
	return &pgrecord.List{
		Pool: pgdb.Pinned(pool),
		SQL:  sql,
		Arguments: func(after, end pagelist.Position, own ...any) []any {
			return append([]any{projectID, embeddableID, after.Key, end.Key}, own...)
		},
		Row:      versionRow{embeddable: wire.AppendText(nil, []byte(embeddableID))},
		Position: func(raw *pgdb.Raw) pagelist.Position { return pagelist.Position{Key: raw.Int(0)} },
		Missing:  apierr.NoEmbeddable(embeddableID),
	}
}

// versionRow is a row that holds a version, or nothing where the embeddable has none.
type versionRow struct {
	embeddable []byte // its id as a JSON string
}

func (v versionRow) Place(raw *pgdb.Raw) (key int64, id []byte, ok bool) {
	return raw.Int(embeddable.ColumnNumber), nil, !raw.Null(embeddable.ColumnNumber)
}

func (v versionRow) Append(dst []byte, raw *pgdb.Raw) []byte {
	return embeddable.AppendVersion(dst, v.embeddable, raw)
}
