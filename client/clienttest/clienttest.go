// Package clienttest is a fake of the API for tests of programs that use the client. The fake serves the records of
// [Data] page by page, and keeps the records that a program sends.
//
//	api := clienttest.New(clienttest.Data{Entries: []client.Entry{{ProjectID: "pr_1", EntryID: "en_1"}}})
//	defer api.Close()
//	c, err := client.New(api.URL)
//
// The fake does not sort or validate records, and ignores the parameters that filter lists. The fake's change feed has
// only the changes of Data and AddChanges. A test of sorting, filters or validation needs a real server, which `lectern
// up` runs.
package clienttest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"time"

	"github.com/lectern-dev/lectern/client"
)

// Data holds the records that the fake serves. The fake serves Experiments and Changes in every project.
type Data struct {
	Entries     []client.Entry
	Events      []client.Event
	Embeddables []client.EmbeddableWithDefinition
	Experiments []client.Experiment
	Changes     []client.Change
	Projects    []client.Project
	// Regions holds the time zones of projects by project id, such as Europe/Berlin. Other projects have
	// America/Los_Angeles.
	Regions map[string]string
}

// Server is a running fake of the API; its URL is the base URL for [client.New]. The methods of Server are safe for
// concurrent use.
type Server struct {
	*httptest.Server

	mu      sync.Mutex
	data    Data
	key     string
	sent    map[string][]string
	changed chan struct{} // closed when a change is added
	closing chan struct{} // closed by Close
	close   func()        // closes closing
}

// New starts a fake that serves data. The caller calls Close at the end.
func New(data Data) *Server {
	s := &Server{data: data, sent: map[string][]string{}, changed: make(chan struct{}), closing: make(chan struct{})}
	s.close = sync.OnceFunc(func() { close(s.closing) })
	mux := http.NewServeMux()
	mux.HandleFunc("GET /projects/{project}", one("project", client.CodeProjectNotFound, func(*http.Request) []client.Project { return s.data.Projects },
		func(p client.Project) string { return p.ID }))
	mux.HandleFunc("GET /projects/{project}/entries", list(s.entries))
	mux.HandleFunc("GET /projects/{project}/entries/{id}", one("id", client.CodeEntryNotFound, s.entries, func(e client.Entry) string { return e.EntryID }))
	mux.HandleFunc("GET /projects/{project}/entries/{id}/events", list(func(r *http.Request) []client.Event {
		return keep(s.data.Events, func(e client.Event) bool {
			return e.ProjectID == r.PathValue("project") && e.EntryID == r.PathValue("id")
		})
	}))
	mux.HandleFunc("GET /projects/{project}/entries-changes", s.changes)
	mux.HandleFunc("GET /projects/{project}/embeddables", list(func(r *http.Request) []client.Embeddable {
		var all []client.Embeddable
		for _, e := range s.embeddables(r) {
			all = append(all, e.Embeddable)
		}
		return all
	}))
	mux.HandleFunc("GET /projects/{project}/embeddables/{id}", one("id", client.CodeEmbeddableDoesNotExist, s.embeddables,
		func(e client.EmbeddableWithDefinition) string { return e.EmbeddableID }))
	experiments := func(*http.Request) []client.Experiment { return s.data.Experiments }
	mux.HandleFunc("GET /projects/{project}/experiments", list(experiments))
	mux.HandleFunc("GET /projects/{project}/experiments/{id}", one("id", client.CodeExperimentNotFound, experiments, func(e client.Experiment) string { return e.ID }))
	mux.HandleFunc("POST /api/projects/region", s.region)
	mux.HandleFunc("POST /internal/{resource}", s.receive)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { refuse(w, 404, client.CodeRouteNotFound) })
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		key := s.key
		s.mu.Unlock()
		if key != "" && r.Header.Get("X-Api-Key") != key {
			refuse(w, 401, client.CodeUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	return s
}

// Close ends the requests that wait for changes, then stops the fake. Close blocks until all other requests have
// ended.
func (s *Server) Close() {
	s.close()
	s.Server.Close()
}

// SetKey makes the fake answer 401 to each request without this key from now on, as after a rotation. An empty key
// allows all requests.
func (s *Server) SetKey(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = key
}

// AddChanges appends changes to the feed of every project, and wakes the requests that wait for changes.
func (s *Server) AddChanges(changes ...client.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data.Changes = append(s.data.Changes, changes...)
	close(s.changed)
	s.changed = make(chan struct{})
}

// Sent returns the lines that programs posted to /internal/ and resource, such as "entries", in the order of their
// arrival.
func (s *Server) Sent(resource string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent[resource]
}

func (s *Server) entries(r *http.Request) []client.Entry {
	return keep(s.data.Entries, func(e client.Entry) bool { return e.ProjectID == r.PathValue("project") })
}

func (s *Server) embeddables(r *http.Request) []client.EmbeddableWithDefinition {
	return keep(s.data.Embeddables, func(e client.EmbeddableWithDefinition) bool { return e.ProjectID == r.PathValue("project") })
}

func (s *Server) changes(w http.ResponseWriter, r *http.Request) {
	from, _ := strconv.Atoi(r.FormValue("cursor"))
	seconds, _ := strconv.Atoi(r.FormValue("wait"))
	s.mu.Lock()
	all, changed := s.data.Changes, s.changed
	s.mu.Unlock()
	if from >= len(all) && seconds > 0 {
		select {
		case <-changed:
		case <-s.closing:
		case <-time.After(time.Duration(seconds) * time.Second):
		case <-r.Context().Done():
		}
		s.mu.Lock()
		all = s.data.Changes
		s.mu.Unlock()
	}
	page, next := cut(r, all)
	last := int64(0)
	if len(all) > 0 {
		last = all[len(all)-1].Seq
	}
	w.Header().Set("X-Last-Seq", strconv.FormatInt(last, 10))
	w.Header().Set("X-Next-Cursor", strconv.Itoa(next))
	if next < len(all) {
		w.Header().Set("Link", `<next>; rel="next"`)
	}
	write(w, r, page)
}

func (s *Server) region(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		ProjectID string     `json:"projectId"`
		At        *time.Time `json:"at"`
	}
	if json.NewDecoder(r.Body).Decode(&asked) != nil {
		refuse(w, 400, client.CodeInvalidBody)
		return
	}
	name, source := s.data.Regions[asked.ProjectID], client.RegionOfProject
	if name == "" {
		name, source = "America/Los_Angeles", client.DefaultRegion
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		refuse(w, 500, client.CodeInternal)
		return
	}
	at := time.Now()
	if asked.At != nil {
		at = *asked.At
	}
	_, offset := at.In(zone).Zone()
	w.Header().Set("X-Region-Source", string(source))
	writeJSON(w, client.Region{Name: name, OffsetMinutes: offset / 60})
}

