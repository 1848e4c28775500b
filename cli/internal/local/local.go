// Package local runs the whole platform on one machine, for trials and development, not for production. One process
// runs the services, an edge for their public ports, an edge for their internal ports, and a third party for the
// credential proxy. The process also starts a private Postgres, and a Redis unless REDIS_URL names one, and loads a
// demo project.
//
// All data is in one folder, which one run at a time may use: the data of Postgres, logs and generated secrets. The
// folder has a file demo.env while the run is ready.
package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/lectern-dev/lectern/cli/internal/demo"
	"github.com/lectern-dev/lectern/copies/durable"
	"github.com/lectern-dev/lectern/shared/postgres/migrate"
	"github.com/lectern-dev/lectern/shared/shutdown"
)

// Options are the settings of one call of [Run]: the folder, the addresses, and the functions that Run calls.
type Options struct {
	// Folder is the path of the folder with all files of the run. Run makes a missing folder.
	Folder string
	// Listen and ListenInternal are the addresses of the public and the internal edge, as host:port.
	Listen, ListenInternal string
	// Environ has variables for the services. Run itself sets databases, keys and addresses, and ignores such
	// variables. REDIS_URL names a Redis to use instead of the one in process.
	Environ map[string]string
	// Log gets the logs of all parts. If Log is nil, each service, the edges and Postgres have a file in Folder/logs.
	Log io.Writer
	// Note is called with a message for the user before steps that take long.
	Note func(format string, args ...any)
	// Ready is called once, after the services answer requests and demo.env exists.
	Ready func(Demo)
}

// Demo has the addresses of a run, and the id and the keys of the demo project.
type Demo struct {
	URL            string // of the public operations
	InternalURL    string // of the internal operations
	ThirdPartyURL  string // what the credential proxy may send the demo's credential to
	ProjectID      string
	APIKey         string // reads all, and may use the proxy
	IngestAPIKey   string // sends data in
	InternalAPIKey string // looks up regions
	AdminAPIKey    string // administers keys, and removes data
	// EntryID is the id of the newest entry of the demo's data, for sample requests.
	EntryID string
}

// EnvFile returns the path of demo.env in a run's folder, which has the variables for other commands.
func EnvFile(folder string) string { return filepath.Join(folder, "demo.env") }

// Run runs the platform until ctx ends or a part fails, and then stops all parts. The error is nil if ctx ended and all
// parts stopped without an error.
func Run(ctx context.Context, o Options) (err error) {
	folder, err := filepath.Abs(o.Folder)
	if err != nil {
		return err
	}
	o.Folder = folder
	lock, err := takeFolder(o.Folder)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release() }()

	running, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	r := &run{Options: o, fail: fail}
	defer func() { err = errors.Join(err, r.parts.Stop(stopTimeout)) }()
	if err = r.start(running); err == nil {
		<-running.Done()
	}
	switch {
	case ctx.Err() != nil: // told to stop, maybe before it was ready
		o.Note("Stopping.")
		return nil
	case running.Err() != nil:
		return r.explain(context.Cause(running))
	}
	return err
}

// takeFolder creates the folder and locks the folder for this process. If another process has the lock, the error
// contains the id of that process.
func takeFolder(folder string) (*durable.Lock, error) {
	// Other users may enter the folder but not list its files, because Postgres may run as another user.
	if err := os.MkdirAll(folder, 0o711); err != nil {
		return nil, err
	}
	path := filepath.Join(folder, "up.lock")
	lock, err := durable.Acquire(path)
	if errors.Is(err, durable.ErrLocked) {
		holder, _ := os.ReadFile(path)
		return nil, fmt.Errorf("lectern up runs on %s already (process %s): use that one, stop it, or name another folder with --folder",
			folder, strings.TrimSpace(string(holder)))
	}
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(path, fmt.Appendln(nil, os.Getpid()), 0o600); err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	return lock, nil
}

// run is the state of one call of [Run]: its options and the parts to stop.
type run struct {
	Options
	state *state
	parts shutdown.Stack
	fail  context.CancelCauseFunc // ends the run, because a part ended by itself
}

// stopTimeout bounds the shutdown of a run. Most of this time is for Postgres, which writes all data to disk.
const stopTimeout = 90 * time.Second

