// Package clienttest is a fake of the API for tests of programs that use the client. The fake serves the records of
// [Data] page by page, and keeps the records that a program sends.
//
//	api := clienttest.New(clienttest.Data{Entries: []client.Entry{{ProjectID: "pr_1", EntryID: "en_1"}}})
//	defer api.Close()
//	c, err := client.New(api.URL)
//
// The fake's change feed has the changes of Data and AddChanges by their numbers, as the server's has. A cursor is the
// number up to which a reader has read. A record that changes again is at its new number only. A test of a fault orders
// answers with Order.
//
// The fake does not sort or validate records, and ignores the parameters that filter lists. A test of sorting, filters
// or validation needs a real server, which `lectern up` runs.
package clienttest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lectern-dev/lectern/client"
)

// Data holds the records that the fake serves. The fake serves Experiments and Changes in every project.
type Data struct {
	Entries     []client.Entry
	Events      []client.Event
	Embeddables []client.EmbeddableWithDefinition
	Versions    []client.EmbeddableVersionWithDefinition
	Experiments []client.Experiment
	// History has the changes of an experiment's status by the experiment's id, the oldest first.
	History map[string][]client.ExperimentStatusChange
	// Changes is the feed, in the order of its numbers. [New] does not store its records in Entries and Events, as
	// AddChanges does.
	Changes  []client.Change
	Projects []client.Project
	// Lost are the stretches of numbers that the feed lost, as after a restore of a backup. A reader between the ends of
	// a stretch gets 410, and so does a reader after the newest change, unless there is none. A test restores a backup by
	// an earlier value of Data.
	Lost []Stretch
	// Regions holds the time zones of projects by project id, such as Europe/Berlin. Other projects have
	// America/Los_Angeles.
	Regions map[string]string
}

// Stretch is a range of lost numbers. Both ends are sound positions.
type Stretch struct{ After, Until int64 }

// Server is a running fake of the API; its URL is the base URL for [client.New]. The methods of Server are safe for
// concurrent use.
type Server struct {
	*httptest.Server

	mu      sync.Mutex
	data    Data
	numbers map[string]*numbers // of the changes of embeddables and experiments, by kind
	key     string
	ordered []Answer
	sent    map[string][]string
	changed chan struct{} // closed when a change is added
	closing chan struct{} // closed by Close
	close   func()        // closes closing
}

