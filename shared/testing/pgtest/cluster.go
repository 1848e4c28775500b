package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/testing/eventually"
)

// Cluster is a Citus cluster for one test, which may kill, pause and add workers.
type Cluster struct {
	*Instance

	kit  string // the program that starts and stops the cluster
	home string
	port int // the coordinator's; the workers have the next ones

	spare member // a worker that no database uses yet
}

// Kit returns the folder in CITUS_KIT, which has a program citus that starts a cluster. If CITUS_KIT is not set, Kit
// skips t, or fails it if CI=true.
func Kit(t testing.TB) string {
	t.Helper()
	kit := os.Getenv("CITUS_KIT")
	if kit == "" {
		const why = "pgtest: needs CITUS_KIT to name the folder of a program citus that starts a cluster"
		if os.Getenv("CI") == "true" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	return kit
}

// NewCluster starts a coordinator and workers with the program citus in the folder in CITUS_KIT. Each node has the
// given settings in addition to the usual ones. When t or the process ends, a process stops and removes the cluster.
// The removal takes up to 20 seconds, and t does not wait for the removal. Without CITUS_KIT, NewCluster does the same as [Kit].
func NewCluster(t testing.TB, workers int, settings ...string) *Cluster {
	t.Helper()
	c := &Cluster{kit: filepath.Join(Kit(t), "citus")}
	dir, err := os.MkdirTemp("", "lectern-citus-")
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	// Under root the servers run as another user, which creates the folder in it.
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	c.home = filepath.Join(dir, "home")
	if c.port, err = freeRange(maxWorkers + 1); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	conf := filepath.Join(dir, "settings")
	if err := os.WriteFile(conf, []byte(strings.Join(settings, "\n")+"\n"), 0o644); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	j, err := newScriptJanitor(endCluster, c.kit, c.home, strconv.Itoa(c.port), dir)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(j.cleanUp)
	c.must(t, "install")
	url := c.must(t, "up", strconv.Itoa(workers+1))
	if c.Instance, err = given(strings.TrimSpace(url)); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	c.members, c.spare = c.members[:workers+1], c.members[workers+1]
	c.disposable = true
	return c
}

// maxWorkers is the number of ports that a cluster reserves for its workers.
const maxWorkers = 4

// endCluster is a script that stops a cluster after its test binary has ended.
const endCluster = `
read -r _
CITUS_HOME=$2 CITUS_PORT=$3 "$1" down
rm -rf -- "$4"
`

// Kill kills a worker at once, like a crash. The worker keeps its data.
func (c *Cluster) Kill(t testing.TB, worker int) {
	t.Helper()
	c.must(t, "kill-worker", strconv.Itoa(worker))
}

// Start starts a killed worker. On a busy machine, a worker may recover from the crash for longer than the program of the kit
// waits, so Start tries again.
func (c *Cluster) Start(t testing.TB, worker int) {
	t.Helper()
	eventually.Succeeds(t, "the worker starts", func() error {
		_, err := c.run("start-worker", strconv.Itoa(worker))
		return err
	})
}

// Grow adds one more worker to db, which has the given schema. The worker has no shards yet.
func (c *Cluster) Grow(t testing.TB, db DB, schema string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	m := c.spare
	err := c.connectTo(ctx, m, plainDatabase, func(conn *pgx.Conn) error {
		for _, role := range []string{"owner", "reader", "ingest"} {
			if err := makeRole(ctx, conn, schema+"_"+role); err != nil {
				return err
			}
		}
		_, err := conn.Exec(ctx, "CREATE DATABASE "+quote(db.Name)+" OWNER "+quote(schema+"_owner"))
		return err
	})
	if err == nil {
		err = c.connectTo(ctx, m, db.Name, func(conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, `CREATE EXTENSION citus`)
			return err
		})
	}
	if err == nil {
		err = c.connect(ctx, db.Name, func(conn *pgx.Conn) error {
			// Do not copy settings of roles and the template of db, because their database does not exist on the new
			// worker.
			for _, sql := range []string{
				`SET citus.enable_alter_role_set_propagation = off`,
				`DELETE FROM pg_dist_object WHERE classid = 'pg_database'::regclass`,
			} {
				if _, err := conn.Exec(ctx, sql); err != nil {
					return err
				}
			}
			_, err := conn.Exec(ctx, `SELECT citus_add_node($1, $2)`, m.host, m.port)
			return err
		})
	}
	if err != nil {
		log, _ := c.run("logs", strconv.Itoa(len(c.members)))
		t.Fatalf("pgtest: add a worker: %v; the end of its log:\n%s", err, log)
	}
	c.members = append(c.members, m)
}

// Pause pauses all processes of a worker (SIGSTOP). Connections stay open, but the worker does not answer.
// [Cluster.Resume] or the end of t ends the pause.
func (c *Cluster) Pause(t testing.TB, worker int) {
	t.Helper()
	t.Cleanup(func() { c.signal(worker, syscall.SIGCONT) })
	if c.signal(worker, syscall.SIGSTOP) == 0 {
		t.Fatalf("pgtest: worker %d does not run", worker)
	}
}

// Resume ends [Cluster.Pause].
func (c *Cluster) Resume(t testing.TB, worker int) {
	t.Helper()
	if c.signal(worker, syscall.SIGCONT) == 0 {
		t.Fatalf("pgtest: worker %d does not run", worker)
	}
}

// signal signals every process whose working folder is the worker's, and returns their number.
func (c *Cluster) signal(worker int, sig syscall.Signal) (n int) {
	dir := filepath.Join(c.home, "node"+strconv.Itoa(worker))
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		if at, err := os.Readlink(link); err != nil || at != dir {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		if err == nil && syscall.Kill(pid, sig) == nil {
			n++
		}
	}
	return n
}

func (c *Cluster) must(t testing.TB, args ...string) string {
	t.Helper()
	out, err := c.run(args...)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return out
}

func (c *Cluster) run(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.kit, args...)
	cmd.Env = append(os.Environ(), "CITUS_HOME="+c.home, "CITUS_PORT="+strconv.Itoa(c.port),
		"CITUS_CONF="+filepath.Join(filepath.Dir(c.home), "settings"))
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("citus %s: %w\n%s", strings.Join(args, " "), err, log.String())
	}
	return out.String(), nil
}

// freeRange returns the first of n consecutive free ports. They are below the ports that systems give to clients, one of
// which could take a port before the cluster does.
func freeRange(n int) (first int, err error) {
	for range 50 {
		first = 10_000 + rand.IntN(20_000)
		free := true
		for p := first; free && p < first+n; p++ {
			l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p)))
			if free = err == nil; free {
				_ = l.Close()
			}
		}
		if free {
			return first, nil
		}
	}
	return 0, errors.New("no free ports in a row")
}
