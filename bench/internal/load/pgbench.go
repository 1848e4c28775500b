package load

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/lectern-dev/lectern/shared/postgres/pglocal"
)

// SQL is a benchmark load: pgbench sends one statement to a database repeatedly, as a prepared statement.
type SQL struct {
	script    string
	variables map[string]string
}

// NewSQL writes script, which is in pgbench's language, to the file name.sql in folder. pgbench sets variables before
// the script runs.
func NewSQL(folder, name, script string, variables map[string]string) (*SQL, error) {
	s := &SQL{script: filepath.Join(folder, name+".sql"), variables: variables}
	return s, os.WriteFile(s.script, []byte(script), 0o600)
}

var tps = regexp.MustCompile(`(?m)^tps = ([0-9.]+) \(without initial connection time\)`)

// Run lets pgbench run the script on the database at databaseURL over the given number of connections. d is how long,
// in whole seconds. perSecond is the rate of transactions, without the time to connect.
func (s *SQL) Run(ctx context.Context, databaseURL string, connections int, d time.Duration) (perSecond float64, err error) {
	u, err := url.Parse(databaseURL)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, d+time.Minute)
	defer cancel()
	args := []string{"-n", "-M", "prepared", "-c", strconv.Itoa(connections), "-j", "1", "-T", strconv.Itoa(int(d.Seconds())),
		"-f", s.script, "-h", u.Hostname(), "-p", u.Port(), "-U", u.User.Username()}
	for name, value := range s.variables {
		args = append(args, "-D", name+"="+value)
	}
	cmd := exec.CommandContext(ctx, pgbench(), append(args, u.Path[1:])...)
	password, _ := u.User.Password()
	cmd.Env = append(os.Environ(), "PGPASSWORD="+password, "PGSSLMODE=disable")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("pgbench: %w\n%s", err, out)
	}
	m := tps.FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("pgbench printed no rate:\n%s", out)
	}
	return strconv.ParseFloat(string(m[1]), 64)
}

// pgbench returns the path of the pgbench of the installed Postgres server, or "pgbench" if there is none. Debian's
// pgbench on PATH is a script that first searches for the server's version.
func pgbench() string {
	if folder, err := pglocal.Binaries(); err == nil {
		path := filepath.Join(folder, "pgbench")
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return "pgbench"
}
