package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/cli/internal/demo"
	"github.com/lectern-dev/lectern/cli/internal/local"
	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/shared/pglocal"
)

// up starts lectern up on folder and waits until it is ready.
func up(t *testing.T, folder string, args ...string) (process *running, environ map[string]string, took time.Duration) {
	t.Helper()
	if _, err := pglocal.Binaries(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	_ = os.Remove(local.EnvFile(folder)) // a killed run leaves it
	began := time.Now()
	process = start(t, append([]string{"up", "--folder", folder, "--listen", "127.0.0.1:0", "--listen-internal", "127.0.0.1:0"}, args...)...)
	until(t, "lectern up", func() bool {
		select {
		case <-process.ended:
			t.Fatalf("it ended: %s", &process.stderr)
		default:
		}
		content, err := os.ReadFile(local.EnvFile(folder))
		if err != nil {
			return false
		}
		if environ, err = parseEnv(content); err != nil {
			t.Fatal(err)
		}
		return true
	})
	return process, environ, time.Since(began)
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

func TestUp(t *testing.T) {
	folder := filepath.Join(t.TempDir(), ".lectern")
	t.Cleanup(func() {
		if err := pglocal.Remove(filepath.Join(folder, "postgres")); err != nil {
			t.Error(err)
		}
	})
	process, environ, _ := up(t, folder)
	pg := postmaster(t, folder)

	t.Run("the demo project is there, all of it", func(t *testing.T) {
		r := lectern(t, "", environ, "export", "entries", "--sort", "created_at", "--direction", "ASC")
		var want bytes.Buffer
		if err := demo.WriteEntries(&want); err != nil {
			t.Fatal(err)
		}
		if r.code != 0 || r.out != want.String() {
			t.Errorf("exit code %d, %d bytes; want the %d that were made: %s", r.code, len(r.out), want.Len(), r.err)
		}
		r = lectern(t, "", environ, "export", "page-views", "--include-urls")
		views := 0
		for line := range strings.Lines(r.out) {
			var entry client.EntryPageViews
			if err := json.Unmarshal([]byte(line), &entry); err != nil {
				t.Fatal(err)
			}
			if len(entry.PageViews) == 0 {
				t.Errorf("%s has no page view", entry.EntryID)
			}
			views += len(entry.PageViews)
		}
		want.Reset()
		if err := demo.WriteEvents(&want); err != nil {
			t.Fatal(err)
		}
		if wanted := bytes.Count(want.Bytes(), []byte(`"event_type":"flowpage.viewed"`)); views != wanted {
			t.Errorf("%d page views, want %d", views, wanted)
		}
	})
	t.Run("paths that no service has", func(t *testing.T) {
		for _, url := range []string{environ["LECTERN_URL"] + "/internal/entries", environ["LECTERN_URL"] + "/metrics", environ["LECTERN_INTERNAL_URL"] + "/projects/pr_demo/entries"} {
			resp, err := http.Get(url)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusNotFound {
				t.Errorf("%s: %d, want 404", url, resp.StatusCode)
			}
		}
	})
	t.Run("links lead through the edge", func(t *testing.T) {
		req, _ := http.NewRequest(http.MethodGet, environ["LECTERN_URL"]+"/projects/pr_demo/entries", nil)
		req.Header.Set("X-Api-Key", environ["LECTERN_API_KEY"])
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if link := resp.Header.Get("Link"); !strings.HasPrefix(link, "<"+environ["LECTERN_URL"]+"/projects/pr_demo/entries?") {
			t.Errorf("Link %q does not begin with %s", link, environ["LECTERN_URL"])
		}
	})
	t.Run("demo.env is its owner's alone", func(t *testing.T) {
		info, err := os.Stat(local.EnvFile(folder))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	})
	t.Run("a second one on the folder", func(t *testing.T) {
		r := lectern(t, "", nil, "up", "--folder", folder, "--listen", "127.0.0.1:0", "--listen-internal", "127.0.0.1:0")
		if r.code != exitFailure || !strings.Contains(r.err, "already (process "+strconv.Itoa(process.Pid)+")") {
			t.Errorf("%+v", r)
		}
	})
	t.Run("a taken port", func(t *testing.T) {
		taken := strings.TrimPrefix(environ["LECTERN_URL"], "http://")
		for _, flag := range []string{"--listen", "--listen-internal"} {
			args := []string{"up", "--folder", filepath.Join(t.TempDir(), "other"), "--listen", "127.0.0.1:0", "--listen-internal", "127.0.0.1:0", flag, taken}
			r := lectern(t, "", nil, args...)
			if r.code != exitFailure || !strings.Contains(r.err, taken+" is taken") || !strings.Contains(r.err, flag+" or LECTERN_LISTEN") {
				t.Errorf("%+v", r)
			}
		}
	})

	stopped := func(sig os.Signal) {
		t.Helper()
		process.end(t, sig)
		if process.code != 0 {
			t.Errorf("exit code %d after %v: %s", process.code, sig, &process.stderr)
		}
		if isAlive(pg) {
			t.Errorf("Postgres runs on after %v", sig)
		}
		if !refuses(environ["LECTERN_URL"]) || !refuses(environ["LECTERN_INTERNAL_URL"]) {
			t.Errorf("the edge listens on after %v", sig)
		}
		if _, err := os.Stat(local.EnvFile(folder)); !os.IsNotExist(err) {
			t.Errorf("demo.env is left after %v", sig)
		}
	}
	before := environ
	stopped(syscall.SIGTERM)

	var took time.Duration
	process, environ, took = up(t, folder)
	pg = postmaster(t, folder)
	t.Logf("warm start: %v", took)
	if took > 5*time.Second {
		t.Errorf("a warm start took %v, want less than 5 s", took)
	}
	if environ["LECTERN_API_KEY"] != before["LECTERN_API_KEY"] || environ["LECTERN_INTERNAL_API_KEY"] != before["LECTERN_INTERNAL_API_KEY"] {
		t.Error("the keys are others than before")
	}
	first := lectern(t, "", environ, "get", "entries", "--limit", "1")
	if first.code != 0 || !strings.Contains(first.out, "pr_demo") {
		t.Errorf("%+v", first)
	}

	// Killed, it leaves nothing running and starts again.
	process.end(t, syscall.SIGKILL)
	until(t, "Postgres ends with its parent", func() bool { return !isAlive(pg) })
	process, environ, _ = up(t, folder)
	pg = postmaster(t, folder)
	if diff := cmp.Diff(first.out, lectern(t, "", environ, "get", "entries", "--limit", "1").out); diff != "" {
		t.Error(diff)
	}
	stopped(os.Interrupt)
}
