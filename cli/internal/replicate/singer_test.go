package replicate_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/lectern-dev/lectern/cli/internal/replicate"
	"github.com/lectern-dev/lectern/cli/internal/replicate/singer"
	"github.com/lectern-dev/lectern/client"
)

// target is a Singer target: it checks each row by the schema of its stream, replaces rows by their keys, and keeps the
// last state.
type target struct {
	tables  map[string]map[string]row
	keys    map[string][]string
	schemas map[string]*jsonschema.Schema
	state   []byte
}

func (d *target) take(t *testing.T, line string) {
	t.Helper()
	var m struct {
		Type, Stream string
		Schema       any
		Keys         []string `json:"key_properties"`
		Record       row
		Value        json.RawMessage
	}
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		t.Fatal(err)
	}
	switch m.Type {
	case "SCHEMA":
		c := jsonschema.NewCompiler()
		c.DefaultDraft(jsonschema.Draft4)
		c.AssertFormat()
		if err := c.AddResource("schema.json", m.Schema); err != nil {
			t.Fatal(err)
		}
		schema, err := c.Compile("schema.json")
		if err != nil {
			t.Fatal(err)
		}
		d.schemas[m.Stream], d.keys[m.Stream] = schema, m.Keys
		if d.tables[m.Stream] == nil {
			d.tables[m.Stream] = map[string]row{}
		}
	case "RECORD":
		if err := d.schemas[m.Stream].Validate(m.Record); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		var key []any
		for _, name := range d.keys[m.Stream] {
			key = append(key, m.Record[name])
		}
		d.tables[m.Stream][fmt.Sprintf("%q", key)] = m.Record
	case "STATE":
		d.state = m.Value
	default:
		t.Fatalf("a message of type %q", m.Type)
	}
}

// smallBatches makes many states.
type smallBatches struct{ *singer.Writer }

func (smallBatches) Limits() replicate.Limits { return replicate.Limits{Changes: 25, Bytes: 64 << 10} }

