package pglocal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// Superuser is the name of the superuser's role, which initdb creates.
	Superuser = "postgres"

	// NoTCP is the value of Options.Port for a server with a socket only.
	NoTCP = 0

	socketName = ".s.PGSQL.65535" // the longest possible name

	startTimeout = 5 * time.Minute // recovery after a crash is part of a start; a server that cannot start ends sooner
	fastTimeout  = time.Minute
	killTimeout  = 10 * time.Second
)

// ErrInUse is wrapped by the errors of [Start], [Standby] and [Remove] if another server uses the folder.
var ErrInUse = errors.New("another Postgres server runs in this folder")

// Options configures a [Server]: its folder, TCP port, settings and log.
type Options struct {
	// Dir is the server's folder. [Start] creates a missing folder, and uses the data in an existing folder. Dir may be
	// in folders that the server's user cannot enter. Dir then becomes a link to a folder in /var/tmp, whose name is a
	// hash of the path.
	Dir string

	// Port is the TCP port on 127.0.0.1, or NoTCP (the default) for the Unix socket only.
	Port int

	// NoSync disables fsync to make tests faster. A crash of the machine may lose data, but a killed server still
	// recovers.
	NoSync bool

	// Cache is a folder for an archive of the data that initdb makes. A later server with the same Cache starts with
	// that data and its password, which takes a third of the time. [Start] creates a missing folder. Empty: no archive.
	Cache string

	// Settings are parameters of postgresql.conf. Settings override the package's own settings, except those that the
	// package depends on.
	Settings map[string]string

	// Log receives the server's log. Nil discards the log. The error of a failed start contains the last part of the
	// log.
	Log io.Writer
}

// Server is a Postgres server of this process. Several goroutines may call the methods of a Server at the same time.
type Server struct {
	options  Options
	bin      string
	folder   *folder
	port     int
	password string

	mu   sync.Mutex
	proc *process // nil if stopped or killed
}

// Start runs a server and returns when the server accepts connections. On Linux, the server ends with this process. ctx
// bounds only the start. After an error, nothing is running.
//
// The error wraps [ErrNoBinaries] if the machine has no Postgres, and [ErrInUse] if another server uses the folder.
func Start(ctx context.Context, o Options) (*Server, error) {
	return launch(ctx, o, func(s *Server) error { return s.initialize(ctx) })
}

// launch locks the folder of o, calls makeData to create the data, and starts the server.
func launch(ctx context.Context, o Options, makeData func(*Server) error) (_ *Server, err error) {
	bin, err := Binaries()
	if err != nil {
		return nil, err
	}
	if o.Dir == "" {
		return nil, errors.New("start Postgres: no folder given")
	}
	f, err := openFolder(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("start Postgres: %w", err)
	}
	defer func() {
		if err != nil {
			f.release()
		}
	}()
	s := &Server{options: o, bin: bin, folder: f, port: o.Port}
	if err := makeData(s); err != nil {
		return nil, fmt.Errorf("start Postgres: %w", err)
	}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// URL returns the URL of the database db for user, through the Unix socket, without a password.
func (s *Server) URL(user, db string) string {
	u := url.URL{Scheme: "postgres", User: url.User(user), Path: "/" + db}
	query := url.Values{"host": {s.folder.socket}, "port": {s.socketPort()}, "sslmode": {"disable"}}.Encode()
	u.RawQuery = strings.ReplaceAll(query, "+", "%20") // libpq and pgx do not decode a plus as a space
	return u.String()
}

// socketPort returns the number in the name of the socket. Postgres uses the TCP port as that number.
func (s *Server) socketPort() string {
	if s.port == NoTCP {
		return "5432"
	}
	return strconv.Itoa(s.port)
}

// AdminURL returns the URL of the database postgres for the superuser, through the Unix socket.
func (s *Server) AdminURL() string { return s.URL(Superuser, "postgres") }

// TCPURL returns the URL of db for user over TCP, with the server's own password, or "" if the server has no TCP port.
// A role other than the superuser has that password only after [Server.EnsureRole].
func (s *Server) TCPURL(user, db string) string {
	if s.port == NoTCP {
		return ""
	}
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(user, s.password),
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)), Path: "/" + db, RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Port returns the TCP port on 127.0.0.1, or 0 if the server has none.
func (s *Server) Port() int { return s.port }

// Dir returns the folder of the server with links resolved. The folder may differ from Options.Dir.
func (s *Server) Dir() string { return s.folder.root }

// PID returns the process id of the postmaster, or 0 after Stop or Kill.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return 0
	}
	return s.proc.pid
}

