package push_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/client/clienttest"
	"github.com/lectern-dev/lectern/copies"
	"github.com/lectern-dev/lectern/copies/internal/copytest"
	"github.com/lectern-dev/lectern/copies/push"
)

func TestReceiver(t *testing.T) {
	copytest.Run(t, func(t *testing.T) copytest.Kind { return newReceiver(t) })
}

// TestUpgrades checks that the state of each released version goes on.
func TestUpgrades(t *testing.T) {
	t.Parallel()
	copytest.CheckUpgrades(t, "file", func(t *testing.T) copytest.Stored { return newReceiver(t) })
}

var secret = push.Secret(bytes.Repeat([]byte{8}, 32))

// receiver is a receiver of webhooks, and the state of its sender. The receiver drops changes whose number is not greater
// than the last one that it stored.
type receiver struct {
	*httptest.Server
	t     *testing.T
	state string

	mu    sync.Mutex
	rows  copytest.Tables
	last  int64
	sizes []int    // the changes of each request
	ids   []string // the id of each request
	left  int      // the receiver fails after so many requests, unless it is negative
	// answer, if set, answers a request in place of the receiver, unless it returns 0.
	answer func(body []byte) int
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{t: t, state: filepath.Join(t.TempDir(), "state.json"), rows: copytest.NewTables("entries", "events"), left: -1}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// ServeHTTP verifies a request, and stores its changes.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // the sender is gone
	}
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err == nil {
		err = verifier.Verify(body, request.Header)
	}
	var m struct {
		Type string
		Data struct {
			ProjectID string `json:"project_id"`
			FirstSeq  int64  `json:"first_seq"`
			LastSeq   int64  `json:"last_seq"`
			After     int64
			Changes   []map[string]json.RawMessage
		}
	}
	if err == nil {
		err = json.Unmarshal(body, &m)
	}
	if err != nil || m.Type != "lectern.changes" && m.Type != "history_lost" || m.Data.ProjectID != copytest.Project {
		r.t.Errorf("%v: %s", err, body)
	}
	r.sizes, r.ids = append(r.sizes, len(m.Data.Changes)), append(r.ids, request.Header.Get("webhook-id"))
	if r.answer != nil {
		if status := r.answer(body); status != 0 {
			w.WriteHeader(status)
			return
		}
	}
	if r.left == 0 {
		panic(http.ErrAbortHandler)
	}
	if m.Type == "history_lost" {
		for _, rows := range r.rows {
			maps.DeleteFunc(rows, func(_ string, row copytest.Row) bool { return row["seq"].(float64) > float64(m.Data.After) })
		}
		r.last = 0
	}
	before := int64(0)
	for i, c := range m.Data.Changes {
		var seq int64
		_ = json.Unmarshal(c["seq"], &seq)
		if seq <= before || i == 0 && seq != m.Data.FirstSeq || i == len(m.Data.Changes)-1 && seq != m.Data.LastSeq {
			r.t.Errorf("change %d after %d in %d to %d", seq, before, m.Data.FirstSeq, m.Data.LastSeq)
		}
		if before = seq; seq > r.last {
			r.last = seq
			r.store(c, copytest.Row{"seq": float64(seq)})
		}
	}
	if r.left--; r.left == 0 && len(r.ids)%2 == 0 { // the sender does not know that the changes are stored
		panic(http.ErrAbortHandler)
	}
}

func (r *receiver) store(c map[string]json.RawMessage, seq copytest.Row) {
	for table, field := range map[string]string{"entries": "entry", "events": "event"} {
		if c[field] != nil {
			one := copytest.NewTables(table)
			one.Add(r.t, table, c[field], seq)
			for key, row := range one[table] {
				r.rows[table][key] = row
			}
		}
		if string(c["change"]) == `"entry_removed"` {
			for key, row := range r.rows[table] {
				if fmt.Sprintf("%q", row["entry_id"]) == string(c["entry_id"]) {
					delete(r.rows[table], key)
				}
			}
		}
	}
}

func (r *receiver) options(from copies.Source) push.Options {
	return push.Options{URL: r.URL, Secret: secret, Source: from, State: r.state, Batch: 10}
}

// Open returns the sender. A step is a request.
func (r *receiver) Open(_ *testing.T, o copytest.Options) (copies.Destination, error) {
	if r.left = o.Cut; o.Cut == 0 {
		r.left = -1
	}
	options := r.options(o.Source)
	options.Moved, options.Mask = o.Moved, o.Mask
	return push.New(options)
}

// Save writes the state of the sender into a folder. The receiver's rows are not stored by Lectern.
func (r *receiver) Save(t *testing.T, folder string) {
	t.Helper()
	move(t, r.state, filepath.Join(folder, "state.json"))
}

// Load replaces the state of the sender.
func (r *receiver) Load(t *testing.T, folder string) {
	t.Helper()
	move(t, filepath.Join(folder, "state.json"), r.state)
}

