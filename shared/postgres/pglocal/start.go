package pglocal

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

const poll = 4 * time.Millisecond

// initialize creates the data folder, from the archive or by initdb, unless the folder has data. initialize creates the
// data under another name and renames them when they are complete, so that an incomplete folder is never used.
func (s *Server) initialize(ctx context.Context) error {
	f := s.folder
	if there, err := s.holdsData(); there || err != nil {
		return err
	}
	if _, err := os.Stat(f.data()); err == nil {
		return fmt.Errorf("%s is not a data folder that was made here", f.data())
	}
	if s.options.Cache == "" {
		return s.initdb(ctx)
	}
	archive, err := s.archive(ctx)
	if err != nil {
		return err
	}
	err = s.unpack(ctx, archive)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := s.initdb(ctx); err != nil {
		return err
	}
	_ = s.pack(ctx, archive) // without an archive, the next server only starts later
	return nil
}

// holdsData reports whether the folder has complete data. If the folder has a password, holdsData reads the password
// into s.
func (s *Server) holdsData() (bool, error) {
	b, err := os.ReadFile(s.folder.password())
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(b) == 0 {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s.password = strings.TrimSpace(string(b))
	_, err = os.Stat(filepath.Join(s.folder.data(), "PG_VERSION"))
	return err == nil, nil
}

func (s *Server) initdb(ctx context.Context) error {
	random := make([]byte, 16)
	_, _ = rand.Read(random) // never fails (crypto/rand)
	args := append([]string{"--pwfile=" + s.folder.password()}, initdbOptions...)
	return s.createData(ctx, hex.EncodeToString(random), "initdb", args...)
}

// createData stores the password, and makes the data folder by a program of Postgres with args. An unfinished folder has
// another name.
func (s *Server) createData(ctx context.Context, password, program string, args ...string) error {
	f := s.folder
	s.password = password
	if err := f.owner.writeFile(f.password(), []byte(password+"\n")); err != nil {
		return err
	}
	unfinished := f.data() + ".new"
	if err := os.RemoveAll(unfinished); err != nil {
		return err
	}
	args = append(args, "--pgdata="+unfinished)
	if s.options.NoSync {
		args = append(args, "--no-sync")
	}
	if err := s.run(ctx, exec.CommandContext(ctx, filepath.Join(s.bin, program), args...)); err != nil {
		return err
	}
	return os.Rename(unfinished, f.data())
}

// initdbOptions are the options of initdb that change the data that initdb makes. The name of the archive depends on
// these options.
var initdbOptions = []string{
	"--username=" + Superuser, "--encoding=UTF8", "--locale=C", "--auth-local=trust", "--auth-host=scram-sha-256", "--no-instructions",
}

// run runs cmd to its end as the server's user. The error contains the last part of the program's output.
func (s *Server) run(ctx context.Context, cmd *exec.Cmd) error {
	s.prepare(cmd)
	out := &tail{}
	if cmd.Stdout == nil {
		cmd.Stdout = out
	}
	cmd.Stderr = out
	if err := run(cmd); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), errors.Join(err, ctx.Err()), out.String())
	}
	return nil
}

// prepare sets the user and the environment of cmd. The program gets no variables of this process, such as PGPORT or
// LC_ALL.
func (s *Server) prepare(cmd *exec.Cmd) {
	cmd.Dir = s.folder.root
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "HOME=" + s.folder.root}
	cmd.SysProcAttr = attributes()
	s.folder.owner.as(cmd)
}

// start runs the server and waits until it is ready. The caller holds s.mu, or no other goroutine uses s yet.
func (s *Server) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := s.clear(ctx); err != nil {
		return fmt.Errorf("start Postgres: %w", err)
	}
	cmd := exec.Command(filepath.Join(s.bin, "postgres"), s.arguments()...)
	s.prepare(cmd)
	p, err := spawn(cmd, &tail{next: s.options.Log, full: make(chan string, 1)})
	if err != nil {
		return fmt.Errorf("start Postgres: %w", err)
	}
	if err := s.ready(ctx, p); err != nil {
		err = errors.Join(err, p.kill(s.folder))
		return fmt.Errorf("start Postgres: %w\n%s", err, p.out.String())
	}
	s.proc = p
	return nil
}

func (s *Server) arguments() []string {
	settings := map[string]string{
		"timezone":     "UTC",
		"log_timezone": "UTC",
		"cluster_name": "lectern",
	}
	if s.options.NoSync {
		for _, name := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
			settings[name] = "off"
		}
	}
	maps.Copy(settings, s.options.Settings)
	// The rest of this package depends on the following settings.
	maps.Copy(settings, map[string]string{
		"port":                    s.socketPort(),
		"listen_addresses":        "",
		"unix_socket_directories": s.folder.socket,
		"unix_socket_permissions": "0700",
		"log_destination":         "stderr",
		"logging_collector":       "off",
	})
	if s.port != NoTCP {
		settings["listen_addresses"] = "127.0.0.1"
	}
	args := []string{"-D", s.folder.data()}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	return args
}

// clear waits until no server works in the data folder, and no child of a killed server. Then clear removes a stale
// postmaster.pid. The error wraps [ErrInUse] if a server still runs.
func (s *Server) clear(ctx context.Context) error {
	f := s.folder
	wait, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	// If the server's parent was just killed, the server ends soon.
	err := until(wait, func() bool { return f.runningPID() == 0 })
	if err != nil {
		return fmt.Errorf("%w: process %d in %s", ErrInUse, f.runningPID(), f.root)
	}
	pid, _ := f.postmaster()
	if pid == 0 {
		return nil
	}
	// The children of a killed postmaster end soon. Postgres would refuse to start while they run.
	if err := until(wait, func() bool { return len(processesIn(f.data())) == 0 }); err != nil {
		return fmt.Errorf("processes %v of a killed server still work in %s", processesIn(f.data()), f.data())
	}
	// The file is stale. Postgres would also detect that, unless another process has the number now.
	return os.Remove(filepath.Join(f.data(), "postmaster.pid"))
}

// ready waits until the started process p accepts connections, and no other server. The error reports that p has ended,
// that ctx has ended first, or that p refuses connections.
func (s *Server) ready(ctx context.Context, p *process) error {
	err := until(ctx, func() bool {
		if p.ended() {
			return true
		}
		pid, status := s.folder.postmaster()
		return pid == p.pid && status == "ready"
	})
	if err != nil {
		return fmt.Errorf("it was not ready in time: %w", err)
	}
	if p.ended() {
		return errors.New("it ended at once")
	}
	conn, err := pgx.Connect(ctx, s.AdminURL())
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return conn.Ping(ctx)
}

// until waits until done returns true, or returns the error of ctx when ctx ends.
func until(ctx context.Context, done func() bool) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}