// New starts a fake that serves data. The caller calls Close at the end.
func New(data Data) *Server {
	s := &Server{data: data, numbers: map[string]*numbers{}, sent: map[string][]string{}, changed: make(chan struct{}), closing: make(chan struct{})}
	s.close = sync.OnceFunc(func() { close(s.closing) })
	mux := http.NewServeMux()
	mux.HandleFunc("GET /projects/{project}", one("project", client.CodeProjectNotFound, func(*http.Request) []client.Project {
		return read(s, func(d *Data) []client.Project { return d.Projects })
	},
		func(p client.Project) string { return p.ID }))
	mux.HandleFunc("GET /projects/{project}/entries", list(s.entries))
	mux.HandleFunc("GET /projects/{project}/entries/{id}", one("id", client.CodeEntryNotFound, s.entries, func(e client.Entry) string { return e.EntryID }))
	mux.HandleFunc("GET /projects/{project}/entries/{id}/events", list(func(r *http.Request) []client.Event {
		return keep(read(s, func(d *Data) []client.Event { return d.Events }), func(e client.Event) bool {
			return e.ProjectID == r.PathValue("project") && e.EntryID == r.PathValue("id")
		})
	}))
	mux.HandleFunc("GET /projects/{project}/entries-changes", s.changes)
	mux.HandleFunc("GET /projects/{project}/embeddables", s.changedSince(list(func(r *http.Request) []client.Embeddable {
		var all []client.Embeddable
		for _, e := range s.embeddables(r) {
			if s.isChanged(r, e.EmbeddableID) {
				all = append(all, e.Embeddable)
			}
		}
		return all
	})))
	mux.HandleFunc("GET /projects/{project}/embeddables/{id}", one("id", client.CodeEmbeddableDoesNotExist, s.embeddables,
		func(e client.EmbeddableWithDefinition) string { return e.EmbeddableID }))
	experiments := func(*http.Request) []client.Experiment {
		return read(s, func(d *Data) []client.Experiment { return d.Experiments })
	}
	mux.HandleFunc("GET /projects/{project}/embeddables/{id}/versions", s.changedSince(list(func(r *http.Request) []client.EmbeddableVersion {
		var all []client.EmbeddableVersion
		for _, v := range s.versions(r) {
			if s.isChanged(r, versionKey(v)) {
				all = append(all, v.EmbeddableVersion)
			}
		}
		return all
	})))
	mux.HandleFunc("GET /projects/{project}/embeddables/{id}/versions/{number}", one("number", client.CodeEmbeddableVersionDoesNotExist, s.versions,
		func(v client.EmbeddableVersionWithDefinition) string { return strconv.FormatInt(v.Number, 10) }))
	mux.HandleFunc("GET /projects/{project}/experiments", s.changedSince(list(func(r *http.Request) []client.Experiment {
		return keep(experiments(r), func(e client.Experiment) bool { return s.isChanged(r, e.ID) })
	})))
	mux.HandleFunc("GET /projects/{project}/experiments/{id}/history", s.history)
	mux.HandleFunc("GET /projects/{project}/experiments/{id}", one("id", client.CodeExperimentNotFound, experiments, func(e client.Experiment) string { return e.ID }))
	mux.HandleFunc("POST /api/projects/region", s.region)
	mux.HandleFunc("POST /internal/{resource}", s.receive)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { refuse(w, 404, client.CodeRouteNotFound) })
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, ordered := s.next(r)
		switch {
		case ordered != nil && ordered.Status != 0:
			if ordered.RetryAfter > 0 {
				w.Header().Set("Retry-After", strconv.Itoa(ordered.RetryAfter))
			}
			refuse(w, ordered.Status, ordered.Code)
		case key != "" && r.Header.Get("X-Api-Key") != key:
			refuse(w, 401, client.CodeUnauthorized)
		case ordered != nil:
			mux.ServeHTTP(&cutWriter{w, ordered.CutAfter}, r)
		default:
			mux.ServeHTTP(w, r)
		}
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

// AddChanges appends changes to the feed of every project, and wakes the requests that wait for changes. A change whose
// Seq is 0 gets the next number, after a gap and after all lost stretches. AddChanges also stores and removes the records of Entries and Events.
// A change takes the place of the earlier changes of its record, and a removal that of the entry and its events.
func (s *Server) AddChanges(changes ...client.Change) {
	const gap = 10
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &s.data
	for _, c := range changes {
		if c.Seq == 0 {
			c.Seq = lastSeq(d.Changes)
			for _, lost := range d.Lost {
				c.Seq = max(c.Seq, lost.Until)
			}
			c.Seq += gap
		}
		d.Changes = append(keep(d.Changes, func(was client.Change) bool { return !replaces(c, was) }), c)
		switch c.Type {
		case client.EntryChanged:
			d.Entries = append(keep(d.Entries, func(e client.Entry) bool { return e.EntryID != c.Entry.EntryID }), *c.Entry)
		case client.EventAdded:
			d.Events = append(d.Events, c.Event.Event)
		case client.EntryRemoved:
			d.Entries = keep(d.Entries, func(e client.Entry) bool { return e.EntryID != c.Removal.EntryID })
			d.Events = keep(d.Events, func(e client.Event) bool { return e.EntryID != c.Removal.EntryID })
		}
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// replaces reports whether the feed does not have was any more when it has c.
func replaces(c, was client.Change) bool {
	switch {
	case c.Type == client.EntryRemoved && was.Type == client.EntryChanged:
		return c.Removal.EntryID == was.Entry.EntryID
	case c.Type == client.EntryRemoved && was.Type == client.EventAdded:
		return c.Removal.EntryID == was.Event.EntryID
	case c.Type != was.Type:
		return false
	case c.Type == client.EntryRemoved:
		return c.Removal.EntryID == was.Removal.EntryID
	case c.Type == client.EventAdded:
		return c.Event.EventKey == was.Event.EventKey
	}
	return c.Entry.EntryID == was.Entry.EntryID
}

func lastSeq(changes []client.Change) int64 {
	if len(changes) == 0 {
		return 0
	}
	return changes[len(changes)-1].Seq
}

// Update calls change with the records of the fake, while the fake serves no request. change must replace slices and
// maps, and not write to their elements.
func (s *Server) Update(change func(*Data)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.data)
}

// read returns records of the fake that no update changes.
func read[T any](s *Server, records func(*Data) []T) []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return records(&s.data)
}