// tap returns the lines of a run after the target's state.
func (d *target) tap(t *testing.T, s *source, streams []singer.Stream) []string {
	t.Helper()
	var state singer.State
	if d.state != nil {
		var err error
		if state, err = singer.ReadState(d.state); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	w := singer.NewWriter(&out, project, streams, state)
	if err := w.Begin(); err != nil {
		t.Fatal(err)
	}
	_, err := replicate.Run(t.Context(), replicate.Options{
		Client: s.client, Source: s.is(), Destination: smallBatches{w}, Project: singer.Project(streams), PageSize: 10, Attempts: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

func newTarget() *target {
	return &target{tables: map[string]map[string]row{}, keys: map[string][]string{}, schemas: map[string]*jsonschema.Schema{}}
}

// TestSinger: a target that is cut off anywhere and continues from its state has what the API has. Entries are removed
// meanwhile, and one comes back.
func TestSinger(t *testing.T) {
	s := newWholeSource(t)
	s.fill(t, 0, 60)
	s.define(t, "emb_1", 2, "draft", 1)
	first := newTarget().tap(t, s, singer.Streams)
	s.fill(t, 60, 20)
	s.MustIngest(t, "entries", entry("en_2", 500, `{"n":"changed"}`))
	s.remove(t, "erased", "en_3", "en_61")
	s.remove(t, "purged", "en_4")
	s.fill(t, 4, 1) // comes back
	s.define(t, "emb_1", 3, "paused", 2)
	fresh := newTarget().tap(t, s, singer.Streams)
	for cut := 0; cut <= len(first); cut += 31 {
		d := newTarget()
		for _, line := range first[:cut] {
			d.take(t, line)
		}
		second := d.tap(t, s, singer.Streams)
		if d.state != nil && len(second) >= len(fresh) {
			t.Errorf("cut at %d: %d lines of %d, in spite of the state", cut, len(second), len(fresh))
		}
		for _, line := range second {
			d.take(t, line)
		}
		d.check(t, s, cut)
	}
	// Of one stream, and of all with its state.
	d := newTarget()
	for _, streams := range [][]singer.Stream{singer.Streams[:1], singer.Streams} {
		for _, line := range d.tap(t, s, streams) {
			d.take(t, line)
		}
	}
	d.check(t, s, -1)
}

// check compares the target with the API.
func (d *target) check(t *testing.T, s *source, cut int) {
	t.Helper()
	entries, events := map[string]row{}, map[string]row{}
	for _, r := range d.tables["entries"] {
		if r["_sdc_deleted_at"] != nil {
			if r["entry_data"] != nil || r["contact_id"] != nil {
				t.Errorf("cut at %d: a removed entry keeps %v", cut, r)
			}
			continue
		}
		r = asRow(t, r)
		delete(r, "_sdc_deleted_at")
		entries[r["entry_id"].(string)] = r
	}
	for key, r := range d.tables["events"] {
		removed := false
		for _, removal := range d.tables["removals"] {
			removed = removed || removal["entry_id"] == r["entry_id"] && removal["seq"].(float64) > r["seq"].(float64)
		}
		if !removed {
			events[strings.Trim(key, `["]`)] = r
		}
	}
	want := s.records(t)
	if diff := cmp.Diff(want.entries, entries); diff != "" {
		t.Fatalf("cut at %d: %s", cut, diff)
	}
	if diff := cmp.Diff(want.events, events); diff != "" {
		t.Fatalf("cut at %d: %s", cut, diff)
	}
	embeddable, err := s.client.Embeddable(t.Context(), project, "emb_1")
	if err != nil {
		t.Fatal(err)
	}
	experiment, err := s.client.Experiment(t.Context(), project, "exp_emb_1")
	if err != nil {
		t.Fatal(err)
	}
	for stream, record := range map[string]any{"embeddables": embeddable, "experiments": experiment} {
		for _, got := range d.tables[stream] {
			if diff := cmp.Diff(asRow(t, record), got); diff != "" {
				t.Errorf("cut at %d: %s: %s", cut, stream, diff)
			}
		}
	}
	for stream, n := range map[string]int{"embeddables": 1, "embeddable_versions": 3, "experiments": 1, "experiment_history": 2, "removals": 3} {
		if len(d.tables[stream]) != n {
			t.Errorf("cut at %d: %d %s, want %d", cut, len(d.tables[stream]), stream, n)
		}
	}
	var last client.ExperimentStatus
	for _, r := range d.tables["experiment_history"] {
		if r["change"] == 2.0 {
			last = client.ExperimentStatus(fmt.Sprint(r["status"]))
		}
	}
	if last != "paused" {
		t.Errorf("cut at %d: the last status is %q", cut, last)
	}
}

func TestSingerCatalog(t *testing.T) {
	catalog := func(change func(streams []any)) []byte {
		text, err := json.Marshal(singer.Catalog())
		if err != nil {
			t.Fatal(err)
		}
		var in map[string]any
		if err := json.Unmarshal(text, &in); err != nil {
			t.Fatal(err)
		}
		change(in["streams"].([]any))
		if text, err = json.Marshal(in); err != nil {
			t.Fatal(err)
		}
		return text
	}
	selected := func(stream any, is bool) {
		stream.(map[string]any)["metadata"].([]any)[0].(map[string]any)["metadata"].(map[string]any)["selected"] = is
	}
	for _, tt := range []struct {
		name    string
		catalog []byte
		want    int
	}{
		{"as discovered", catalog(func([]any) {}), 7},
		{"without events", catalog(func(s []any) { selected(s[1], false) }), 6},
		{"nothing", catalog(func(s []any) {
			for _, one := range s {
				selected(one, false)
			}
		}), 0},
		{"another stream", catalog(func(s []any) { s[0].(map[string]any)["tap_stream_id"] = "users" }), 0},
	} {
		streams, err := singer.Selection(tt.catalog)
		if len(streams) != tt.want || (err == nil) != (tt.want > 0) {
			t.Errorf("%s: %d streams, %v", tt.name, len(streams), err)
		}
	}
}
