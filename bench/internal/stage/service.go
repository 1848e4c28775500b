package stage

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/lectern-dev/lectern/bench/internal/must"
	"github.com/lectern-dev/lectern/shared/routes"
)

// Service is a service that runs as a process. Its key check, access log and metrics are on, and so are rates, set so
// high that none is reached.
type Service struct {
	*Process
	Database Database
	// URL is the base of its public address, InternalURL of its internal one.
	URL, InternalURL string
}

// Definition describes a service. Its database has the service's name unless Database names another.
type Definition struct {
	Name     string
	Database string
	// Folder has the command. The default is that of a service of this name.
	Folder string
	// Environ adds to the configuration, or overrides it.
	Environ []string
}

func (s *Stage) prepared(ctx context.Context, d Definition) (binary string, db Database) {
	folder := cmp.Or(d.Folder, "services/"+d.Name+"/cmd/"+d.Name)
	return s.Build(ctx, folder), s.Database(ctx, cmp.Or(d.Database, d.Name))
}

// Migrated makes the service's database and runs the service's command migrate.
func (s *Stage) Migrated(ctx context.Context, d Definition) Database {
	binary, db := s.prepared(ctx, d)
	cmd := exec.CommandContext(ctx, binary, "migrate")
	cmd.Env = append(s.environ(d, db, 0, 0), "AUTH_MIGRATE_DATABASE_URL="+s.auth.Owner)
	if out, err := cmd.CombinedOutput(); err != nil {
		must.Do(fmt.Errorf("%s migrate: %w\n%s", d.Name, err, out))
	}
	return db
}

// Start runs a service whose database is migrated and waits until it is ready. It runs until it is stopped, or the
// stage is closed.
func (s *Stage) Start(ctx context.Context, d Definition) *Service {
	binary, db := s.prepared(ctx, d)
	public, internal := freePort(ctx), freePort(ctx)
	svc := &Service{
		Database:    db,
		URL:         "http://127.0.0.1:" + strconv.Itoa(public),
		InternalURL: "http://127.0.0.1:" + strconv.Itoa(internal),
	}
	cmd := exec.Command(binary, "serve")
	cmd.Env = s.environ(d, db, public, internal)
	svc.Process = s.start(ctx, cmd, d.Name, answers(ctx, http.DefaultClient, svc.InternalURL+"/readyz"))
	return svc
}

// StartEdge runs the edge before the service entries.
func (s *Stage) StartEdge(ctx context.Context, entries *Service) *Service {
	return s.Start(ctx, Definition{Name: "edge", Environ: []string{
		"EDGE_SERVICES=" + string(routes.Entries) + "=" + strings.TrimPrefix(entries.URL, "http://"), "EDGE_KEYS=bench-edge-key-0123456789",
	}})
}

// answers returns a function that reports whether a GET of url succeeds.
func answers(ctx context.Context, client *http.Client, url string) func() bool {
	return func() bool {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false
		}
		resp, err := client.Do(req)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}
}

// environ returns a service's whole configuration: nothing comes from the caller's environment.
func (s *Stage) environ(d Definition, db Database, public, internal int) []string {
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"),
		"DATABASE_URL=" + db.Reader,
		"INGEST_DATABASE_URL=" + db.Ingest,
		"MIGRATE_DATABASE_URL=" + db.Owner,
		"AUTH_DATABASE_URL=" + s.auth.Reader,
		"REDIS_URL=" + s.redisURL,
		"INGEST_API_KEYS=" + IngestKey,
		"LISTEN_PUBLIC=127.0.0.1:" + strconv.Itoa(public),
		"LISTEN_INTERNAL=127.0.0.1:" + strconv.Itoa(internal),
		"RATE_LIMIT=1000000",
		"ANON_RATE_LIMIT=1000000",
		"DRAIN_DELAY=0s",
		"DRAIN_TIMEOUT=2s",
	}, d.Environ...)
}

// startPlain runs a program with a variable LISTEN, which answers GET ready at that address.
func (s *Stage) startPlain(ctx context.Context, client *http.Client, base, ready string, cmd func(port string) *exec.Cmd, environ ...string) *Service {
	port := strconv.Itoa(freePort(ctx))
	svc := &Service{URL: base + port}
	command := cmd(port)
	command.Env = append(environ, "LISTEN=127.0.0.1:"+port)
	svc.Process = s.start(ctx, command, "plain", answers(ctx, client, svc.URL+ready))
	return svc
}

// StartBare runs the bare handler on a database. statements is a JSON object of their text by name.
func (s *Stage) StartBare(ctx context.Context, db Database, statements string) *Service {
	return s.startPlain(ctx, http.DefaultClient, "http://127.0.0.1:", "/ready", s.reference(ctx, "bare"),
		"DATABASE_URL="+db.Reader, "STATEMENTS="+statements)
}

// reference returns one of the programs in the command reference.
func (s *Stage) reference(ctx context.Context, name string) func(string) *exec.Cmd {
	binary := s.Build(ctx, "bench/reference")
	return func(string) *exec.Cmd { return exec.Command(binary, name) }
}

// StartPostGraphile installs that npm package into the run's folder and runs it on a database.
func (s *Stage) StartPostGraphile(ctx context.Context, db Database, version string) *Service {
	folder := s.Folder + "/postgraphile"
	install := exec.CommandContext(ctx, "npm", "install", "--prefix", folder, "--no-audit", "--no-fund", version)
	if out, err := install.CombinedOutput(); err != nil {
		must.Do(fmt.Errorf("npm install %s: %w\n%s", version, err, out))
	}
	return s.startPlain(ctx, http.DefaultClient, "http://127.0.0.1:", "/graphiql", func(port string) *exec.Cmd {
		return exec.Command(folder+"/node_modules/.bin/postgraphile", "--connection", db.Reader, "--schema", "public",
			"--host", "127.0.0.1", "--port", port, "--disable-query-log", "--max-pool-size", "8")
	}, "PATH="+os.Getenv("PATH"), "HOME="+folder, "NODE_ENV=production")
}
