package pgtest

import (
	"cmp"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/postgres/migrate"
	"github.com/lectern-dev/lectern/shared/postgres/pglocal"
	"github.com/lectern-dev/lectern/shared/testing/golden"
)

// dumpVersion is the environment variable by which a release makes dumps: it names the version.
const dumpVersion = "LECTERN_DUMP_VERSION"

// CheckUpgrades checks that the databases of all released versions upgrade in place. testdata/versions has a dump of a small
// database of each version, VERSION.sql, and in VERSION.txt what answers returned of that database.
//
// CheckUpgrades restores each dump as psql does, and migrates the database to s. Then tables, columns, indexes,
// constraints, functions and grants are those of a new database. answers returns the same as for the version. The flag
// -update writes what answers returns, after a change of the answers' form.
//
// With LECTERN_DUMP_VERSION, CheckUpgrades makes the two files instead, of a new database in which fill stores records.
func CheckUpgrades(t *testing.T, s migrate.Schema, fill func(t *testing.T, db DB), answers func(t *testing.T, db DB) string) {
	t.Helper()
	folder := filepath.Join("testdata", "versions")
	if version := os.Getenv(dumpVersion); version != "" {
		db := Database(t, s)
		fill(t, db)
		write(t, filepath.Join(folder, version+".txt"), answers(t, db))
		write(t, filepath.Join(folder, version+".sql"), Client(t, "pg_dump", "--no-owner", "--no-privileges", db.OwnerURL))
		return
	}
	dumps, err := filepath.Glob(filepath.Join(folder, "*.sql"))
	if err != nil || len(dumps) == 0 {
		t.Fatalf("%s has no dumps: %v", folder, err)
	}
	fresh := catalog(t, Database(t, s))
	for _, dump := range dumps {
		t.Run(strings.TrimSuffix(filepath.Base(dump), ".sql"), func(t *testing.T) {
			db := Database(t, migrate.Schema{Name: s.Name, Migrations: fstest.MapFS{"0001_nothing.sql": {Data: []byte("-- +goose Up\nSELECT 1;\n")}}})
			if _, err := db.Owner.Exec(t.Context(), "DROP TABLE "+quote(s.Table())); err != nil {
				t.Fatal(err)
			}
			Client(t, "psql", "--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", "--file", dump, db.OwnerURL)
			if err := migrate.Up(t.Context(), config.NewServerURL(db.OwnerURL), s, roles(s), slog.New(slog.DiscardHandler)); err != nil {
				t.Fatal(err)
			}
			if upgraded := catalog(t, db); upgraded != fresh {
				t.Errorf("an upgraded database differs from a new one:\n%s\n\nnew:\n%s", upgraded, fresh)
			}
			golden.Check(t, strings.TrimSuffix(dump, ".sql")+".txt", answers(t, db))
		})
	}
}

// catalog returns a line for each part of the schema of db.
func catalog(t *testing.T, db DB) string {
	t.Helper()
	rows, err := db.Owner.Query(t.Context(), `
		SELECT concat_ws(' ', 'column', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attcollation::regcollation,
			pg_get_expr(d.adbin, d.adrelid)) AS line
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'v', 'p') AND a.attnum > 0 AND NOT a.attisdropped
		UNION ALL SELECT pg_get_indexdef(indexrelid) || indisvalid FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE c.relnamespace = 'public'::regnamespace
		UNION ALL SELECT concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint WHERE connamespace = 'public'::regnamespace
		UNION ALL SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prokind = 'f'
		UNION ALL SELECT concat_ws(' ', 'grant', c.oid::regclass, g.grantee::regrole, g.privilege_type)
		FROM pg_class c, aclexplode(c.relacl) g WHERE c.relnamespace = 'public'::regnamespace
		ORDER BY line`)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

// Client runs one of Postgres' client programs, and returns its output.
func Client(t *testing.T, program string, arguments ...string) string {
	t.Helper()
	bin, err := pglocal.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, program), arguments...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", program, err, cmp.Or(stderr.String(), string(out)))
	}
	return string(out)
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes in %s", len(content), file)
}
