// Package stage starts the programs of the benchmarks, and stops them afterwards. The programs are a Postgres, a Redis,
// and services as processes, built as they are released. The package does not import the code of a service. A function
// without an error result panics by package must if it fails.
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

	"github.com/lectern-dev/lectern/bench/internal/must"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/postgres/pglocal"
	"github.com/lectern-dev/lectern/shared/shutdown"
)

// IngestKey is the ingest key that the services of a stage accept in the header X-Api-Key.
const IngestKey = "benchmark-ingest-key-0123456789"

// Stage runs the programs for one version of the source. Each version has its own Postgres and Redis, because two
// versions may have different schemas and different keys in Redis.
type Stage struct {
	// Root is the root folder of the source that the stage builds.
	Root string
	// Folder has the temporary files of the run, such as logs and binaries. Close removes the folder.
	Folder string

	postgres *pglocal.Server // with fsync, reached over TCP
	redisURL string
	auth     Database
	parts    shutdown.Stack
	built    map[string]string
}

// New returns a stage for the source at root, with no program started. The caller calls Open, and Close at the end.
func New(root string) *Stage {
	s := &Stage{Root: root, Folder: must.Get(os.MkdirTemp("", "lectern-bench-")), built: map[string]string{}}
	s.onClose(func() error { return os.RemoveAll(s.Folder) })
	return s
}

// Open starts Postgres and Redis, and makes the database that stores the API keys.
func (s *Stage) Open(ctx context.Context) {
	s.startPostgres(ctx)
	s.startRedis(ctx)
	s.auth = s.Database(ctx, "auth")
	s.Migrated(ctx, Definition{Name: "entries"}) // also migrates the database of the keys
}

// Close stops all programs in the reverse order of their start, and removes the data.
func (s *Stage) Close() error {
	return s.parts.Stop(time.Minute)
}

func (s *Stage) onClose(stop func() error) {
	s.parts.Add(func(context.Context) error { return stop() })
}

func (s *Stage) startPostgres(ctx context.Context) {
	folder := filepath.Join(s.Folder, "postgres")
	s.postgres = must.Get(pglocal.Start(ctx, pglocal.Options{Dir: folder, Port: freePort(ctx), Settings: map[string]string{
		"shared_buffers":       "1GB",
		"max_connections":      "200",
		"max_wal_size":         "8GB", // no checkpoint falls into a round
		"checkpoint_timeout":   "1h",
		"maintenance_work_mem": "256MB",
		"random_page_cost":     "1.1",
		"autovacuum":           "off", // no vacuum falls into a round, unless the row runs VACUUM
		"max_parallel_workers": "0",
		"effective_cache_size": "4GB",
		"password_encryption":  "scram-sha-256",
	}}))
	s.onClose(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		return errors.Join(s.postgres.Stop(ctx), pglocal.Remove(folder))
	})
}

func (s *Stage) startRedis(ctx context.Context) {
	port := freePort(ctx)
	address := "127.0.0.1:" + strconv.Itoa(port)
	cmd := exec.Command("redis-server", "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", s.Folder)
	s.redisURL = "redis://" + address
	s.start(ctx, cmd, "redis", func() bool {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

// Keys makes an API key for each of the projects, with the default scopes, and returns the keys by project. Keys
// inserts all keys by one COPY.
func (s *Stage) Keys(ctx context.Context, projects []string) map[string]string {
	keys := make(map[string]string, len(projects))
	s.auth.Load(ctx, "api_keys", []string{"project_id", "key_hash", "key_id", "scopes"}, len(projects), func(i int) []any {
		key, hash := auth.Mint()
		keys[projects[i]] = key.Reveal()
		return []any{projects[i], hash[:], auth.NewKeyID(), auth.DefaultScopes.Names()}
	})
	s.auth.Run(ctx, "VACUUM (ANALYZE) api_keys")
	return keys
}

// Build compiles the command in a folder of the source and returns the path of the binary. A second call returns the
// same binary.
func (s *Stage) Build(ctx context.Context, folder string) string {
	if path, ok := s.built[folder]; ok {
		return path
	}
	path := filepath.Join(s.Folder, "bin-"+filepath.Base(folder))
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "./"+folder)
	cmd.Dir = s.Root
	cmd.Env = append(os.Environ(), "GOWORK="+filepath.Join(s.Root, "go.work"))
	if out, err := cmd.CombinedOutput(); err != nil {
		must.Do(fmt.Errorf("build %s: %w\n%s", folder, err, out))
	}
	s.built[folder] = path
	return path
}

// freePort returns a TCP port of the loopback interface on which nothing listens.
func freePort(ctx context.Context) int {
	l := must.Get(new(net.ListenConfig).Listen(ctx, "tcp4", "127.0.0.1:0"))
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