// EnsureRole creates the role if it is missing, lets it log in, and sets its password to the server's password.
func (s *Server) EnsureRole(ctx context.Context, role string) error {
	return s.asSuperuser(ctx, func(conn *pgx.Conn) error {
		quoted := pgx.Identifier{role}.Sanitize()
		var there bool
		if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)`, role).Scan(&there); err != nil {
			return fmt.Errorf("look for the role %s: %w", role, err)
		}
		verb := "ALTER"
		if !there {
			verb = "CREATE"
		}
		// The password has only hexadecimal digits, so it needs no escaping in quotes.
		if _, err := conn.Exec(ctx, verb+" ROLE "+quoted+" LOGIN PASSWORD '"+s.password+"'"); err != nil {
			return fmt.Errorf("make the role %s: %w", role, err)
		}
		return nil
	})
}

// EnsureDatabase creates a missing database whose owner is the role owner, which must exist.
func (s *Server) EnsureDatabase(ctx context.Context, db, owner string) error {
	return s.asSuperuser(ctx, func(conn *pgx.Conn) error {
		var there bool
		err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, db).Scan(&there)
		if err != nil || there {
			return err
		}
		_, err = conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{db}.Sanitize()+" OWNER "+pgx.Identifier{owner}.Sanitize())
		if err != nil {
			return fmt.Errorf("make the database %s: %w", db, err)
		}
		return nil
	})
}

func (s *Server) asSuperuser(ctx context.Context, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, s.AdminURL())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return do(conn)
}

// Wait waits until the running server ends, or its log says that the disk is full. The error has the last lines of the
// log. Wait returns nil if ctx ends first.
func (s *Server) Wait(ctx context.Context) error {
	s.mu.Lock()
	p := s.proc
	s.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil
	case line := <-p.out.full:
		return fmt.Errorf("the disk of %s is full: %s", s.folder.root, line)
	case <-p.done:
		return fmt.Errorf("postgres has ended (%s); its last words:\n%s", p.end, p.out.last())
	}
}

// Stop shuts the server down: it closes the connections and writes everything to disk (a fast shutdown). After a
// minute, or when ctx ends, Stop forces the end and returns an error. Afterwards other processes can use the folder. If
// the server does not run, Stop only releases the folder.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.folder.release()
	return s.stop(ctx)
}

func (s *Server) stop(ctx context.Context) error {
	p := s.proc
	if p == nil {
		return nil
	}
	s.proc = nil
	p.signalAll(s.folder, syscall.SIGCONT) // a paused server would not handle the other signals
	ctx, cancel := context.WithTimeout(ctx, fastTimeout)
	defer cancel()
	p.signal(syscall.SIGINT)
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
	}
	p.signal(syscall.SIGQUIT) // immediate shutdown: the next start recovers from the log
	select {
	case <-p.done:
		return fmt.Errorf("stop Postgres: the fast shutdown was cut short: %w", ctx.Err())
	case <-time.After(killTimeout):
	}
	return errors.Join(errors.New("stop Postgres: it took neither shutdown and was killed"), p.kill(s.folder))
}

// Kill kills all of the server's processes (SIGKILL), like a crash, and keeps the folder locked. [Server.Restart]
// starts the server again.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.proc
	if p == nil {
		return nil
	}
	s.proc = nil
	return p.kill(s.folder)
}

// Pause pauses all of the server's processes (SIGSTOP). Connections stay open, but the server does not answer. The
// error reports a server that does not run. [Server.Resume] ends the pause.
func (s *Server) Pause() error { return s.signalAll(syscall.SIGSTOP) }

// Resume lets the processes that [Server.Pause] paused continue. The error reports a server that does not run.
func (s *Server) Resume() error { return s.signalAll(syscall.SIGCONT) }

func (s *Server) signalAll(sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return errors.New("postgres does not run")
	}
	s.proc.signalAll(s.folder, sig)
	return nil
}

// Restart stops a running server, and starts the server again on the same data, socket and port.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.folder.lock == nil {
		if err := s.folder.acquire(); err != nil {
			return err
		}
	}
	if err := s.stop(ctx); err != nil {
		return err
	}
	return s.start(ctx)
}

// runningPID returns the process id of a running postmaster of this folder, or 0 if there is none. After a crash,
// postmaster.pid may be stale, and another process may have the same id now.
func (f *folder) runningPID() int {
	pid, _ := f.postmaster()
	if pid == 0 || syscall.Kill(pid, 0) == syscall.ESRCH || !worksIn(pid, f.data()) {
		return 0
	}
	return pid
}

// postmaster returns the process id and the status in postmaster.pid (lines 1 and 8), or 0 and "" without the file.
func (f *folder) postmaster() (pid int, status string) {
	b, err := os.ReadFile(filepath.Join(f.data(), "postmaster.pid"))
	if err != nil {
		return 0, ""
	}
	lines := strings.Split(string(b), "\n")
	pid, err = strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil {
		return 0, ""
	}
	if len(lines) >= 8 {
		status = strings.TrimSpace(lines[7])
	}
	return pid, status
}
