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

// Service is a running service or reference server. A service checks keys, logs accesses and counts metrics, as in
// production. Rate limits are on, but so high that no load reaches them.
type Service struct {
	*Process
	Database Database
	// URL is the base of the service's public address, and InternalURL of the internal address. InternalURL is empty
	// for references.
	URL, InternalURL string
}

// Definition describes how a stage starts a service. The service's database has the name Database, or Name if Database
// is empty.
type Definition struct {
	Name     string
	Database string
	// Folder is the folder of the service's command in the source. The default is services/NAME/cmd/NAME.
	Folder string
	// Environ has environment variables, as NAME=value, in addition to those of the stage. A variable of the same name
	// overrides that of the stage.
	Environ []string
}

func (s *Stage) prepared(ctx context.Context, d Definition) (binary string, db Database) {
	folder := cmp.Or(d.Folder, "services/"+d.Name+"/cmd/"+d.Name)
	return s.Build(ctx, folder), s.Database(ctx, cmp.Or(d.Database, d.Name))
}

// Migrated makes the service's database, runs the service's command migrate, and returns the database.
func (s *Stage) Migrated(ctx context.Context, d Definition) Database {
	binary, db := s.prepared(ctx, d)
	cmd := exec.CommandContext(ctx, binary, "migrate")
	cmd.Env = append(s.environ(d, db, 0, 0), "AUTH_MIGRATE_DATABASE_URL="+s.auth.Owner)
	if out, err := cmd.CombinedOutput(); err != nil {
		must.Do(fmt.Errorf("%s migrate: %w\n%s", d.Name, err, out))
	}
	return db
}

// Start starts a service whose database is migrated, and waits until the service is ready. The service runs until the
// caller stops it or closes the stage.
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

// StartEdge starts the edge, the gateway in front of the services, with routes to the service entries only.
func (s *Stage) StartEdge(ctx context.Context, entries *Service) *Service {
	return s.Start(ctx, Definition{Name: "edge", Environ: []string{
		"EDGE_SERVICES=" + string(routes.Entries) + "=" + strings.TrimPrefix(entries.URL, "http://"), "EDGE_KEYS=bench-edge-key-0123456789",
	}})
}

// answers returns a function that reports whether a GET of url has the status 200.
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

// environ returns the whole environment of a service. Only PATH and HOME come from the environment of the benchmark.
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

// startReference starts one of the programs in bench/reference on a free port, and waits until the program answers GET
// base + port + /ready. The variable LISTEN has the address, and environ is the rest of the environment.
func (s *Stage) startReference(ctx context.Context, name string, client *http.Client, base string, environ ...string) *Service {
	port := strconv.Itoa(freePort(ctx))
	svc := &Service{URL: base + port}
	cmd := exec.Command(s.Build(ctx, "bench/reference"), name)
	cmd.Env = append(environ, "LISTEN=127.0.0.1:"+port)
	svc.Process = s.start(ctx, cmd, name, answers(ctx, client, svc.URL+"/ready"))
	return svc
}

// StartBare starts the reference server "bare" on a database, which runs a service's SQL and does nothing else.
// statements is a JSON object with the SQL of each statement by name.
func (s *Stage) StartBare(ctx context.Context, db Database, statements string) *Service {
	return s.startReference(ctx, "bare", http.DefaultClient, "http://127.0.0.1:", "DATABASE_URL="+db.Reader, "STATEMENTS="+statements)
}