func (s *Server) receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	n := 0
	s.mu.Lock()
	for line := range bytes.Lines(body) {
		s.sent[r.PathValue("resource")] = append(s.sent[r.PathValue("resource")], string(bytes.TrimSuffix(line, []byte("\n"))))
		n++
	}
	s.mu.Unlock()
	writeJSON(w, map[string]int{"stored": n})
}

// one returns a handler of a single record: the record of all whose id is in the path parameter part. If there is
// none, the answer is 404 with the code unknown.
func one[T any](part, unknown string, all func(*http.Request) []T, id func(T) string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for _, record := range all(r) {
			if id(record) == r.PathValue(part) {
				writeJSON(w, record)
				return
			}
		}
		refuse(w, 404, unknown)
	}
}

// list returns a handler of a list that serves the records of all page by page. A cursor is the number of records
// before the page.
func list[T any](all func(*http.Request) []T) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		records := all(r)
		page, next := cut(r, records)
		if next < len(records) {
			w.Header().Set("X-Next-Cursor", strconv.Itoa(next))
			w.Header().Set("Link", `<next>; rel="next"`)
		}
		write(w, r, page)
	}
}

// cut returns the page that the parameters cursor and limit of r select, and the index in all at which the page ends.
func cut[T any](r *http.Request, all []T) (page []T, end int) {
	from, _ := strconv.Atoi(r.FormValue("cursor"))
	limit, err := strconv.Atoi(r.FormValue("limit"))
	if err != nil {
		limit = 10
	}
	from = min(max(from, 0), len(all))
	end = min(from+limit, len(all))
	return all[from:end], end
}

func keep[T any](all []T, is func(T) bool) []T {
	var kept []T
	for _, record := range all {
		if is(record) {
			kept = append(kept, record)
		}
	}
	return kept
}

// write writes a page as NDJSON if r accepts it, otherwise as a JSON array.
func write[T any](w http.ResponseWriter, r *http.Request, page []T) {
	if r.Header.Get("Accept") != "application/x-ndjson" {
		writeJSON(w, append([]T{}, page...))
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	encoder := json.NewEncoder(w)
	for _, record := range page {
		if encoder.Encode(record) != nil {
			return // the client is gone
		}
	}
}

func writeJSON(w http.ResponseWriter, record any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(record) // fails if the client is gone
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{"code": code, "message": "clienttest refuses: " + code}})
}
