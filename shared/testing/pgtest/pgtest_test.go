package pgtest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lectern-dev/lectern/shared/pgmigrate"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

// victimEnv is an environment variable for TestVictim. If it is set, the test pauses its server, prints its folder and
// waits until it is killed.
const victimEnv = "PGTEST_TEST_VICTIM"

func TestMain(m *testing.M) { pgtest.Main(m) }

func notes() pgmigrate.Schema {
	return pgmigrate.Schema{
		Name: "notes",
		Migrations: fstest.MapFS{"0001_notes.sql": {Data: []byte(`-- +goose Up
CREATE TABLE notes (project_id text COLLATE "C", id text COLLATE "C", PRIMARY KEY (project_id, id));
`)}},
		Grants: map[pgmigrate.Role][]string{
			pgmigrate.Reader: {"SELECT ON notes"},
			pgmigrate.Ingest: {"SELECT, INSERT ON notes"},
		},
	}
}

func exec1(t *testing.T, url, sql string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql)
	return err
}

func TestEachTestHasItsOwnDatabaseAndTheRolesTheirRights(t *testing.T) {
	first, second := pgtest.Database(t, notes()), pgtest.Database(t, notes())
	insert := `INSERT INTO notes VALUES ('pr_1', 'a')`
	denied := func(err error) bool {
		pg, ok := errors.AsType[*pgconn.PgError](err)
		return ok && pg.Code == "42501"
	}
	for _, db := range []pgtest.DB{first, second} { // a shared database would have a duplicate row
		if err := exec1(t, db.IngestURL, insert); err != nil {
			t.Errorf("ingest inserts: %v", err)
		}
		if err := exec1(t, db.ReaderURL, `SELECT FROM notes`); err != nil {
			t.Errorf("reader selects: %v", err)
		}
		if err := exec1(t, db.ReaderURL, insert); !denied(err) {
			t.Errorf("reader inserts: %v, want insufficient_privilege", err)
		}
		if err := exec1(t, db.IngestURL, `DELETE FROM notes`); !denied(err) {
			t.Errorf("ingest deletes: %v, want insufficient_privilege", err)
		}
		if err := exec1(t, db.OwnerURL, `DROP TABLE notes`); err != nil {
			t.Errorf("owner drops: %v", err)
		}
	}
}

func TestAnotherSchemaGetsAnotherTemplate(t *testing.T) {
	changed := notes()
	changed.Migrations = fstest.MapFS{"0001_notes.sql": {Data: []byte("-- +goose Up\nCREATE TABLE others (id int PRIMARY KEY);\n")}}
	changed.Grants = nil
	if err := exec1(t, pgtest.Database(t, notes()).OwnerURL, `SELECT FROM notes`); err != nil {
		t.Error(err)
	}
	if err := exec1(t, pgtest.Database(t, changed).OwnerURL, `SELECT FROM others`); err != nil {
		t.Error(err)
	}
}

func TestADatabaseGoesWithItsTest(t *testing.T) {
	var db pgtest.DB
	t.Run("inner", func(t *testing.T) { db = pgtest.Database(t, notes()) })
	ctx := t.Context()
	if conn, err := pgx.Connect(ctx, db.OwnerURL); err == nil {
		conn.Close(ctx)
		t.Errorf("%s is still there", db.Name)
	}
}

func TestPrivateServerOverTCP(t *testing.T) {
	server := pgtest.Private(t, map[string]string{"work_mem": "3MB"})
	db := server.Database(t, notes())
	for _, url := range []string{db.IngestURL, server.TCPURL(db.IngestURL)} {
		if err := exec1(t, url, `SELECT FROM notes`); err != nil {
			t.Error(err)
		}
	}
}

// TestVictim runs in a process of TestAKilledTestBinaryLeavesNothing.
func TestVictim(t *testing.T) {
	if os.Getenv(victimEnv) == "" {
		t.Skip("runs in a process of its own")
	}
	server := pgtest.Server(t)
	pgtest.Database(t, notes())
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	fmt.Println("running", server.PID(), server.Dir())
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func TestAKilledTestBinaryLeavesNothing(t *testing.T) {
	pgtest.Server(t) // skips if there is no Postgres
	if os.Getenv("TEST_DATABASE_URL") != "" {
		t.Skip("uses a server that is not ours to kill")
	}
	tmp := t.TempDir()
	victim := exec.Command(os.Args[0], "-test.run=^TestVictim$", "-test.v")
	victim.Env = append(os.Environ(), victimEnv+"=1", "TMPDIR="+tmp)
	stdin, err := victim.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	var dir string
	for line := ""; !strings.HasPrefix(line, "running"); {
		b := make([]byte, 1)
		line = ""
		for b[0] != '\n' {
			if _, err := stdout.Read(b); err != nil {
				t.Fatalf("the victim did not get so far: %v", err)
			}
			line += string(b)
		}
		_, _ = fmt.Sscanf(line, "running %d %s", &pid, &dir)
	}
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait() // the error only says that it was killed
	gone := func() bool {
		left, _ := filepath.Glob(filepath.Join(tmp, "lectern-pgtest-*"))
		_, err := os.Stat(dir)
		return syscall.Kill(pid, 0) == syscall.ESRCH && len(left) == 0 && os.IsNotExist(err)
	}
	for deadline := time.Now().Add(30 * time.Second); !gone(); {
		if time.Now().After(deadline) {
			t.Fatalf("process %d or folder %s is still there", pid, dir)
		}
		time.Sleep(10 * time.Millisecond) // there is no notification
	}
}

// TestLongCluster checks that a test can add a worker to its own cluster.
func TestLongCluster(t *testing.T) {
	if os.Getenv("LECTERN_LONG") == "" {
		t.Skip("long: run by make test-long")
	}
	c := pgtest.NewCluster(t, 1)
	db := c.Database(t, notes())
	if err := exec1(t, db.IngestURL, `INSERT INTO notes VALUES ('pr_1', 'a')`); err != nil {
		t.Error(err)
	}
	c.Grow(t, db, "notes")
	if c.Workers() != 2 {
		t.Errorf("%d workers", c.Workers())
	}
	if err := exec1(t, c.OnWorker(db.OwnerURL, 2), `SELECT`); err != nil {
		t.Error(err)
	}
}
