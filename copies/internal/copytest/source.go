// Package copytest tests destinations of copies. [Run] holds the promises of all copies on one [Kind] of destination,
// over a [Source]: a project of the fake API in package clienttest. The package serves tests alone.
package copytest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/client/clienttest"
	"github.com/lectern-dev/lectern/copies"
)

// Project is the id of the project that sources have.
const Project = "pr_1"

// Source is a project that a test fills, and copies read.
type Source struct {
	API    *clienttest.Server
	Client *client.Client
}

// NewSource returns an empty project. The end of the test closes its API.
func NewSource(t *testing.T) *Source {
	t.Helper()
	api := clienttest.New(clienttest.Data{})
	t.Cleanup(api.Close)
	c, err := client.New(api.URL, client.WithRetry(client.Retry{Base: time.Millisecond}))
	if err != nil {
		t.Fatal(err)
	}
	return &Source{api, c}
}

// Is returns the source as copies know it.
func (s *Source) Is() copies.Source { return copies.Source{URL: s.API.URL, ProjectID: Project} }

// At returns the time of a second, with microseconds.
func At(second int) time.Time { return time.Date(2022, 1, 1, 0, 0, second, 250_000, time.UTC) }

// Entry returns an entry that changed in a second, with data as its answers.
func Entry(id string, second int, data string) client.Entry {
	return client.Entry{EntryID: id, GroupID: "gr_1", ProjectID: Project, EmbeddableID: "emb_1", ContactID: "co_ü", UpdatedAt: At(second), Data: data}
}

// Of returns an entry as an answer to another embeddable.
func Of(embeddable string, e client.Entry) client.Entry {
	e.EmbeddableID = embeddable
	return e
}

// Event returns the page view number n of an entry.
func Event(id string, n int) client.ChangedEvent {
	e := client.Event{
		EntryID: id, ContactID: "co_1", ProjectID: Project, GroupID: "gr_1", EmbeddableID: "emb_1", VersionNumber: new(int64(3)), Timestamp: At(n),
		PageID: new("pg_1"), PageKey: new("page-1"), PageIndex: new(int64(n)), TotalPages: new(int64(10)), EventType: "flowpage.viewed", ViewType: new("flowpage"),
	}
	return client.ChangedEvent{Event: e, URL: new("https://example.com/?a=1"), EventKey: fmt.Sprintf("%s/%d", id, n)}
}

// Put stores entries and events.
func (s *Source) Put(records ...any) {
	for _, r := range records {
		switch r := r.(type) {
		case client.Entry:
			s.API.AddChanges(client.Change{Type: client.EntryChanged, Entry: &r})
		case client.ChangedEvent:
			s.API.AddChanges(client.Change{Type: client.EventAdded, Event: &r})
		}
	}
}

// Fill stores n entries with two events each, from the number first on.
func (s *Source) Fill(first, n int) {
	for i := first; i < first+n; i++ {
		id := fmt.Sprintf("en_%d", i)
		s.Put(Entry(id, i, fmt.Sprintf(`{"n":%d,"text":"ÿ €","price":1.50}`, i)), Event(id, 2*i), Event(id, 2*i+1))
	}
}

// Remove removes entries with their events.
func (s *Source) Remove(reason client.RemovalReason, ids ...string) {
	for _, id := range ids {
		s.API.AddChanges(client.Change{Type: client.EntryRemoved, Removal: &client.Removal{EntryID: id, RemovedAt: At(0), Reason: reason}})
	}
}

// Person stores an entry and an event with a text in the contact, an answer and the event.
func (s *Source) Person(id, text string) {
	e, view := Entry(id, 1, fmt.Sprintf(`{"n":1,"text":%q}`, text)), Event(id, 1)
	e.ContactID, view.ContactID, view.URL, view.PageKey = text, text, new("https://example.com/"+text), new(text)
	s.Put(e, view)
}

// Define stores an embeddable with the versions 1 to n, and an experiment on it whose status changes to status.
func (s *Source) Define(id string, n int, status client.ExperimentStatus, second int) {
	s.API.Update(func(d *clienttest.Data) {
		x := client.Experiment{
			ID: "exp_" + id, ExperimentID: "exp_" + id, FlowID: id, Name: new("One"), ImpactMetrics: []string{"m"}, NoImpactMetrics: []string{}, CreatedAt: At(0),
			UpdatedAt: At(second), Attachments: new("[]"), Variants: new("{}"), FlowIDs: []string{id}, Status: &status,
		}
		d.Experiments = append(without(d.Experiments, func(was client.Experiment) bool { return was.ID == x.ID }), x)
		d.Embeddables = append(without(d.Embeddables, func(was client.EmbeddableWithDefinition) bool { return was.EmbeddableID == id }), client.EmbeddableWithDefinition{
			Embeddable: client.Embeddable{EmbeddableID: id, Title: "Title ü", GroupID: "gr_1", ProjectID: Project}, Definition: fmt.Sprintf(`{"n":%d}`, n),
		})
		// The API's lists have embeddables by id, and the newest experiment first.
		slices.SortFunc(d.Embeddables, func(a, b client.EmbeddableWithDefinition) int { return strings.Compare(a.EmbeddableID, b.EmbeddableID) })
		slices.SortFunc(d.Experiments, func(a, b client.Experiment) int { return strings.Compare(b.ID, a.ID) })
		d.Versions = without(d.Versions, func(was client.EmbeddableVersionWithDefinition) bool { return was.EmbeddableID == id })
		for v := range int64(n) {
			d.Versions = append(d.Versions, client.EmbeddableVersionWithDefinition{
				EmbeddableVersion: client.EmbeddableVersion{EmbeddableID: id, Number: v + 1, SavedAt: At(0)}, Definition: fmt.Sprintf(`{"v":%d}`, v+1),
			})
		}
		history := maps.Clone(d.History)
		if history == nil {
			history = map[string][]client.ExperimentStatusChange{}
		}
		if list := history[x.ID]; len(list) == 0 || *list[len(list)-1].Status != status {
			history[x.ID] = append(slices.Clip(list), client.ExperimentStatusChange{Status: &status, ChangedAt: At(second), RecordedAt: At(second)})
		}
		d.History = history
	})
}