// explain adds to err what the user can do.
func (r *run) explain(err error) error {
	switch {
	case errors.Is(err, migrate.ErrEarlierBuild):
		return fmt.Errorf("%s is of an earlier build: remove it by rm -rf '%s'", r.Folder, r.Folder)
	case err != nil && r.Log == nil:
		return fmt.Errorf("%w (see the logs in %s)", err, filepath.Join(r.Folder, "logs"))
	}
	return err
}

// start starts all parts in the order of their dependencies, and calls Ready. After an error, the caller stops the
// parts that run.
func (r *run) start(ctx context.Context) (err error) {
	// The ports are opened first, because another program may use a port.
	public, err := listen(r.Listen, "--listen", "LECTERN_LISTEN")
	if err != nil {
		return err
	}
	r.parts.AddFunc(func() { _ = public.Close() }) // its edge, if there is one, has closed the listener
	internal, err := listen(r.ListenInternal, "--listen-internal", "LECTERN_LISTEN_INTERNAL")
	if err != nil {
		return err
	}
	r.parts.AddFunc(func() { _ = internal.Close() })

	if err := durable.RemoveIfThere(EnvFile(r.Folder)); err != nil {
		return err
	}
	if r.state, err = openState(r.Folder); err != nil {
		return err
	}
	logs, err := r.openLogs()
	if err != nil {
		return err
	}
	defer func() { err = r.explain(err) }()
	all := services()
	stores, err := r.startPostgres(ctx, logs, all)
	if err != nil {
		return err
	}
	redisURL, err := r.startRedis(ctx)
	if err != nil {
		return err
	}
	thirdParty, err := r.startThirdParty(ctx)
	if err != nil {
		return err
	}
	environ := r.environ(stores.urls["auth"], redisURL)
	addresses, err := r.startServices(ctx, all, stores, environ, logs)
	if err != nil {
		return err
	}
	if err := r.startEdges(ctx, public, internal, addresses, environ, logs); err != nil {
		return err
	}
	d := Demo{
		URL: baseURL(public), InternalURL: baseURL(internal), ThirdPartyURL: thirdParty,
		ProjectID: demo.ProjectID, IngestAPIKey: r.state.IngestKey, InternalAPIKey: r.state.InternalKey, AdminAPIKey: r.state.AdminKey,
	}
	if d.APIKey, err = r.demoKey(ctx, d); err != nil {
		return fmt.Errorf("the demo project's key: %w", err)
	}
	if d.EntryID, err = r.demoData(ctx, d); err != nil {
		return fmt.Errorf("the demo project's data: %w", err)
	}
	r.parts.Add(func(context.Context) error { return durable.RemoveIfThere(EnvFile(r.Folder)) })
	// Last, because scripts wait for this file.
	err = writeEnv(EnvFile(r.Folder), [][2]string{
		{"LECTERN_URL", d.URL},
		{"LECTERN_INTERNAL_URL", d.InternalURL},
		{"LECTERN_PROJECT_ID", d.ProjectID},
		{"LECTERN_API_KEY", d.APIKey},
		{"LECTERN_INGEST_API_KEY", d.IngestAPIKey},
		{"LECTERN_INTERNAL_API_KEY", d.InternalAPIKey},
		{"LECTERN_ADMIN_API_KEY", d.AdminAPIKey},
		{"LECTERN_ENVIRONMENT", DemoEnvironment},
		{"LECTERN_THIRD_PARTY_URL", d.ThirdPartyURL},
		{"LECTERN_SYNC_TO", stores.warehouse},
	})
	if err != nil {
		return err
	}
	r.Ready(d)
	return nil
}

// listen opens the address of an edge. If the address is in use, the error names the flag and the variable that set
// another address.
func listen(address, flag, variable string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("the address %s is taken: stop what listens there, or give another one with %s or %s", address, flag, variable)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", flag, address, err)
	}
	return l, nil
}

// baseURL returns the URL at which programs on this machine reach the listener l.
func baseURL(l net.Listener) string {
	address, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return "http://" + l.Addr().String()
	}
	if address.IP.IsUnspecified() {
		return fmt.Sprintf("http://127.0.0.1:%d", address.Port)
	}
	return "http://" + address.String()
}

// writeEnv writes the variables to the file at path, in the syntax of sh. Only the user may read the file, which
// contains keys.
func writeEnv(path string, variables [][2]string) error {
	var b strings.Builder
	for _, v := range variables {
		fmt.Fprintf(&b, "export %s='%s'\n", v[0], strings.ReplaceAll(v[1], "'", `'\''`))
	}
	return durable.WriteFile(path, []byte(b.String()))
}
