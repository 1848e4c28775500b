package try_test

import (
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/cli/internal/local"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/shared/postgres/pglocal"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
)

// up starts lectern up on folder and waits until the run is ready.
func up(t *testing.T, folder string) (process *clitest.Process, environ map[string]string) {
	t.Helper()
	_ = os.Remove(local.EnvFile(folder)) // a killed run leaves it
	process = clitest.Start(t, "up", "--folder", folder, "--listen", "127.0.0.1:0", "--listen-internal", "127.0.0.1:0")
	eventually.True(t, "lectern up", func() bool {
		select {
		case <-process.Ended:
			t.Fatalf("it ended: %s", &process.Stderr)
		default:
		}
		content, err := os.ReadFile(local.EnvFile(folder))
		if err != nil {
			return false
		}
		if environ, err = shell.ParseEnv(content); err != nil {
			t.Fatal(err)
		}
		return true
	})
	return process, environ
}

// postmaster returns the process id of the folder's Postgres.
func postmaster(t *testing.T, folder string) int {
	t.Helper()
	real, err := filepath.EvalSymlinks(filepath.Join(folder, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(real, "*", "postmaster.pid"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v: want one postmaster.pid", found, err)
	}
	content, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(content), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func isAlive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func refuses(url string) bool {
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err == nil {
		_ = conn.Close()
	}
	return err != nil
}

// TestUp uses one folder in every way. The folder is made, used, killed, started again, stopped, and refused as an earlier
// build left it. All uses share one run, because loading the demo project takes long.
func TestUp(t *testing.T) {
	collector := collectSpans(t)
	folder := filepath.Join(t.TempDir(), ".lectern")
	t.Cleanup(func() {
		// Where the test failed, the server ends a moment after the run that was killed.
		eventually.True(t, "Postgres is removed", func() bool { return pglocal.Remove(filepath.Join(folder, "postgres")) == nil })
	})
	process, environ := up(t, folder)
	pg := postmaster(t, folder)

	t.Run("demo project", func(t *testing.T) { testDemoProject(t, environ) })
	t.Run("get", func(t *testing.T) { testGetFromAll(t, environ) })
	t.Run("export", func(t *testing.T) { testExportFromAll(t, environ) })
	t.Run("region", func(t *testing.T) { testRegion(t, environ) })
	t.Run("check", func(t *testing.T) { testCheck(t, environ) })
	t.Run("login", func(t *testing.T) { testLoginToAll(t, environ) })
	t.Run("keys", func(t *testing.T) { testKeysOfAll(t, environ, folder) })
	t.Run("proxy", func(t *testing.T) { testProxyFromAll(t, environ, folder) })
	t.Run("first run", func(t *testing.T) {
		testPage(t, folder, "docs/tutorials/first-run.md", "ent_10000yh3", "flowpage.viewed", "allowed: one of the parameters", "90000 changes",
			"Exported 10000 entries", "Bearer [redacted]", `"allowed":true,"endpoint":"demo"`)
	})
	t.Run("copy", func(t *testing.T) {
		testPage(t, folder, "docs/tutorials/copy.md", "Copied 90000 changes", "Combination", "1 new, 0 changed")
		testPage(t, folder, "docs/tutorials/push.md", "1 new, 0 changed")
	})
	t.Run("client", func(t *testing.T) {
		testPage(t, folder, "client/README.md", `{"region":"Europe/Berlin","offsetInMinutes":120}`)
	})
	t.Run("import", func(t *testing.T) { testImportIntoAll(t, environ) })
	t.Run("erase --all", func(t *testing.T) { testEraseAll(t, environ) })
	t.Run("edge", func(t *testing.T) { testEdge(t, environ) })
	asked := askMatrix(t, environ)
	t.Run("one trace", func(t *testing.T) { testOneTrace(t, environ, collector) })
	metrics := readMetrics(t, folder)
	t.Run("demo.env is its owner's alone", func(t *testing.T) {
		info, err := os.Stat(local.EnvFile(folder))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	})
	t.Run("a second one on the folder", func(t *testing.T) {
		r := clitest.Run(t, "", nil, "up", "--folder", folder, "--listen", "127.0.0.1:0", "--listen-internal", "127.0.0.1:0")
		if r.Code != shell.ExitFailure || !strings.Contains(r.Err, "already (process "+strconv.Itoa(process.Pid)+")") {
			t.Errorf("%+v", r)
		}
	})
	t.Run("a taken port", func(t *testing.T) {
		taken := strings.TrimPrefix(environ["LECTERN_URL"], "http://")
		for _, flag := range []string{"--listen", "--listen-internal"} {
			args := []string{"up", "--folder", filepath.Join(t.TempDir(), "other"), "--listen", "127.0.0.1:0", "--listen-internal", "127.0.0.1:0", flag, taken}
			r := clitest.Run(t, "", nil, args...)
			if r.Code != shell.ExitFailure || !strings.Contains(r.Err, taken+" is taken") || !strings.Contains(r.Err, flag+" or LECTERN_LISTEN") {
				t.Errorf("%+v", r)
			}
		}
	})

	t.Run("each path went to its service", func(t *testing.T) { checkMatrix(t, asked, folder) })
	t.Run("no canary", func(t *testing.T) { checkCanaries(t, environ, collector, folder, metrics) })

	// Killed, the run leaves no process. The next run has its keys and data. A Redis that is named is used instead of the
	// one in process.
	newest := clitest.Must(t, environ, "", "get", "entries", "--limit", "1")
	process.End(t, syscall.SIGKILL)
	eventually.True(t, "Postgres ends with its parent", func() bool { return !isAlive(pg) })
	t.Setenv("REDIS_URL", redistest.Start(t).URL.Reveal())
	process, again := up(t, folder)
	pg = postmaster(t, folder)
	for _, name := range []string{"LECTERN_API_KEY", "LECTERN_INTERNAL_API_KEY", "LECTERN_ADMIN_API_KEY", "LECTERN_INGEST_API_KEY"} {
		if again[name] != environ[name] {
			t.Errorf("%s is another key than before", name)
		}
	}
	if out := clitest.Must(t, again, "", "get", "entries", "--limit", "1"); out != newest {
		t.Errorf("the newest entry is %s; want %s", out, newest)
	}

	// The end of Postgres ends the run, which says why.
	_ = syscall.Kill(pg, syscall.SIGKILL)
	eventually.Receive(t, "the end of the run without Postgres", process.Ended)
	if said := process.Stderr.String(); process.Code != shell.ExitFailure || !strings.Contains(said, "postgres has ended (signal: killed); its last words: ") {
		t.Errorf("exit code %d: %s", process.Code, said)
	}
	process, again = up(t, folder)
	pg = postmaster(t, folder)
	makeEarlier(t, again["LECTERN_SYNC_TO"])

	process.End(t, syscall.SIGTERM)
	if process.Code != shell.ExitOK {
		t.Errorf("exit code %d: %s", process.Code, &process.Stderr)
	}
	if isAlive(pg) || !refuses(again["LECTERN_URL"]) || !refuses(again["LECTERN_INTERNAL_URL"]) {
		t.Error("Postgres runs on, or an edge listens on")
	}
	if _, err := os.Stat(local.EnvFile(folder)); !os.IsNotExist(err) {
		t.Error("demo.env is left")
	}
	t.Run("a folder of an earlier build", func(t *testing.T) {
		r := clitest.Run(t, "", nil, "up", "--folder", folder, "--listen", "127.0.0.1:0", "--listen-internal", "127.0.0.1:0")
		if r.Code != shell.ExitFailure || !strings.Contains(r.Err, folder+" is of an earlier build: remove it by rm -rf '"+folder+"'\n") {
			t.Errorf("%+v", r)
		}
	})
}

// makeEarlier makes the entries of a run those of another initial migration. warehouse is the URL of another database there.
func makeEarlier(t *testing.T, warehouse string) {
	t.Helper()
	u, err := url.Parse(warehouse)
	if err != nil {
		t.Fatal(err)
	}
	u.User, u.Path = url.User(pglocal.Superuser), "/entries"
	conn, err := pgx.Connect(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `UPDATE entries_migrations SET sha256 = 'of another file' WHERE version_id > 0`); err != nil {
		t.Fatal(err)
	}
}
