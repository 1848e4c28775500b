package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/lectern-dev/lectern/shared/pglocal"
)

// logs returns the log of each part of a run.
type logs func(name string) (io.Writer, error)

// openLogs returns one file for each part, and renames that of the previous run to NAME.log.1. If the run has one log,
// openLogs returns that.
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
	// Registered before the parts that log, so that the files are closed after these have stopped.
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

// lockedWriter is a writer for concurrent use.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// Write writes p without interruption.
func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// database has the URLs of a service's database, or of the key database, by role. Missing roles are empty.
type database struct{ owner, reader, ingest, remover, admin string }

// databases are the databases of a run.
type databases struct {
	auth database
	of   map[string]database
	// warehouse is an empty database for copies of the demo project.
	warehouse string
}

// The services share one Postgres, while in a cluster each may have its own. So each pool is smaller than there, and
// Postgres allows as many connections as all pools may open.
const (
	defaultPoolSize  = 8
	poolsEach        = 4  // of a service: to read, to ingest, to remove and to look keys up; the proxy has one of them, region one more, the console none
	spareConnections = 20 // for listeners, migrations and users with psql
)

// poolSize returns how many connections each pool may have.
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

// startPostgres starts the private server and creates missing databases and roles.
func (r *run) startPostgres(ctx context.Context, logs logs, all []service) (databases, error) {
	out, err := logs("postgres")
	if err != nil {
		return databases{}, err
	}
	folder := filepath.Join(r.Folder, "postgres")
	if _, err := os.Stat(folder); errors.Is(err, os.ErrNotExist) {
		r.Note("Making a Postgres in %s.", folder)
	}
	perPool, err := r.poolSize()
	if err != nil {
		return databases{}, err
	}
	connections := perPool*poolsEach*len(all) + spareConnections
	pg, err := pglocal.Start(ctx, pglocal.Options{
		Dir: folder, Log: out, Settings: map[string]string{"max_connections": strconv.Itoa(connections)},
	})
	switch {
	case errors.Is(err, pglocal.ErrNoBinaries):
		return databases{}, fmt.Errorf("%w: install Postgres (make setup does)", err)
	case err != nil:
		return databases{}, err
	}
	r.parts.Add(pg.Stop)
	ensure := func(name string, d database) (database, error) {
		roles := []*string{&d.owner, &d.reader, &d.ingest, &d.remover, &d.admin}
		for _, role := range roles {
			if *role == "" {
				continue
			}
			if err := pg.EnsureRole(ctx, *role); err != nil {
				return d, err
			}
		}
		if err := pg.EnsureDatabase(ctx, name, d.owner); err != nil {
			return d, err
		}
		for _, role := range roles {
			if *role != "" {
				*role = pg.URL(*role, name)
			}
		}
		return d, nil
	}
	result := databases{of: map[string]database{}}
	if result.auth, err = ensure("auth", database{owner: "auth_owner", reader: "auth_reader", admin: "auth_admin"}); err != nil {
		return result, fmt.Errorf("the keys' database: %w", err)
	}
	warehouse, err := ensure("warehouse", database{owner: "warehouse"})
	if err != nil {
		return result, fmt.Errorf("the database for copies: %w", err)
	}
	result.warehouse = warehouse.owner
	for _, s := range all {
		if !s.stores {
			continue
		}
		name := string(s.name)
		if result.of[name], err = ensure(name, database{
			owner: name + "_owner", reader: name + "_reader", ingest: name + "_ingest", remover: name + "_remover",
		}); err != nil {
			return result, fmt.Errorf("the database of %s: %w", s.name, err)
		}
	}
	return result, nil
}

// redisTick is how often the clock of the Redis in process is moved: its keys expire only then.
const redisTick = 50 * time.Millisecond

// startRedis returns the URL of the Redis to use: the one that REDIS_URL names, else one in process.
func (r *run) startRedis() (string, error) {
	if named := r.Environ["REDIS_URL"]; named != "" {
		return named, nil
	}
	password := rand.Text()
	server := miniredis.NewMiniRedis()
	server.RequireAuth(password)
	if err := server.StartAddr("127.0.0.1:0"); err != nil {
		return "", fmt.Errorf("start Redis: %w", err)
	}
	done := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(redisTick)
		defer ticker.Stop()
		last := time.Now()
		for {
			select {
			case <-done:
				return
			case now := <-ticker.C:
				server.FastForward(now.Sub(last))
				last = now
			}
		}
	}()
	r.parts.Add(func(context.Context) error {
		close(done)
		<-stopped
		server.Close()
		return nil
	})
	u := url.URL{Scheme: "redis", User: url.UserPassword("", password), Host: server.Addr(), Path: "/0"}
	return u.String(), nil
}

// environ returns the variables of all services: the caller's, except those that the run sets.
func (r *run) environ(auth database, redisURL string) map[string]string {
	environ := map[string]string{}
	for name, value := range r.Environ {
		name, isFile := strings.CutSuffix(name, "_FILE")
		decided := strings.HasSuffix(name, "DATABASE_URL") || strings.HasSuffix(name, "_API_KEYS") ||
			strings.HasPrefix(name, "LISTEN_") || strings.HasPrefix(name, "EDGE_") || name == "TRUSTED_PROXIES" || name == "REDIS_URL" || name == "MIGRATE_ON_START" || name == "PROXY_MANIFESTS"
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
		"AUTH_DATABASE_URL":         auth.reader,
		"AUTH_ADMIN_DATABASE_URL":   auth.admin,
		"AUTH_MIGRATE_DATABASE_URL": auth.owner,
		"REDIS_URL":                 redisURL,
		"INGEST_API_KEYS":           r.state.InternalKey,
		"INTERNAL_API_KEYS":         r.state.InternalKey,
		"ADMIN_API_KEYS":            "local=" + r.state.AdminKey,
		"LISTEN_PUBLIC":             "127.0.0.1:0",
		"LISTEN_INTERNAL":           "127.0.0.1:0",
		"EDGE_KEYS":                 rand.Text(),
		"DRAIN_DELAY":               "0s",
		"DRAIN_TIMEOUT":             "5s",
	} {
		environ[name] = value
	}
	r.proxyEnviron(environ)
	return environ
}