// Answer is an answer that a test orders in place of the fake's own.
type Answer struct {
	// Path is a part of the path and query of the requests that get the answer; "" is a part of all.
	Path string
	// Status and Code are the status and the error code of the answer. RetryAfter, unless 0, is the header Retry-After
	// in seconds.
	Status     int
	Code       string
	RetryAfter int
	// CutAfter is for a Status of 0: the connection breaks after so many bytes of the body that the fake would send.
	CutAfter int
	// Always orders the answer for all requests, until the next call of [Server.Order]. Otherwise one request gets it.
	Always bool
}

// Order makes the fake give each of the answers to a request, in their order, before the fake answers as usual again.
// The answers replace those that were ordered before and have not been given.
func (s *Server) Order(answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ordered = answers
}

// next returns the key that r needs, and the answer that was ordered for r; nil if there is none.
func (s *Server) next(r *http.Request) (key string, ordered *Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, a := range s.ordered {
		if !strings.Contains(r.URL.String(), a.Path) {
			continue
		}
		if !a.Always {
			s.ordered = slices.Delete(slices.Clone(s.ordered), i, i+1)
		}
		return s.key, &a
	}
	return s.key, nil
}

// cutWriter breaks the connection after left bytes of the body.
type cutWriter struct {
	http.ResponseWriter
	left int
}

