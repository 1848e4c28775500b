package stage

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// Service is a service that runs as a process. Its key check, access log and metrics are on, and so are rates, set so
// high that none is reached.
type Service struct {
	*Process
	Database Database
	// URL is the base of its public address, InternalURL of its internal one.
	URL, InternalURL string
	// Started is the time from the start of the process to readiness.
	Started time.Duration
}

// Definition describes a service. Its database has the service's name unless On is set.
type Definition struct {
	Name     string
	Database string
	// On is the database, if it is not one of the stage's Postgres.
	On *Database
	// Environ adds to the configuration, or overrides it.
	Environ []string
}

func (d Definition) folder() string { return "services/" + d.Name + "/cmd/" + d.Name }

// Migrated makes the service's database and runs the service's command migrate.
func (s *Stage) Migrated(ctx context.Context, d Definition) (Database, error) {
	binary, err := s.Build(ctx, d.folder())
	if err != nil {
		return Database{}, err
	}
	db, err := s.databaseOf(ctx, d)
	if err != nil {
		return db, err
	}
	cmd := exec.CommandContext(ctx, binary, "migrate")
	cmd.Env = s.environ(d, db, 0, 0)
	if out, err := cmd.CombinedOutput(); err != nil {
		return db, fmt.Errorf("%s migrate: %w\n%s", d.Name, err, out)
	}
	return db, nil
}

func (s *Stage) databaseOf(ctx context.Context, d Definition) (Database, error) {
	switch {
	case d.On != nil:
		return *d.On, nil
	case d.Database != "":
		return s.Database(ctx, d.Database)
	}
	return s.Database(ctx, d.Name)
}

// Start runs a service whose database is migrated and waits until it is ready. It runs until it is
// stopped, or the stage is closed.
func (s *Stage) Start(ctx context.Context, d Definition) (*Service, error) {
	binary, err := s.Build(ctx, d.folder())
	if err != nil {
		return nil, err
	}
	db, err := s.databaseOf(ctx, d)
	if err != nil {
		return nil, err
	}
	public, err := FreePort(ctx)
	if err != nil {
		return nil, err
	}
	internal, err := FreePort(ctx)
	if err != nil {
		return nil, err
	}
	svc := &Service{
		Database:    db,
		URL:         "http://127.0.0.1:" + strconv.Itoa(public),
		InternalURL: "http://127.0.0.1:" + strconv.Itoa(internal),
	}
	cmd := exec.Command(binary, "serve")
	cmd.Env = s.environ(d, db, public, internal)
	begin := time.Now()
	svc.Process, err = start(cmd, filepath.Join(s.Folder, d.Name+"-"+strconv.Itoa(public)+".log"))
	if err != nil {
		return nil, err
	}
	s.onClose(svc.stopIfRunning)
	if err := svc.until(ctx, func() bool { return answers(ctx, svc.InternalURL+"/readyz") }); err != nil {
		return nil, err
	}
	svc.Started = time.Since(begin)
	return svc, nil
}

func answers(ctx context.Context, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// environ returns a service's whole configuration: nothing comes from the caller's environment.
func (s *Stage) environ(d Definition, db Database, public, internal int) []string {
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"),
		"DATABASE_URL=" + db.Reader,
		"INGEST_DATABASE_URL=" + db.Ingest,
		"MIGRATE_DATABASE_URL=" + db.Owner,
		"AUTH_DATABASE_URL=" + s.Postgres.TCPURL("auth_reader", "auth"),
		"REDIS_URL=" + s.redisURL,
		"INGEST_API_KEYS=" + IngestKey,
		"INTERNAL_API_KEYS=" + InternalKey,
		"LISTEN_PUBLIC=127.0.0.1:" + strconv.Itoa(public),
		"LISTEN_INTERNAL=127.0.0.1:" + strconv.Itoa(internal),
		"RATE_LIMIT=1000000",
		"ANON_RATE_LIMIT=1000000",
		"DRAIN_DELAY=0s",
		"DRAIN_TIMEOUT=2s",
		"PPROF=" + strconv.FormatBool(s.Profiles),
	}, d.Environ...)
}

// StartBare runs the bare handler on a database. statements is a JSON object of their text by name.
func (s *Stage) StartBare(ctx context.Context, db Database, statements string) (*Service, error) {
	binary, err := s.Build(ctx, "bench/bare")
	if err != nil {
		return nil, err
	}
	port, err := FreePort(ctx)
	if err != nil {
		return nil, err
	}
	address := "127.0.0.1:" + strconv.Itoa(port)
	svc := &Service{Database: db, URL: "http://" + address}
	cmd := exec.Command(binary)
	cmd.Env = []string{"DATABASE_URL=" + db.Reader, "LISTEN=" + address, "STATEMENTS=" + statements}
	if svc.Process, err = start(cmd, filepath.Join(s.Folder, "bare-"+strconv.Itoa(port)+".log")); err != nil {
		return nil, err
	}
	s.onClose(svc.Stop)
	return svc, svc.until(ctx, func() bool { return answers(ctx, svc.URL+"/ready") })
}
