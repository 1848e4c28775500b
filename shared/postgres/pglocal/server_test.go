package pglocal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/testing/needs"
)

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func start(t *testing.T, o Options) *Server {
	t.Helper()
	o.NoSync = true
	if cache, err := os.UserCacheDir(); err == nil && o.Cache == "" {
		o.Cache = filepath.Join(cache, "lectern") // as in pgtest
	}
	s, err := Start(testContext(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if err := Remove(o.Dir); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(s.Dir()); !os.IsNotExist(err) {
			t.Errorf("after Remove, %s: %v", s.Dir(), err)
		}
	})
	return s
}

func query(t *testing.T, url, sql string) (string, error) {
	t.Helper()
	ctx := testContext(t)
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	var v string
	err = conn.QueryRow(ctx, sql).Scan(&v)
	return v, err
}

func mustQuery(t *testing.T, url, sql string) string {
	t.Helper()
	v, err := query(t, url, sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func makeTable(t *testing.T, s *Server) {
	t.Helper()
	err := s.asSuperuser(testContext(t), func(conn *pgx.Conn) error {
		_, err := conn.Exec(testContext(t), `CREATE TABLE kept AS SELECT 1 AS n`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTCPAsksForThePassword(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Dir: filepath.Join(t.TempDir(), "pg"), Port: needs.Port(t)})
	if err := s.EnsureRole(testContext(t), `odd "name"`); err != nil {
		t.Fatal(err)
	}
	if err := s.EnsureRole(testContext(t), `odd "name"`); err != nil {
		t.Fatalf("a second time: %v", err)
	}
	for range 2 {
		if err := s.EnsureDatabase(testContext(t), "mine", `odd "name"`); err != nil {
			t.Fatal(err)
		}
	}
	if got := mustQuery(t, s.TCPURL(`odd "name"`, "mine"), `SELECT current_user || current_database()`); got != `odd "name"mine` {
		t.Errorf("over TCP we are %q", got)
	}
	if got := mustQuery(t, s.URL(`odd "name"`, "mine"), `SELECT current_user::text`); got != `odd "name"` {
		t.Errorf("through the socket we are %q", got)
	}
	wrong := strings.Replace(s.TCPURL(Superuser, "postgres"), s.password, "wrong", 1)
	if _, err := query(t, wrong, `SELECT 'in'`); err == nil {
		t.Error("a wrong password was let in over TCP")
	}
	for path, want := range map[string]os.FileMode{s.Dir(): 0o700, s.folder.password(): 0o600} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", path, got, want)
		}
	}
}

// TestUsualSettings checks the settings of a server whose path is too long for a socket.
func TestUsualSettings(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Dir: filepath.Join(t.TempDir(), strings.Repeat("long", 30), "pg"), Settings: map[string]string{"work_mem": "5MB"}})
	for name, want := range map[string]string{
		"server_encoding": "UTF8", "lc_collate": "C", "timezone": "UTC", "listen_addresses": "", "work_mem": "5MB", "fsync": "off",
	} {
		if got := mustQuery(t, s.AdminURL(), "SELECT current_setting('"+name+"')"); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestBelowAClosedFolder(t *testing.T) {
	t.Parallel()
	closed := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(closed, ".lectern", "postgres")
	s := start(t, Options{Dir: dir})
	target, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	if target != s.Dir() {
		t.Errorf("the wished place leads to %s, the data is in %s", target, s.Dir())
	}
	if os.Geteuid() == 0 && !strings.HasPrefix(target, elsewhere) {
		t.Errorf("as root, the data is in %s, which the server cannot enter", target)
	}
	makeTable(t, s)
	if err := s.Stop(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if got := mustQuery(t, s.AdminURL(), `SELECT count(*)::text FROM kept`); got != "1" {
		t.Errorf("after a restart: %s rows, want 1", got)
	}
}

// TestCache checks that a second server begins as the first did: with its password, and none of what it stored.
func TestCache(t *testing.T) {
	t.Parallel()
	cache := filepath.Join(t.TempDir(), "closed", "cache")
	if err := os.Mkdir(filepath.Dir(cache), 0o700); err != nil { // the server's user cannot enter this folder
		t.Fatal(err)
	}
	first := start(t, Options{Dir: filepath.Join(t.TempDir(), "pg"), Cache: cache, Port: needs.Port(t)})
	makeTable(t, first)
	archives, err := filepath.Glob(filepath.Join(cache, "*"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("archives: %v, %v", archives, err)
	}
	before, err := os.Stat(archives[0])
	if err != nil {
		t.Fatal(err)
	}
	second := start(t, Options{Dir: filepath.Join(t.TempDir(), "pg"), Cache: cache, Port: needs.Port(t)})
	if got := mustQuery(t, second.TCPURL(Superuser, "postgres"), `SELECT count(*)::text FROM pg_tables WHERE tablename = 'kept'`); got != "0" || second.password != first.password {
		t.Errorf("the second server has %s tables of the first", got)
	}
	if after, err := os.Stat(archives[0]); err != nil || !os.SameFile(before, after) {
		t.Errorf("the second server made another archive: %v", err)
	}
	// A server that has its data does not take the archive's.
	if err := first.Restart(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if got := mustQuery(t, first.AdminURL(), `SELECT count(*)::text FROM kept`); got != "1" {
		t.Errorf("after a restart: %s rows, want 1", got)
	}
}

func TestStaleFileOfAWornPID(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Dir: filepath.Join(t.TempDir(), "pg")})
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	// Another process of the server's user now has the number in the stale postmaster.pid.
	sleeper := exec.Command("sleep", "60")
	s.prepare(sleeper)
	sleeper.Dir = "/"
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sleeper.Process.Kill(); _ = sleeper.Wait() }()
	path := filepath.Join(s.folder.data(), "postmaster.pid")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(b, []byte("\n"))
	if err := os.WriteFile(path, fmt.Appendf(nil, "%d\n%s", sleeper.Process.Pid, rest), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(testContext(t)); err != nil {
		t.Fatal(err)
	}
	mustQuery(t, s.AdminURL(), `SELECT 'ok'`)
}

func TestStartSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "pg")
	_, err := Start(testContext(t), Options{Dir: dir, NoSync: true, Settings: map[string]string{"no_such_setting": "1"}})
	if err == nil || !strings.Contains(err.Error(), "no_such_setting") {
		t.Errorf("a wrong setting: %v", err)
	}
	// And the folder is free again.
	s := start(t, Options{Dir: dir})
	mustQuery(t, s.AdminURL(), `SELECT 'ok'`)
}

func TestBinaries(t *testing.T) {
	root := t.TempDir()
	for _, v := range []string{"9.6", "15", "16"} {
		for _, name := range []string{"initdb", "postgres"} {
			path := filepath.Join(root, v, "bin", name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.MkdirAll(filepath.Join(root, "17", "bin"), 0o755); err != nil { // a folder of clients, without a server
		t.Fatal(err)
	}
	pattern := filepath.Join(root, "*", "bin")
	for _, tt := range []struct{ name, named, want string }{
		{"highest version with a server", "", filepath.Join(root, "16", "bin")},
		{"named", filepath.Join(root, "9.6", "bin"), filepath.Join(root, "9.6", "bin")},
	} {
		got, err := binaries(tt.named, []string{pattern})
		if err != nil || got != tt.want {
			t.Errorf("%s: %q, %v; want %q", tt.name, got, err, tt.want)
		}
	}
	if _, err := binaries(root, []string{pattern}); !errors.Is(err, ErrNoBinaries) {
		t.Errorf("a PG_BIN_DIR without binaries: %v, want ErrNoBinaries", err)
	}
	t.Setenv("PATH", root)
	_, err := binaries("", []string{filepath.Join(root, "none*")})
	if !errors.Is(err, ErrNoBinaries) || !strings.Contains(err.Error(), "PATH") || !strings.Contains(err.Error(), "apt-get install") {
		t.Errorf("no binaries: %v, want the searched places and how to install them", err)
	}
}
