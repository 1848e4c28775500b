package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

// asLectern makes this test binary be the command, so that tests can kill real processes.
const asLectern = "LECTERN_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asLectern) == "" {
		pgtest.Main(m)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(Main(shell.ProcessSession(ctx), os.Args[1:]))
}

// The scripts of the shells ask for completions by the first word, and get the second one where files fit.
const (
	completeWord = "__complete"
	filesLine    = ":files"
)

// running is the command as a process of its own.
type running struct {
	*os.Process
	ended  chan struct{} // closed when it has; the fields below are set then
	stderr bytes.Buffer
	code   int // -1 when it was killed
}

// start starts the command. It is killed when the test ends.
func start(t *testing.T, args ...string) *running {
	t.Helper()
	return startTo(t, nil, args...)
}

// startTo starts the command with a file as its standard output.
func startTo(t *testing.T, out *os.File, args ...string) *running {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &running{ended: make(chan struct{})}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), asLectern+"=1", "LECTERN_API_KEY=rk_1", "LECTERN_INGEST_API_KEY=ik_1", "LECTERN_PROJECT_ID=pr_1")
	cmd.Stderr = &r.stderr
	if out != nil {
		cmd.Stdout = out
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.Process = cmd.Process
	go func() {
		_ = cmd.Wait() // its code says as much
		r.code = cmd.ProcessState.ExitCode()
		close(r.ended)
	}()
	t.Cleanup(func() {
		_ = r.Kill()
		<-r.ended
	})
	return r
}

// end sends the process a signal and waits for its end.
func (r *running) end(t *testing.T, sig os.Signal) {
	t.Helper()
	if err := r.Signal(sig); err != nil {
		t.Fatal(err)
	}
	eventually.Receive(t, fmt.Sprint("its end after ", sig), r.ended)
}

// result is the outcome of a command.
type result struct {
	code     int
	out, err string
}

// repeated is a note about a request that a busy machine's service refused and the command repeated.
var repeated = regexp.MustCompile(`(?m)^lectern: The service cannot answer right now.*; trying again in .*\n`)

// lectern runs the command in this process. Its notes are without those about repeated requests.
func lectern(t *testing.T, in string, environ map[string]string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := Main(&shell.Session{
		Context: t.Context(), In: strings.NewReader(in), Out: &out, Err: &errs, Environ: environ,
		Now: func() time.Time { return time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC) },
	}, args)
	return result{code, out.String(), repeated.ReplaceAllString(errs.String(), "")}
}

// api answers the entries of one project by limit and cursor, and takes entries in. Both can be held
// up.
type api struct {
	*httptest.Server
	total int

	mu     sync.Mutex
	pages  int                                            // answered
	lines  []string                                       // taken in, acknowledged
	before func(pages int, r *http.Request) (int, string) // a status other than 0 refuses, asking to wait
	hold   func(pages int)
}

func newAPI(t *testing.T, total int) *api {
	t.Helper()
	a := &api{total: total}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /projects/pr_1/entries", a.list)
	mux.HandleFunc("GET /projects/pr_1/entries/{id}", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("id") != "e1" {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"error":{"code":"entry_not_found","message":"No such entry."},"entryId":null}`)
			return
		}
		_, _ = io.WriteString(w, `{"entry_id":"e1","n":1.50}`)
	})
	mux.HandleFunc("POST /internal/entries", a.ingest)
	a.Server = httptest.NewServer(mux)
	t.Cleanup(a.Close)
	return a
}

// with looks at the api, or changes it, while no request does.
func (a *api) with(do func(a *api)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	do(a)
}

// answered returns how many requests came.
func (a *api) answered() (n int) {
	a.with(func(a *api) { n = a.pages })
	return n
}

// taken returns what was taken in.
func (a *api) taken() (lines []string) {
	a.with(func(a *api) { lines = slices.Clone(a.lines) })
	return lines
}

// holdAt holds up the request that comes as the n-th from now on: reached tells that it came, and
// proceed lets it go on.
func (a *api) holdAt(n int) (reached, proceed chan struct{}) {
	reached, proceed = make(chan struct{}), make(chan struct{})
	a.with(func(a *api) {
		a.pages = 0
		a.hold = func(pages int) {
			if pages == n {
				close(reached)
				<-proceed
			}
		}
	})
	return reached, proceed
}

func (a *api) environ() map[string]string {
	return map[string]string{
		"LECTERN_URL": a.URL, "LECTERN_INTERNAL_URL": a.URL, "LECTERN_PROJECT_ID": "pr_1",
		"LECTERN_API_KEY": "rk_1", "LECTERN_INGEST_API_KEY": "ik_1", "LECTERN_INTERNAL_API_KEY": "ik_1",
	}
}

// admit counts a request and refuses it where the test says so.
func (a *api) admit(w http.ResponseWriter, r *http.Request) bool {
	a.mu.Lock()
	a.pages++
	pages, before, hold := a.pages, a.before, a.hold
	a.mu.Unlock()
	if hold != nil {
		hold(pages)
	}
	if before != nil {
		if status, after := before(pages, r); status != 0 {
			w.Header().Set("Retry-After", after)
			w.WriteHeader(status)
			return false
		}
	}
	return true
}

func (a *api) list(w http.ResponseWriter, r *http.Request) {
	if !a.admit(w, r) {
		return
	}
	if r.Header.Get("X-Api-Key") != "rk_1" {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":{"code":"unauthorized","message":"You are not authorized."},"projectId":"pr_1"}`)
		return
	}
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil {
		limit = 10
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
	to := min(from+limit, a.total)
	if to < a.total {
		w.Header().Set("X-Next-Cursor", strconv.Itoa(to))
	}
	asLines := r.Header.Get("Accept") == "application/x-ndjson"
	var records []string
	for i := from; i < to; i++ {
		records = append(records, fmt.Sprintf(`{"entry_id":"e%d","group_id":"g","project_id":"pr_1","embeddable_id":"m","contact_id":"c","created_at":"2024-01-01T00:00:00Z","updated_at":"2024-01-01T00:00:00Z","entry_data":"{\"text\":\"%s\"}"}`, i, strings.Repeat("x", i%300)))
	}
	if asLines {
		for _, record := range records {
			_, _ = io.WriteString(w, record+"\n")
		}
		return
	}
	_, _ = io.WriteString(w, "["+strings.Join(records, ",")+"]")
}

func (a *api) ingest(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || !a.admit(w, r) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	type reject struct {
		Line    int    `json:"line"`
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	rejects := []reject{}
	stored := 0
	for i, line := range strings.Split(strings.TrimSuffix(string(body), "\n"), "\n") {
		if strings.Contains(line, "bad") {
			rejects = append(rejects, reject{i + 1, "invalid_record", "It is bad."})
			continue
		}
		stored++
		a.lines = append(a.lines, line)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"stored": stored, "existing": 0, "rejected": len(rejects), "rejects": rejects})
}
