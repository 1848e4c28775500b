package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/lectern-dev/lectern/cli/internal/databases"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/postgres/pglocal"
	"github.com/lectern-dev/lectern/shared/redis/redisdb"
)

// logs returns the writer for the log of the named part of a run, such as postgres.
type logs func(name string) (io.Writer, error)

// openLogs returns a function that opens a log file for each part, after it renames the file of the previous run to
// NAME.log.1. If Options.Log is set, all parts share that writer.
func (r *run) openLogs() (logs, error) {
	if r.Log != nil {
		shared := &lockedWriter{w: r.Log}
		return func(string) (io.Writer, error) { return shared, nil }, nil
	}
	folder := filepath.Join(r.Folder, "logs")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	var files []*os.File
	// This function is registered before the parts that log, so that the files are closed after these parts have
	// stopped.
	r.parts.Add(func(context.Context) error {
		var errs []error
		for _, f := range files {
			errs = append(errs, f.Close())
		}
		return errors.Join(errs...)
	})
	return func(name string) (io.Writer, error) {
		path := filepath.Join(folder, name+".log")
		if err := os.Rename(path, path+".1"); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
		return f, nil
	}, nil
}

// lockedWriter passes bytes on to w. Several goroutines may use a lockedWriter at the same time.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// Write writes p to the underlying writer, without bytes of other goroutines between.
func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// stores has the URLs of the databases of a run, as [run.startPostgres] returns them.
type stores struct {
	// urls has the URLs of each database: first by the name of the database, then by the setting that gets the URL.
	urls map[string]map[string]string
	// warehouse is the URL of a database for copies of the demo project. The database is empty until the user makes a
	// copy.
	warehouse string
}

// The services share one Postgres, while in a cluster each service may have its own Postgres. So each pool is smaller
// than in a cluster, and Postgres allows at least as many connections as all pools may open.
const (
	defaultPoolSize  = 8
	poolsEach        = 4  // of a service: to read, to ingest, to remove and to look keys up; the proxy has one of them, region one more, the console none
	spareConnections = 20 // for listeners, migrations and users with psql
)

// poolSize returns the maximum number of connections of each pool, by DATABASE_MAX_CONNS or else the default.
func (r *run) poolSize() (int, error) {
	named := r.Environ[poolSizeVariable]
	if named == "" {
		return defaultPoolSize, nil
	}
	n, err := strconv.Atoi(named)
	if err != nil || n < 1 || n > 1000 {
		return 0, fmt.Errorf("%s is %q: want 1 to 1000 here, where all services share one Postgres", poolSizeVariable, named)
	}
	return n, nil
}

const poolSizeVariable = "DATABASE_MAX_CONNS"

// startPostgres starts the private server, and creates missing databases and roles. startPostgres returns the URLs of
// all databases.
func (r *run) startPostgres(ctx context.Context, logs logs, all []service) (stores, error) {
	out, err := logs("postgres")
	if err != nil {
		return stores{}, err
	}
	folder := filepath.Join(r.Folder, "postgres")
	if _, err := os.Stat(folder); errors.Is(err, os.ErrNotExist) {
		r.Note("Making a Postgres in %s.", folder)
	}
	perPool, err := r.poolSize()
	if err != nil {
		return stores{}, err
	}
	connections := perPool*poolsEach*len(all) + spareConnections
	pg, err := pglocal.Start(ctx, pglocal.Options{
		Dir: folder, Log: out, Settings: map[string]string{"max_connections": strconv.Itoa(connections)},
	})
	switch {
	case errors.Is(err, pglocal.ErrNoBinaries):
		return stores{}, fmt.Errorf("%w: install Postgres (make setup does)", err)
	case err != nil:
		return stores{}, err
	}
	r.parts.Add(pg.Stop)
	r.parts.Go(func(ctx context.Context) {
		if err := pg.Wait(ctx); err != nil {
			r.fail(err)
		}
	})
	warehouse := databases.Database{Name: "warehouse", Roles: []databases.Role{{Name: "warehouse"}}}
	result := stores{urls: map[string]map[string]string{}, warehouse: pg.URL("warehouse", "warehouse")}
	for _, d := range append(databases.All(""), warehouse) {
		result.urls[d.Name] = map[string]string{}
		for _, role := range d.Roles {
			if err := pg.EnsureRole(ctx, role.Name); err != nil {
				return stores{}, err
			}
			result.urls[d.Name][role.Variable] = pg.URL(role.Name, d.Name)
		}
		if err := pg.EnsureDatabase(ctx, d.Name, d.Roles[0].Name); err != nil {
			return stores{}, err
		}
	}
	return result, nil
}

