// Package stage starts the programs of the benchmarks and removes them afterwards. These are a Postgres, a Redis, and
// services as processes, built as they are released. It runs no code of a service.
package stage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/keyring"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/shutdown"
	"github.com/lectern-dev/lectern/shared/testing/pglocal"
)

// Keys that the services of a stage accept.
const (
	IngestKey   = "benchmark-ingest-key-0123456789"
	InternalKey = "benchmark-internal-key-0123456789"
)

// Stage holds the programs that run for the benchmarks.
type Stage struct {
	// Root is the folder of the source.
	Root string
	// Folder has the files of the run.
	Folder string
	// Postgres has fsync on and 1 GB of buffers; it is reached over TCP.
	Postgres *pglocal.Server
	// Profiles lets services serve Go's profiles at their internal address.
	Profiles bool

	redisURL string
	redis    *Process
	auth     Database
	admin    *keyring.Admin
	parts    shutdown.Stack
	built    map[string]string
}

// Open starts Postgres and Redis for the source at root. The caller closes the stage.
func Open(ctx context.Context, root string) (_ *Stage, err error) {
	folder, err := os.MkdirTemp("", "lectern-bench-")
	if err != nil {
		return nil, err
	}
	s := &Stage{Root: root, Folder: folder, built: map[string]string{}}
	s.onClose(func() error { return os.RemoveAll(folder) })
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if err := s.startPostgres(ctx); err != nil {
		return nil, err
	}
	if err := s.startRedis(ctx); err != nil {
		return nil, err
	}
	return s, s.openAuth(ctx)
}

// Close ends all programs and removes the data.
func (s *Stage) Close() error {
	return s.parts.Stop(closeTimeout)
}

func (s *Stage) onClose(stop func() error) {
	s.parts.Add(func(context.Context) error { return stop() })
}

// closeTimeout bounds the shutdown of a stage.
const closeTimeout = time.Minute

func (s *Stage) startPostgres(ctx context.Context) error {
	folder := filepath.Join(s.Folder, "postgres")
	pg, err := pglocal.Start(ctx, pglocal.Options{Dir: folder, Port: pglocal.FreePort, Settings: settings()})
	if err != nil {
		return err
	}
	s.Postgres = pg
	s.onClose(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		return errors.Join(pg.Stop(ctx), pglocal.Remove(folder))
	})
	return nil
}

// settings are those of every Postgres server of a stage.
func settings() map[string]string {
	return map[string]string{
		"shared_buffers":                      "1GB",
		"max_connections":                     "200",
		"max_wal_size":                        "8GB", // no checkpoint falls into a round
		"checkpoint_timeout":                  "1h",
		"maintenance_work_mem":                "256MB",
		"random_page_cost":                    "1.1",
		"autovacuum":                          "off", // nor does a vacuum, unless a row runs one
		"max_parallel_workers":                "0",
		"log_min_duration_statement":          "-1",
		"default_statistics_target":           "100",
		"effective_cache_size":                "4GB",
		"password_encryption":                 "scram-sha-256",
		"track_io_timing":                     "off",
		"idle_in_transaction_session_timeout": "60000",
	}
}

func (s *Stage) startRedis(ctx context.Context) error {
	port, err := FreePort(ctx)
	if err != nil {
		return err
	}
	cmd := exec.Command("redis-server", "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", s.Folder)
	p, err := start(cmd, filepath.Join(s.Folder, "redis.log"))
	if err != nil {
		return fmt.Errorf("start redis-server: %w", err)
	}
	s.onClose(p.Stop)
	s.redis = p
	s.redisURL = "redis://127.0.0.1:" + strconv.Itoa(port)
	return p.until(ctx, func() bool {
		conn, err := net.DialTimeout("tcp", "127.0.0.1:"+strconv.Itoa(port), time.Second)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

// openAuth makes the key database and the minter of its keys.
func (s *Stage) openAuth(ctx context.Context) error {
	db, err := s.Database(ctx, "auth")
	if err != nil {
		return err
	}
	s.auth = db
	var cfg auth.Config
	err = config.Load(&cfg, map[string]string{"AUTH_DATABASE_URL": db.Reader, "AUTH_ADMIN_DATABASE_URL": db.Owner, "AUTH_MIGRATE_DATABASE_URL": db.Owner})
	if err != nil {
		return err
	}
	if err := keyring.Migrate(ctx, cfg, discard()); err != nil {
		return err
	}
	if s.admin, err = keyring.OpenAdmin(ctx, cfg, keyring.Options{}); err != nil {
		return err
	}
	s.onClose(s.admin.Close)
	return nil
}

// Key mints a key of the project with the scopes that a key has by default.
func (s *Stage) Key(ctx context.Context, project string) (string, error) {
	key, _, err := s.admin.Mint(ctx, pgkeys.MintOptions{ProjectID: project})
	return key.Reveal(), err
}

// Keys mints a key for each of the projects, all at once.
func (s *Stage) Keys(ctx context.Context, projects []string) ([]string, error) {
	keys := make([]string, len(projects))
	columns := []string{"project_id", "key_hash", "key_id", "scopes"}
	err := s.auth.Load(ctx, "api_keys", columns, len(keys), func(i int) []any {
		key, hash := auth.Mint()
		keys[i] = key.Reveal()
		return []any{projects[i], hash[:], auth.NewKeyID(), auth.DefaultScopes.Names()}
	})
	if err == nil {
		err = s.auth.Run(ctx, "VACUUM (ANALYZE) api_keys")
	}
	return keys, err
}

// Build compiles the command in a folder of the source as it is released, once, and returns its path.
func (s *Stage) Build(ctx context.Context, folder string) (string, error) {
	if path, ok := s.built[folder]; ok {
		return path, nil
	}
	path := filepath.Join(s.Folder, "bin-"+filepath.Base(folder))
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", path, "./"+folder)
	cmd.Dir = s.Root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", folder, err, out)
	}
	s.built[folder] = path
	return path, nil
}

// FreePort returns a TCP port of the loopback interface on which nothing listens.
func FreePort(ctx context.Context) (int, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
