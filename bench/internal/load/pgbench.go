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

	"github.com/lectern-dev/lectern/shared/testing/pglocal"
)

// SQL is a load of one statement on a database, by pgbench in its mode "prepared".
type SQL struct {
	// WarmUp is how long, in whole seconds, each run goes on before it counts: where tables are distributed, a
	// connection's first statements make connections themselves. 0: all counts.
	WarmUp time.Duration

	script    string
	variables map[string]string
}

// NewSQL prepares a load, with its file in folder under that name. script is pgbench's; variables are set
// beforehand.
func NewSQL(folder, name, script string, variables map[string]string) (*SQL, error) {
	s := &SQL{script: filepath.Join(folder, name+".sql"), variables: variables}
	return s, os.WriteFile(s.script, []byte(script), 0o600)
}

var tps = regexp.MustCompile(`(?m)^tps = ([0-9.]+) \(without initial connection time\)`)

var progress = regexp.MustCompile(`(?m)^progress: ([0-9.]+) s, ([0-9.]+) tps`)

// Run runs the statement on the database at url over that many connections for d, in whole seconds.
func (s *SQL) Run(ctx context.Context, databaseURL string, connections int, d time.Duration) (Rate, error) {
	u, err := url.Parse(databaseURL)
	if err != nil {
		return Rate{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.WarmUp+d+time.Minute)
	defer cancel()
	whole := d
	if s.WarmUp > 0 {
		whole += s.WarmUp + time.Second // it does not say how its last second was
	}
	args := []string{"-n", "-M", "prepared", "-c", strconv.Itoa(connections), "-j", "1", "-T", strconv.Itoa(int(whole.Seconds())),
		"-f", s.script, "-h", u.Hostname(), "-p", u.Port(), "-U", u.User.Username()}
	if s.WarmUp > 0 {
		args = append(args, "-P", "1")
	}
	for name, value := range s.variables {
		args = append(args, "-D", name+"="+value)
	}
	cmd := exec.CommandContext(ctx, pgbench(), append(args, u.Path[1:])...)
	password, _ := u.User.Password()
	cmd.Env = append(os.Environ(), "PGPASSWORD="+password, "PGSSLMODE=disable")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return Rate{}, fmt.Errorf("pgbench: %w\n%s", err, out)
	}
	perSecond, ok := rate(string(out), s.WarmUp, d)
	if !ok {
		return Rate{}, fmt.Errorf("pgbench said no rate:\n%s", out)
	}
	return Rate{PerSecond: perSecond}, nil
}

// rate reads what pgbench reports for d after a warm-up, or for the whole run without one.
func rate(said string, warmUp, d time.Duration) (perSecond float64, ok bool) {
	if warmUp == 0 {
		m := tps.FindStringSubmatch(said)
		if m == nil {
			return 0, false
		}
		perSecond, err := strconv.ParseFloat(m[1], 64)
		return perSecond, err == nil
	}
	n := 0
	for _, m := range progress.FindAllStringSubmatch(said, -1) {
		at, err1 := strconv.ParseFloat(m[1], 64)
		of, err2 := strconv.ParseFloat(m[2], 64)
		if err1 != nil || err2 != nil {
			return 0, false
		}
		const slack = 0.5 // of a second: it is late now and then
		if at > warmUp.Seconds()+slack && at < (warmUp+d).Seconds()+slack {
			perSecond += of
			n++
		}
	}
	return perSecond / float64(max(n, 1)), perSecond > 0
}

// pgbench is the one that came with the server, where there is one: Debian's on PATH is a script that
// looks for it.
func pgbench() string {
	if folder, err := pglocal.Binaries(); err == nil {
		if path := filepath.Join(folder, "pgbench"); executable(path) {
			return path
		}
	}
	return "pgbench"
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&0o111 != 0
}
