// Package consoletest tests the web console in a real Chromium, with a whole local run of the platform. A front between
// the browser and the run records every request, and can make any of them fail.
//
// The tests check the texts, roles, focus and addresses that visitors and assistive technology perceive. Each test also
// fails on errors in the browser's console, on violations of the Content-Security-Policy, and on a leaked API key. It
// fails on requests to other hosts too, and on requests that the API description does not have.
package consoletest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/lectern-dev/lectern/cli/internal/demo"
	"github.com/lectern-dev/lectern/cli/internal/local"
	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/shared/postgres/pglocal"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/needs"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// Most of these tests wait for pages rather than for a processor.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	// Discard log lines about connections that a fault breaks.
	log.SetOutput(io.Discard)
	code := m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// world is shared by all tests: a local run with the demo project, and a browser.
type world struct {
	local.Demo
	folder  string
	issuer  *issuer // trusted by all services, and without a provider until a test starts one
	browser context.Context
	api     *client.Client // with the demo's key
	ingest  *client.Ingester
	admin   *client.Administrator
}

var (
	once    sync.Once
	shared  *world
	failure error // why the world did not start

	stopping sync.Mutex
	stops    []func() error
)

// stop shuts the world down, the browser first.
func stop() error {
	stopping.Lock()
	defer stopping.Unlock()
	var errs []error
	for i := len(stops) - 1; i >= 0; i-- {
		errs = append(errs, stops[i]())
	}
	stops = nil
	return errors.Join(errs...)
}

func atStop(do func() error) {
	stopping.Lock()
	defer stopping.Unlock()
	stops = append(stops, do)
}

// start returns the world, which the first test starts.
func start(t *testing.T) *world {
	t.Helper()
	needs.Long(t)
	chromium := needs.Chromium(t)
	once.Do(func() { shared, failure = bringUp(chromium) })
	if failure != nil {
		t.Fatal(failure)
	}
	return shared
}

func bringUp(chromium string) (*world, error) {
	folder, err := os.MkdirTemp("", "console")
	if err != nil {
		return nil, err
	}
	atStop(func() error {
		// Postgres and the browser still write for a moment after they were asked to stop.
		return eventually.Try(func() error {
			return errors.Join(pglocal.Remove(filepath.Join(folder, "lectern", "postgres")), os.RemoveAll(folder))
		})
	})
	// Postgres may run as another user, which must be able to enter this folder.
	if err := os.Chmod(folder, 0o711); err != nil {
		return nil, err
	}
	// On a busy machine, Postgres may take seconds to open a connection.
	if err := os.Setenv("PGCONNECT_TIMEOUT", "30"); err != nil {
		return nil, err
	}
	w := &world{folder: filepath.Join(folder, "lectern"), issuer: newIssuer()}
	atStop(func() error { w.issuer.Close(); return nil })
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan local.Demo, 1), make(chan error, 1)
	go func() {
		ended <- local.Run(ctx, local.Options{
			Folder: w.folder, Listen: "127.0.0.1:0", ListenInternal: "127.0.0.1:0",
			Environ: map[string]string{
				"DATABASE_ACQUIRE_TIMEOUT": "30s",
				"TOKEN_ISSUERS":            `[{"url":"` + w.issuer.URL + `","audiences":["console"]}]`,
			},
			Note: func(string, ...any) {}, Ready: func(d local.Demo) { ready <- d },
		})
	}()
	atStop(func() error { cancel(); return <-ended })

	allocator, closeAllocator := chromedp.NewExecAllocator(context.Background(),
		chromedp.ExecPath(chromium), chromedp.UserDataDir(filepath.Join(folder, "browser")), chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(1280, 900),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		// Pages of other tests must not be throttled in the background.
		chromedp.Flag("disable-background-timer-throttling", true), chromedp.Flag("disable-renderer-backgrounding", true),
		chromedp.Flag("disable-backgrounding-occluded-windows", true))
	browser, closeBrowser := chromedp.NewContext(allocator)
	atStop(func() error { closeBrowser(); closeAllocator(); return nil })
	if err := chromedp.Run(browser); err != nil {
		return nil, err
	}
	w.browser = browser

	select {
	case w.Demo = <-ready:
	case err := <-ended:
		ended <- nil
		return nil, fmt.Errorf("lectern up: %w", err)
	}
	w.api, err = client.New(w.URL, client.WithAPIKey(w.APIKey))
	if err != nil {
		return nil, err
	}
	if w.ingest, err = client.NewIngester(w.InternalURL, client.WithAPIKey(w.IngestAPIKey)); err != nil {
		return nil, err
	}
	w.admin, err = client.NewAdministrator(w.InternalURL, client.WithAPIKey(w.AdminAPIKey))
	return w, err
}

// mint returns a new key of a project. Without scopes it reads everything.
func (w *world) mint(t *testing.T, project string, scopes ...string) string {
	t.Helper()
	key, err := w.admin.MintAPIKey(t.Context(), project, client.NewAPIKey{Name: "test", Scopes: scopes})
	if err != nil {
		t.Fatal(err)
	}
	return key.Key
}

// record is a record in the format of ingest.
type record = map[string]any

// send stores records and fails the test if one is rejected.
func (w *world) send(t *testing.T, resource string, records ...record) {
	t.Helper()
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	for _, r := range records {
		if err := encoder.Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	receipt, err := w.ingest.Send(t.Context(), resource, lines.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if receipt.Rejected > 0 {
		t.Fatalf("%s: %+v", resource, receipt.Rejects)
	}
}

// newEntry returns an entry that was created and updated at the same time.
func newEntry(project, embeddable, id string, at time.Time, data string) record {
	return record{
		"entry_id": id, "group_id": "gr_1", "project_id": project, "embeddable_id": embeddable, "contact_id": "co_1",
		"created_at": at.UTC().Format(time.RFC3339Nano), "updated_at": at.UTC().Format(time.RFC3339Nano), "entry_data": data,
	}
}

// newProject stores a project with one embeddable and returns a key that reads it.
func (w *world) newProject(t *testing.T, id, title, embeddable string) string {
	t.Helper()
	w.send(t, "projects", record{"id": id, "title": title, "region": "Europe/Berlin"})
	if embeddable != "" {
		w.send(t, "embeddables", record{"embeddable_id": embeddable, "title": "A short questionnaire", "group_id": "gr_1", "project_id": id, "json_string_prod": "{}"})
	}
	return w.mint(t, id)
}

const demoProject = demo.ProjectID

var demoEnd = demo.End()