func without[T any](list []T, is func(T) bool) []T { return slices.DeleteFunc(slices.Clone(list), is) }

// Row is a record of a source or of a copy, by the names that the API gives to its fields. Records of the feed also have
// seq.
type Row = map[string]any

// Tables are the rows of a source or of a copy, by the name of the table and the key of the row.
type Tables map[string]map[string]Row

// keys are the tables, and the columns that identify a row.
var keys = map[string][]string{
	"entries": {"entry_id"}, "events": {"event_key"}, "removals": {"entry_id", "seq"}, "embeddables": {"embeddable_id"},
	"embeddable_versions": {"embeddable_id", "version_number"}, "experiments": {"id"}, "experiment_history": {"experiment_id", "change"},
}

// times are the columns that have a time.
var times = []string{"created_at", "updated_at", "timestamp", "saved_at", "changed_at", "recorded_at", "removed_at"}

// renamed are the names of columns of copies that the API names otherwise.
var renamed = map[string]Row{
	"embeddables":         {"definition": "json_string_prod"},
	"embeddable_versions": {"definition": "json_string"},
	"experiments":         {"experiment_id": "id", "flow_id": "flowId"},
}

// NewTables returns tables without rows: those with the names, or all but removals.
func NewTables(names ...string) Tables {
	if len(names) == 0 {
		names = slices.DeleteFunc(slices.Collect(maps.Keys(keys)), func(name string) bool { return name == "removals" })
	}
	all := Tables{}
	for _, name := range names {
		all[name] = map[string]Row{}
	}
	return all
}

// Add adds the row r, which is anything that has a form in JSON, with further columns. A time is a text, or a number of
// microseconds.
func (all Tables) Add(t *testing.T, table string, r any, more Row) {
	t.Helper()
	one := Row{}
	text, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(text, &one)
	}
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(one, more)
	for from, to := range renamed[table] {
		if v, ok := one[from]; ok {
			one[to.(string)] = v
			delete(one, from)
		}
	}
	delete(one, "experimentId") // the same as id
	for _, name := range times {
		switch v := one[name].(type) {
		case string:
			moment, err := time.Parse(time.RFC3339Nano, v)
			if err != nil {
				t.Fatal(err)
			}
			one[name] = moment.UTC()
		case float64:
			one[name] = time.UnixMicro(int64(v)).UTC()
		}
	}
	key := ""
	for _, name := range keys[table] {
		key += fmt.Sprint(one[name], " ")
	}
	if all[table][key] != nil {
		t.Errorf("%s has two rows of %s", table, key)
	}
	all[table][key] = one
}

// Tables returns what the project has, as the API shows it.
func (s *Source) Tables(t *testing.T) Tables {
	t.Helper()
	all := NewTables(slices.Collect(maps.Keys(keys))...)
	for page, err := range s.Client.Changes(t.Context(), Project, client.ChangeQuery{PageSize: 1000}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range page.Changes {
			seq := Row{"seq": float64(c.Seq)}
			switch c.Type {
			case client.EntryChanged:
				all.Add(t, "entries", c.Entry, seq)
			case client.EventAdded:
				all.Add(t, "events", c.Event, seq)
			case client.EntryRemoved:
				all.Add(t, "removals", c.Removal, seq)
			}
		}
	}
	s.API.Update(func(d *clienttest.Data) {
		for _, e := range d.Embeddables {
			all.Add(t, "embeddables", e, nil)
		}
		for _, v := range d.Versions {
			all.Add(t, "embeddable_versions", v, nil)
		}
		for _, x := range d.Experiments {
			all.Add(t, "experiments", x, nil)
			for i, c := range d.History[x.ID] {
				all.Add(t, "experiment_history", c, Row{"experiment_id": x.ID, "change": float64(i + 1)})
			}
		}
	})
	return all
}

// Equal checks that the tables of a copy have what the source has. exact is false for a copy that keeps the value of
// entry_data and not its bytes.
func Equal(t *testing.T, want, got Tables, exact bool) {
	t.Helper()
	data := cmp.FilterPath(func(p cmp.Path) bool {
		i, ok := p.Index(-2).(cmp.MapIndex)
		return ok && !exact && i.Key().String() == "entry_data"
	}, cmp.Comparer(func(a, b string) bool { return a == b || canonical(a) == canonical(b) }))
	for name, rows := range got {
		if diff := cmp.Diff(want[name], rows, data); diff != "" {
			t.Errorf("%s, -source +copy: %.4000s", name, diff)
		}
	}
}

// canonical returns one text for all forms of the same JSON.
func canonical(text string) string {
	in := json.NewDecoder(strings.NewReader(text))
	in.UseNumber()
	var value any
	if err := in.Decode(&value); err != nil {
		return text
	}
	return fmt.Sprintf("%#v", exactly(value))
}

// exactly returns a value of JSON in which equal numbers have equal forms.
func exactly(value any) any {
	switch v := value.(type) {
	case json.Number:
		n, ok := new(big.Rat).SetString(v.String())
		return fmt.Sprint("number ", n, ok)
	case []any:
		for i := range v {
			v[i] = exactly(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = exactly(v[key])
		}
	}
	return value
}