func (w *cutWriter) Write(b []byte) (int, error) {
	if len(b) <= w.left {
		w.left -= len(b)
		return w.ResponseWriter.Write(b)
	}
	_, _ = w.ResponseWriter.Write(b[:w.left])
	_ = http.NewResponseController(w.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

// Sent returns the lines that programs posted to /internal/ and resource, such as "entries", in the order of their
// arrival.
func (s *Server) Sent(resource string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent[resource]
}

func (s *Server) entries(r *http.Request) []client.Entry {
	all := read(s, func(d *Data) []client.Entry { return d.Entries })
	return keep(all, func(e client.Entry) bool { return e.ProjectID == r.PathValue("project") })
}

func (s *Server) embeddables(r *http.Request) []client.EmbeddableWithDefinition {
	all := read(s, func(d *Data) []client.EmbeddableWithDefinition { return d.Embeddables })
	return keep(all, func(e client.EmbeddableWithDefinition) bool { return e.ProjectID == r.PathValue("project") })
}

func (s *Server) versions(r *http.Request) []client.EmbeddableVersionWithDefinition {
	all := read(s, func(d *Data) []client.EmbeddableVersionWithDefinition { return d.Versions })
	return keep(all, func(v client.EmbeddableVersionWithDefinition) bool { return v.EmbeddableID == r.PathValue("id") })
}

// numbers has the numbers of the changes of one kind of records. since is the first number after records were removed,
// as a restore does: the fake does not know earlier numbers.
type numbers struct {
	last, since int64
	records     map[string]numbered
}

// numbered is the content of a record, and the number of its last change.
type numbered struct {
	text   string
	number int64
}

func versionKey(v client.EmbeddableVersionWithDefinition) string {
	return fmt.Sprintf("%s/%d", v.EmbeddableID, v.Number)
}

// number finds what has changed since the last request, and returns the numbers of the kind that r asks for.
func (s *Server) number(r *http.Request) numbers {
	texts := map[string]any{}
	kind := "embeddables " + r.PathValue("project")
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.HasSuffix(r.URL.Path, "/experiments") {
		kind = "experiments"
		for _, e := range s.data.Experiments {
			texts[e.ID] = []any{e, s.data.History[e.ID]}
		}
	} else {
		for _, e := range s.data.Embeddables {
			versions := keep(s.data.Versions, func(v client.EmbeddableVersionWithDefinition) bool { return v.EmbeddableID == e.EmbeddableID })
			if texts[e.EmbeddableID] = []any{e, versions}; e.ProjectID != r.PathValue("project") {
				delete(texts, e.EmbeddableID)
				continue
			}
			for _, v := range versions {
				texts[versionKey(v)] = v
			}
		}
	}
	n := s.numbers[kind]
	if n == nil {
		n = &numbers{records: map[string]numbered{}}
		s.numbers[kind] = n
	}
	next := n.last + 10
	for id := range n.records {
		if _, ok := texts[id]; !ok {
			n.last, n.since = next, next
			delete(n.records, id)
		}
	}
	for id, record := range texts {
		text, _ := json.Marshal(record) // records of the API always marshal
		if n.records[id].text != string(text) {
			n.last = next
			n.records[id] = numbered{string(text), next}
		}
	}
	return numbers{last: n.last, since: n.since, records: maps.Clone(n.records)}
}

// changedSince gives the answers of a list their number, and refuses numbers in changed_after that the fake does not know.
func (s *Server) changedSince(list http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		n := s.number(r)
		after, _ := strconv.ParseInt(r.FormValue("changed_after"), 10, 64)
		if after != 0 && (after < n.since || after > n.last) {
			refuse(w, 410, client.CodeHistoryLost, map[string]any{"after": 0, "until": nil})
			return
		}
		w.Header().Set("X-Last-Seq", strconv.FormatInt(n.last, 10))
		list(w, r)
	}
}

// isChanged reports whether the record with an id has changed after the number in changed_after of r.
func (s *Server) isChanged(r *http.Request, id string) bool {
	after, _ := strconv.ParseInt(r.FormValue("changed_after"), 10, 64)
	return after == 0 || s.number(r).records[id].number > after
}

func (s *Server) history(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	history, ok := s.data.History[r.PathValue("id")]
	s.mu.Unlock()
	if !ok {
		refuse(w, 404, client.CodeExperimentNotFound)
		return
	}
	writeJSON(w, history)
}

// changes serves the change feed. A cursor is the number of the last change that the reader has.
func (s *Server) changes(w http.ResponseWriter, r *http.Request) {
	cursor, after := r.FormValue("cursor"), r.FormValue("after")
	start, err := strconv.ParseUint(cmp.Or(cursor, after, "0"), 10, 63)
	from := int64(start)
	if err != nil && (after != "now" || cursor != "") || cursor != "" && after != "" {
		refuse(w, 400, client.CodeInvalidParameter)
		return
	}
	seconds, _ := strconv.Atoi(r.FormValue("wait"))
	timeout := time.After(time.Duration(seconds) * time.Second)
	for waiting := seconds > 0; ; {
		s.mu.Lock()
		all, stretches, changed := s.data.Changes, s.data.Lost, s.changed
		s.mu.Unlock()
		last := lastSeq(all)
		if after == "now" {
			from, after = last, ""
		}
		if fields := lost(from, last, stretches); fields != nil {
			refuse(w, 410, client.CodeHistoryLost, fields)
			return
		}
		rest := keep(all, func(c client.Change) bool {
			types := r.FormValue("types")
			return c.Seq > from && (types == "" || slices.Contains(strings.Split(types, ","), string(c.Type)))
		})
		if len(rest) == 0 && waiting {
			select {
			case <-changed:
				continue
			case <-timeout:
			case <-s.closing:
			case <-r.Context().Done():
			}
			waiting = false
			continue
		}
		next := max(from, last)
		if limit, err := strconv.Atoi(r.FormValue("limit")); err == nil && limit < len(rest) {
			rest = rest[:limit]
			next = rest[limit-1].Seq
			w.Header().Set("Link", `<next>; rel="next"`)
		}
		w.Header().Set("X-Last-Seq", strconv.FormatInt(last, 10))
		w.Header().Set("X-Next-Cursor", strconv.FormatInt(next, 10))
		write(w, r, rest)
		return
	}
}

// lost returns the fields of the answer to a reader at a number that the feed lost, and nil at any other number.
func lost(at, last int64, stretches []Stretch) map[string]any {
	for _, s := range stretches {
		if s.After < at && at < s.Until {
			return map[string]any{"after": s.After, "until": s.Until}
		}
	}
	if at > last && last > 0 {
		return map[string]any{"after": last, "until": nil}
	}
	return nil
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

// refuse answers with an error. more are fields of the body next to it.
func refuse(w http.ResponseWriter, status int, code string, more ...map[string]any) {
	body := map[string]any{"error": map[string]string{"code": code, "message": "clienttest refuses: " + code}}
	for _, fields := range more {
		maps.Copy(body, fields)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
