package stage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Citus is a Postgres of a coordinator and workers on this machine, with the settings of a stage's own.
type Citus struct {
	// Version is the version of Citus, with its name.
	Version string

	program string
	home    string
	port    int      // the coordinator's; those of the workers follow
	nodes   []string // the superuser's URLs, in the database postgres; the coordinator's is the first
}

// citusSettings are the coordinator's settings in addition to those of each server. A two-phase commit that lost a
// worker is completed within seconds.
const citusSettings = "citus.recover_2pc_interval = '3s'\n"

// endCitusWithin bounds the stop of its servers.
const endCitusWithin = time.Minute

// StartCitus starts a coordinator and workers with the program citus in the folder kit, and installs Citus if it is
// missing. They end with the stage, or with this process, even if it is killed.
func (s *Stage) StartCitus(ctx context.Context, kit string, workers int) (*Citus, error) {
	kit, err := filepath.Abs(kit)
	if err != nil {
		return nil, err
	}
	c := &Citus{program: filepath.Join(kit, "citus"), home: filepath.Join(s.Folder, "citus")}
	if c.port, err = freePorts(ctx, 1+workers); err != nil {
		return nil, err
	}
	// As root the servers run as another user, which must be able to enter the folder.
	if err := os.Chmod(s.Folder, 0o711); err != nil {
		return nil, err
	}
	var lines strings.Builder
	own := settings()
	for _, name := range slices.Sorted(maps.Keys(own)) {
		fmt.Fprintf(&lines, "%s = '%s'\n", name, own[name])
	}
	fmt.Fprintf(&lines, "fsync = on\nfull_page_writes = on\n%s", citusSettings)
	if err := os.WriteFile(c.settings(), []byte(lines.String()), 0o644); err != nil {
		return nil, err
	}
	watchdog, err := startWatchdog(c.program, c.home, c.port)
	if err != nil {
		return nil, err
	}
	s.onClose(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), endCitusWithin)
		defer cancel()
		_, err := c.run(ctx, "down")
		if err == nil {
			watchdog.stop()
		}
		return err // the watchdog tries again
	})
	if _, err := c.run(ctx, "install"); err != nil {
		return nil, err
	}
	coordinator, err := c.run(ctx, "up", strconv.Itoa(workers))
	if err != nil {
		return nil, err
	}
	return c, c.discover(ctx, strings.TrimSpace(coordinator))
}

func (c *Citus) settings() string { return c.home + ".conf" }

// run runs the kit's program and returns its output.
func (c *Citus) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, c.program, args...)
	cmd.Env = append(os.Environ(), "CITUS_HOME="+c.home, "CITUS_PORT="+strconv.Itoa(c.port), "CITUS_CONF="+c.settings(), "CITUS_DB=citus")
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("citus %s: %w\n%s", strings.Join(args, " "), err, log.String())
	}
	return out.String(), nil
}

// discover asks the coordinator, by its superuser's URL, for the nodes.
func (c *Citus) discover(ctx context.Context, coordinator string) error {
	u, err := url.Parse(coordinator)
	if err != nil {
		return err
	}
	return Database{Owner: coordinator}.connected(ctx, func(conn *pgx.Conn) error {
		var version string
		if err := conn.QueryRow(ctx, `SELECT citus_version()`).Scan(&version); err != nil {
			return err
		}
		if words := strings.Fields(version); len(words) > 1 {
			c.Version = strings.Join(words[:2], " ")
		}
		rows, err := conn.Query(ctx, `SELECT nodename, nodeport FROM pg_dist_node WHERE noderole = 'primary' ORDER BY groupid`)
		if err != nil {
			return err
		}
		c.nodes, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
			var host string
			var port int
			err := row.Scan(&host, &port)
			node := *u
			node.Host, node.Path = net.JoinHostPort(host, strconv.Itoa(port)), "/postgres"
			return node.String(), err
		})
		return err
	})
}

// Database makes a database and its three roles on the coordinator and on the first workers of the given number. Its
// distributed tables are on these workers only.
func (c *Citus) Database(ctx context.Context, name string, workers int) (Database, error) {
	owner, reader, ingest := name+"_owner", name+"_reader", name+"_ingest"
	nodes := c.nodes[:1+workers]
	for _, node := range nodes {
		err := Database{Owner: node}.Run(ctx, "CREATE ROLE "+owner+" LOGIN", "CREATE ROLE "+reader+" LOGIN", "CREATE ROLE "+ingest+" LOGIN",
			"CREATE DATABASE "+name+" OWNER "+owner)
		if err == nil {
			err = Database{Owner: of(node, "postgres", name)}.Run(ctx, "CREATE EXTENSION citus")
		}
		if err != nil {
			return Database{}, err
		}
	}
	join := make([]string, len(nodes))
	for i, node := range nodes {
		u, err := url.Parse(node)
		if err != nil {
			return Database{}, err
		}
		join[i] = fmt.Sprintf("SELECT citus_add_node('%s', %s)", u.Hostname(), u.Port())
		if i == 0 {
			join[i] = fmt.Sprintf("SELECT citus_set_coordinator_host('%s', %s)", u.Hostname(), u.Port())
		}
	}
	first := nodes[0]
	return Database{
		Owner: of(first, owner, name), Reader: of(first, reader, name), Ingest: of(first, ingest, name), servers: nodes,
	}, Database{Owner: of(first, "postgres", name)}.Run(ctx, join...)
}

// of returns the URL by which a role reaches a database of the node.
func of(node, role, database string) string {
	u, err := url.Parse(node)
	if err != nil {
		return ""
	}
	u.User, u.Path = url.User(role), "/"+database
	return u.String()
}

// CPU returns the processor time of the coordinator and of all workers since their start, with all of their
// processes.
func (c *Citus) CPU() (coordinator, workers time.Duration, err error) {
	postmasters := make([]int, len(c.nodes))
	for i := range c.nodes {
		b, err := os.ReadFile(filepath.Join(c.home, "node"+strconv.Itoa(i), "postmaster.pid"))
		if err != nil {
			return 0, 0, err
		}
		pid, _, _ := strings.Cut(string(b), "\n")
		if postmasters[i], err = strconv.Atoi(pid); err != nil {
			return 0, 0, err
		}
	}
	if coordinator, err = serversTime(postmasters[0]); err != nil {
		return 0, 0, err
	}
	workers, err = serversTime(postmasters[1:]...)
	return coordinator, workers, err
}

// freePorts returns the first of n consecutive TCP ports on which nothing listens. They are below the range of
// ephemeral ports.
func freePorts(ctx context.Context, n int) (int, error) {
	const low, high = 15_000, 32_000
	for range 50 {
		first := low + rand.IntN(high-low-n)
		if free(ctx, first, n) {
			return first, nil
		}
	}
	return 0, errors.New("no free ports in a row")
}

func free(ctx context.Context, first, n int) bool {
	for port := first; port < first+n; port++ {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}
