// Package clienttest is a fake of the API for tests of programs that use the client. It serves the records that it is
// given, page by page, and keeps what is sent to it.
//
//	api := clienttest.New(clienttest.Data{Entries: []client.Entry{{ProjectID: "pr_1", EntryID: "en_1"}}})
//	defer api.Close()
//	c, err := client.New(api.URL)
//
// It does not sort, filter or validate, and a change feed has only the changes that it is given. A test of these asks a real
// server, which `lectern up` runs.
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

// Data holds the records of the fake. Records without a project of their own are in every project.
type Data struct {
	Entries     []client.Entry
	Events      []client.Event
	Embeddables []client.EmbeddableWithDefinition
	Experiments []client.Experiment
	Changes     []client.Change
	Projects    []client.Project
	// Regions holds the zones of projects by id, such as Europe/Berlin. Other projects have the default region.
	Regions map[string]string
}

// Server is a running fake. Its methods are safe for concurrent use.
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

// New starts a fake with data. The caller closes it.
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

// Close ends the waits of followers, then stops the fake. It blocks until all other requests have ended.
func (s *Server) Close() {
	s.close()
	s.Server.Close()
}

// SetKey makes the fake refuse all requests without this key from now on, as after a rotation. An empty key allows all.
func (s *Server) SetKey(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = key
}

// AddChanges appends changes to the feed, and ends the waits of followers.
func (s *Server) AddChanges(changes ...client.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data.Changes = append(s.data.Changes, changes...)
	close(s.changed)
	s.changed = make(chan struct{})
}

// Sent returns the lines that were posted to /internal/ and resource, such as "entries".
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

// one serves the record whose id is the named part of the path.
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

// list serves records page by page. A cursor is the number of records before it.
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

// cut returns the requested page, and its end.
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

// write writes a page in the requested format.
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