// redisTick is the interval at which the clock of the Redis in process is advanced. The keys of this Redis expire
// only then.
const redisTick = 50 * time.Millisecond

// startRedis returns the URL of the Redis to use: that of REDIS_URL, which must answer, or of a Redis in process.
func (r *run) startRedis(ctx context.Context) (string, error) {
	if named := r.Environ["REDIS_URL"]; named != "" {
		var cfg redisdb.Config
		if err := config.Load(&cfg, r.Environ); err != nil {
			return "", err
		}
		client, err := redisdb.Open(cfg, redisdb.Options{})
		if err != nil {
			return "", err
		}
		defer client.Close()
		if err := client.Reach(ctx); err != nil {
			return "", fmt.Errorf("the Redis of REDIS_URL does not answer: %w", err)
		}
		return named, nil
	}
	password := rand.Text()
	server := miniredis.NewMiniRedis()
	server.RequireAuth(password)
	if err := server.StartAddr("127.0.0.1:0"); err != nil {
		return "", fmt.Errorf("start Redis: %w", err)
	}
	r.parts.AddFunc(server.Close)
	r.parts.Go(func(running context.Context) {
		ticker := time.NewTicker(redisTick)
		defer ticker.Stop()
		last := time.Now()
		for {
			select {
			case <-running.Done():
				return
			case now := <-ticker.C:
				server.FastForward(now.Sub(last))
				last = now
			}
		}
	})
	u := url.URL{Scheme: "redis", User: url.UserPassword("", password), Host: server.Addr(), Path: "/0"}
	return u.String(), nil
}

// environ returns the variables of all services: the variables in Options.Environ, except for those that the run
// itself sets. auth has the URLs of the database of keys.
func (r *run) environ(auth map[string]string, redisURL string) map[string]string {
	environ := map[string]string{}
	for name, value := range r.Environ {
		name, isFile := strings.CutSuffix(name, "_FILE")
		decided := strings.HasSuffix(name, "DATABASE_URL") || strings.HasSuffix(name, "DATABASE_PASSWORD") || strings.HasSuffix(name, "_API_KEYS") ||
			name == "REDIS_URL" || name == "REDIS_PASSWORD" && r.Environ["REDIS_URL"] == "" ||
			strings.HasPrefix(name, "LISTEN_") || strings.HasPrefix(name, "EDGE_") || name == "TRUSTED_PROXIES" || name == "MIGRATE_ON_START" || name == "PROXY_MANIFESTS"
		if decided {
			continue
		}
		if isFile {
			name += "_FILE"
		}
		environ[name] = value
	}
	if environ[poolSizeVariable] == "" {
		environ[poolSizeVariable] = strconv.Itoa(defaultPoolSize)
	}
	for name, value := range map[string]string{
		"REDIS_URL":         redisURL,
		"INGEST_API_KEYS":   r.state.IngestKey,
		"INTERNAL_API_KEYS": r.state.InternalKey,
		"ADMIN_API_KEYS":    "local=" + r.state.AdminKey,
		"LISTEN_PUBLIC":     "127.0.0.1:0",
		"LISTEN_INTERNAL":   "127.0.0.1:0",
		"EDGE_KEYS":         rand.Text(),
		"DRAIN_DELAY":       "0s",
		"DRAIN_TIMEOUT":     "5s",
	} {
		environ[name] = value
	}
	maps.Copy(environ, auth)
	r.proxyEnviron(environ)
	return environ
}