func move(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Exact reports that entry_data is as it was.
func (*receiver) Exact() bool { return true }

// Text returns nothing: the receiver has only tables.
func (*receiver) Text(*testing.T) string { return "" }

// Read returns the tables of the receiver.
func (r *receiver) Read(*testing.T) copytest.Tables {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := copytest.Tables{}
	for table, rows := range r.rows {
		all[table] = map[string]copytest.Row{}
		for key, row := range rows {
			one := copytest.Row{}
			for name, v := range row {
				one[name] = v
			}
			all[table][key] = one
		}
	}
	return all
}

// answers lets the receiver answer its next requests with statuses.
func (r *receiver) answers(statuses ...int) {
	r.answer = func([]byte) (status int) {
		if len(statuses) > 0 {
			status, statuses = statuses[0], statuses[1:]
		}
		return status
	}
}

// TestRefusedRequests checks that a receiver that refuses the content of a request gets smaller requests, and the same id
// for the same changes. A change that the receiver never takes is named, and left out if the user says so.
func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	s, r := copytest.NewSource(t), newReceiver(t)
	s.Fill(0, 6)
	sync := func(change func(*push.Options)) error {
		o := r.options(s.Is())
		change(&o)
		d, err := push.New(o)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Sync(t.Context(), d, func(o *copies.Options) { o.Attempts, o.PageSize = 2, 100 })
		return err
	}
	same := func(*push.Options) {}
	r.answer = func(body []byte) int {
		if len(body) > 1500 {
			return http.StatusRequestEntityTooLarge
		}
		return 0
	}
	if err := sync(same); err != nil || !slices.Contains(r.sizes, 5) || !slices.Contains(r.sizes, 2) {
		t.Errorf("%v; requests of %v changes", err, r.sizes)
	}
	copytest.Equal(t, s.Tables(t), r.Read(t), true)

	s.Fill(6, 1)
	r.ids = nil
	r.answers(http.StatusServiceUnavailable)
	if err := sync(same); err != nil || len(r.ids) != 2 || r.ids[0] != r.ids[1] {
		t.Errorf("%v; the ids of the messages are %q", err, r.ids)
	}
	s.Put(copytest.Entry("bad", 1, `{}`))
	r.answers(http.StatusUnprocessableEntity, http.StatusUnprocessableEntity)
	page, err := s.Client.ChangesPage(t.Context(), copytest.Project, client.ChangeQuery{After: "now"})
	if err != nil {
		t.Fatal(err)
	}
	if err := sync(same); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("answers 422 Unprocessable Entity to the change %d (", page.LastSeq)) ||
		!strings.Contains(err.Error(), fmt.Sprint("--skip ", page.LastSeq)) {
		t.Errorf("a change that is not taken: %v", err)
	}
	var notes []string
	if err := sync(func(o *push.Options) {
		o.Skip, o.Note = []int64{page.LastSeq}, func(text string) { notes = append(notes, text) }
	}); err != nil || len(notes) != 1 || r.last == page.LastSeq {
		t.Errorf("a change that is skipped: %v, %q", err, notes)
	}

	// 410 stops until Resume, also in later runs.
	s.Fill(7, 1)
	r.answers(http.StatusGone)
	for range 2 {
		if err := sync(same); !errors.Is(err, push.ErrStopped) {
			t.Errorf("%v; want a receiver that has stopped", err)
		}
	}
	if err := sync(func(o *push.Options) { o.Resume = true }); err != nil {
		t.Error(err)
	}
	want := s.Tables(t)
	delete(want["entries"], "bad ")
	copytest.Equal(t, want, r.Read(t), true)
	if err := sync(func(o *push.Options) { o.Types = []client.ChangeType{client.EntryRemoved} }); err != nil {
		if !strings.Contains(err.Error(), `the state is one with --types "", not "entry_removed"`) {
			t.Error(err)
		}
	} else {
		t.Error("other types are taken")
	}
}

// TestLostHistoryIsRepeated checks that the message of a lost history comes again, with the same id, until the receiver takes
// it. A state that started with --from now then gets everything, too.
func TestLostHistoryIsRepeated(t *testing.T) {
	t.Parallel()
	s, r := copytest.NewSource(t), newReceiver(t)
	sync := func(attempts int) error {
		o := r.options(s.Is())
		o.From = "now"
		d, err := push.New(o)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Sync(t.Context(), d, func(o *copies.Options) { o.Attempts, o.Query.After = attempts, "now" })
		return err
	}
	s.Fill(0, 5)
	var backup clienttest.Data
	s.API.Update(func(d *clienttest.Data) { backup = *d })
	if err := sync(1); err != nil {
		t.Fatal(err)
	}
	s.Fill(5, 1)
	if err := sync(1); err != nil || len(r.rows["entries"]) != 1 {
		t.Fatalf("%v, %d entries", err, len(r.rows["entries"]))
	}
	s.API.Update(func(d *clienttest.Data) { *d = backup })
	r.ids, r.sizes = nil, nil
	const busy = http.StatusServiceUnavailable
	r.answers(http.StatusUnprocessableEntity, busy, 0, busy, 0, 0, busy) // three to the message, then to the two batches
	if err := sync(2); err == nil {
		t.Error("two refused messages are no error")
	}
	if err := sync(2); err != nil {
		t.Error(err)
	}
	if !slices.Equal(r.sizes, []int{0, 0, 0, 10, 10, 4, 1, 1}) || r.ids[0] != r.ids[1] || r.ids[0] != r.ids[2] || r.ids[3] != r.ids[4] || r.ids[0] == r.ids[3] {
		t.Errorf("messages with %v changes and the ids %q", r.sizes, r.ids)
	}
	copytest.Equal(t, s.Tables(t), r.Read(t), true)
}
