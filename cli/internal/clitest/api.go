package clitest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// API is a made-up API. It answers the entries of the project pr_1 by limit and cursor to the key rk_1, and takes entries in.
// A test can hold up requests.
type API struct {
	*httptest.Server
	total int

	mu    sync.Mutex
	Pages int             // how many requests came
	lines []string        // taken in, acknowledged
	Hold  func(pages int) // holds a request up
}

// NewAPI starts an API with a number of entries.
func NewAPI(t testing.TB, total int) *API {
	t.Helper()
	a := &API{total: total}
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

// With looks at a, or changes it, while no request does.
func (a *API) With(do func(a *API)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	do(a)
}

// Answered returns how many requests came since a started or [API.HoldAt] was called.
func (a *API) Answered() (n int) {
	a.With(func(a *API) { n = a.Pages })
	return n
}

// Taken returns the lines that were taken in.
func (a *API) Taken() (lines []string) {
	a.With(func(a *API) { lines = slices.Clone(a.lines) })
	return lines
}

// HoldAt holds up the request that comes as the n-th from now on. reached is closed when the request came, and the test
// closes proceed to let the request go on.
func (a *API) HoldAt(n int) (reached, proceed chan struct{}) {
	reached, proceed = make(chan struct{}), make(chan struct{})
	a.With(func(a *API) {
		a.Pages = 0
		a.Hold = func(pages int) {
			if pages == n {
				close(reached)
				<-proceed
			}
		}
	})
	return reached, proceed
}

// Environ returns the variables of commands for a.
func (a *API) Environ() map[string]string {
	return map[string]string{
		"LECTERN_URL": a.URL, "LECTERN_INTERNAL_URL": a.URL, "LECTERN_PROJECT_ID": "pr_1",
		"LECTERN_API_KEY": "rk_1", "LECTERN_INGEST_API_KEY": "ik_1", "LECTERN_INTERNAL_API_KEY": "ik_1",
	}
}

// count counts a request, and holds it up if the test says so.
func (a *API) count() {
	a.mu.Lock()
	a.Pages++
	pages, hold := a.Pages, a.Hold
	a.mu.Unlock()
	if hold != nil {
		hold(pages)
	}
}

func (a *API) list(w http.ResponseWriter, r *http.Request) {
	a.count()
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

func (a *API) ingest(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender was killed
	}
	a.count()
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
