package copiestest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tidwall/gjson"
	"go.yaml.in/yaml/v3"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies"
	"github.com/lectern-dev/lectern/copies/messages"
)

// protocol has the paths at which a program finds what it needs.
type protocol struct {
	messages.Format
	streams, name, keys, schema string // of the catalog
	stream, row, state          string // of a message
	deleted                     string
	// choose adds a stream to the user's catalog, selected or not.
	choose func(catalog []any, stream row, selected bool) []any
}

var protocols = map[string]protocol{
	"Singer": {messages.Singer{}, "streams", "tap_stream_id", "key_properties", "schema", "stream", "record", "value", "_sdc_deleted_at",
		func(catalog []any, stream row, selected bool) []any {
			m := stream["metadata"].([]any)[0].(row)["metadata"].(row)
			m["selected"], m["selected-by-default"] = selected, !selected
			if len(catalog)%2 == 0 {
				delete(m, "selected")
				m["selected-by-default"] = selected
			}
			return append(catalog, stream)
		}},
	"Airbyte": {messages.Airbyte{}, "catalog.streams", "name", "source_defined_primary_key.#.0", "json_schema", "record.stream", "record.data", "state", "_ab_cdc_deleted_at",
		func(catalog []any, stream row, selected bool) []any {
			if !selected {
				return catalog
			}
			return append(catalog, object{"stream": stream, "sync_mode": "incremental", "destination_sync_mode": "append_dedup"})
		}},
}

// choice is the user's catalog with some streams.
func (p protocol) choice(t *testing.T, names ...string) gjson.Result {
	t.Helper()
	var catalog []any
	for _, s := range asJSON(t, p.Catalog()).Get(p.streams).Array() {
		catalog = p.choose(catalog, asRow(t, json.RawMessage(s.Raw)), slices.Contains(names, s.Get(p.name).String()))
	}
	return asJSON(t, object{"streams": catalog})
}

func asJSON(t *testing.T, v any) gjson.Result {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return gjson.ParseBytes(b)
}

// compile returns a part of a JSON schema.
func compile(t *testing.T, schema gjson.Result, part string) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(schema.Raw))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft4)
	c.AssertFormat()
	if err := c.AddResource("schema.json", document); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("schema.json" + part)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// program is another program: it replaces rows by their keys, and keeps the last state.
type program struct {
	tables map[string]map[string]row
	state  gjson.Result
}

// take stores a message.
func (d *program) take(t *testing.T, p protocol, keys map[string][]gjson.Result, line gjson.Result) {
	t.Helper()
	switch line.Get("type").String() {
	case "RECORD":
		stream, values := line.Get(p.stream).String(), []string{}
		for _, name := range keys[stream] {
			values = append(values, line.Get(p.row).Get(name.String()).Raw)
		}
		if d.tables[stream] == nil {
			d.tables[stream] = map[string]row{}
		}
		d.tables[stream][strings.Join(values, " ")] = line.Get(p.row).Value().(row)
	case "STATE":
		d.state = line.Get(p.state)
	}
}

// smallBatches makes many states.
type smallBatches struct{ *messages.Writer }

func (smallBatches) Limits() copies.Limits { return copies.Limits{Changes: 15, Bytes: 64 << 10} }

// run returns the messages of a run.
func (p protocol) run(t *testing.T, s *source, catalog, state gjson.Result) (lines []gjson.Result) {
	t.Helper()
	var out bytes.Buffer
	w, err := messages.NewWriter(&out, p, project, catalog, state, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = copies.Run(t.Context(), copies.Options{
		Client: s.client, Source: s.is(), Destination: smallBatches{w}, Project: w.Project, PageSize: 10, Attempts: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		lines = append(lines, gjson.Parse(line))
	}
	return lines
}

// begin stores records of all streams but one.
func (s *source) begin(t *testing.T) {
	t.Helper()
	s.fill(t, 0, 30)
	s.define(t, "emb_1", 2, "draft", 1)
}

// change adds, changes and removes records, of which one comes back.
func (s *source) change(t *testing.T) {
	t.Helper()
	s.fill(t, 30, 10)
	s.MustIngest(t, "entries", entry("en_2", 500, `{"n":"changed"}`))
	s.remove(t, "erased", "en_3", "en_31")
	s.remove(t, "purged", "en_4")
	s.fill(t, 4, 1)
	s.define(t, "emb_1", 3, "paused", 2)
}

// TestMessages: a program that is cut off after any line and continues from its state has what the API has.
func TestMessages(t *testing.T) {
	t.Parallel()
	s := newWholeSource(t)
	s.begin(t)
	first := map[string][]gjson.Result{}
	for name, p := range protocols {
		first[name] = p.run(t, s, gjson.Result{}, gjson.Result{})
	}
	s.change(t)
	want := s.tables(t)
	for name, p := range protocols {
		t.Run(name, func(t *testing.T) {
			keys, schemas := map[string][]gjson.Result{}, map[string]*jsonschema.Schema{}
			for _, stream := range asJSON(t, p.Catalog()).Get(p.streams).Array() {
				keys[stream.Get(p.name).String()] = stream.Get(p.keys).Array()
				schemas[stream.Get(p.name).String()] = compile(t, stream.Get(p.schema), "")
			}
			// Each record has the columns of its schema, and each of a stream has them in the same order.
			order := map[string]string{}
			valid := func(lines []gjson.Result) {
				for _, line := range lines {
					if line.Get("type").String() != "RECORD" {
						continue
					}
					row, stream := line.Get(p.row).Value().(row), line.Get(p.stream).String()
					if err := schemas[stream].Validate(row); err != nil || len(row) != len(schemas[stream].Properties) {
						t.Fatalf("%s: %v", line, err)
					}
					columns := line.Get(p.row + ".@keys").Raw
					if first, ok := order[stream]; ok && columns != first {
						t.Fatalf("%s: the columns are %s, and were %s", line, columns, first)
					}
					order[stream] = columns
				}
			}
			valid(first[name])
			fresh := p.run(t, s, gjson.Result{}, gjson.Result{})
			second := map[string][]gjson.Result{} // runs by their states
			for cut := range len(first[name]) + 1 {
				d := program{map[string]map[string]row{}, gjson.Result{}}
				for _, line := range first[name][:cut] {
					d.take(t, p, keys, line)
				}
				if second[d.state.Raw] == nil {
					second[d.state.Raw] = p.run(t, s, gjson.Result{}, d.state)
					valid(second[d.state.Raw])
				}
				if d.state.Exists() && len(second[d.state.Raw]) >= len(fresh) {
					t.Errorf("cut at %d: %d lines of %d, in spite of the state", cut, len(second[d.state.Raw]), len(fresh))
				}
				for _, line := range second[d.state.Raw] {
					d.take(t, p, keys, line)
				}
				if got := d.visible(p.deleted); !reflect.DeepEqual(want, got) {
					t.Fatalf("cut at %d: %s", cut, cmp.Diff(want, got))
				}
			}
			if len(second) < 5 {
				t.Errorf("the first run has %d states, want at least 5", len(second))
			}
			// A stream that is selected later, or cleared, gets all of its rows.
			entries := p.run(t, s, p.choice(t, "entries"), gjson.Result{})
			state := lastState(p, entries)
			if again := p.run(t, s, p.choice(t, "entries"), state); len(again) > 3 {
				t.Errorf("the second run of one stream has %d lines", len(again))
			}
			if all := p.run(t, s, gjson.Result{}, state); len(all) != len(fresh) {
				t.Errorf("%d lines, want %d", len(all), len(fresh))
			}
			if name == "Airbyte" { // which passes a list, in which the state of a cleared stream is null
				list := gjson.Parse("[" + state.Raw + "]")
				cleared := gjson.Parse(strings.Replace(list.Raw, `{"copied":true}`, "null", 1))
				kept, all := p.run(t, s, p.choice(t, "entries"), list), p.run(t, s, p.choice(t, "entries"), cleared)
				if len(kept) > 3 || len(all) != len(entries) {
					t.Errorf("%d lines after a list, %d after a cleared stream", len(kept), len(all))
				}
			}
			for _, catalog := range []gjson.Result{p.choice(t), gjson.Parse(`{"streams":[{"tap_stream_id":"users","stream":{"name":"users"},"sync_mode":"incremental"}]}`)} {
				if _, err := messages.NewWriter(nil, p, project, catalog, gjson.Result{}, nil); err == nil {
					t.Errorf("a Writer of %s", catalog)
				}
			}
			if _, err := messages.NewWriter(nil, p, "pr_other", gjson.Result{}, state, nil); err == nil {
				t.Error("the state of another project is taken")
			}
		})
	}
	t.Run("schema", func(t *testing.T) { airbyteSchema(t, first["Airbyte"]) })
}

// lastState returns the last state of a run.
func lastState(p protocol, lines []gjson.Result) gjson.Result {
	for _, line := range slices.Backward(lines) {
		if line.Get("type").String() == "STATE" {
			return line.Get(p.state)
		}
	}
	return gjson.Result{}
}

// A column that the user does not select is neither in the schema nor in a row, unless the target needs it.
func TestDeselectedColumns(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	s.fill(t, 0, 3)
	s.MustIngest(t, "entries", entry("en_1", 9, `{"secret":"canary"}`))
	s.remove(t, "purged", "en_2")
	deselect := []string{"contact_id", "entry_data", "entry_id", "seq"}
	for name, p := range protocols {
		catalog := asRow(t, json.RawMessage(p.choice(t, "entries", "events").Raw))
		for _, one := range catalog["streams"].([]any) {
			of := one.(row)
			if name == "Airbyte" { // which leaves the column out of the configured schema
				for _, column := range deselect {
					delete(of["stream"].(row)["json_schema"].(row)["properties"].(row), column)
				}
				continue
			}
			for _, m := range of["metadata"].([]any) {
				if path := m.(row)["breadcrumb"].([]any); len(path) == 2 && slices.Contains(deselect, path[1].(string)) {
					m.(row)["metadata"].(row)["selected"] = false
				}
			}
		}
		lines := p.run(t, s, asJSON(t, catalog), gjson.Result{})
		rows := 0
		for _, line := range lines {
			columns := line.Get(p.row).Map()
			if line.Get("type").String() == "SCHEMA" {
				columns = line.Get("schema.properties").Map()
			} else if line.Get("type").String() != "RECORD" {
				continue
			}
			rows++
			stream := line.Get("stream").String() + line.Get(p.stream).String()
			for column, want := range map[string]bool{"contact_id": false, "entry_data": false, "seq": true, "embeddable_id": true, "entry_id": strings.Contains(stream, "entries")} {
				if _, ok := columns[column]; ok != want {
					t.Errorf("%s: column %s: %v: %s", name, column, ok, line)
				}
			}
		}
		if rows < 5 || strings.Contains(fmt.Sprint(lines), "canary") {
			t.Errorf("%s: %v", name, lines)
		}
		message := gjson.Result{} // a whole message is a state, too
		for _, line := range lines {
			if line.Get("type").String() == "STATE" {
				message = line
			}
		}
		if again := p.run(t, s, asJSON(t, catalog), message); name == "Singer" && len(again) > 3 {
			t.Errorf("%d lines after a whole message", len(again))
		}
	}
}

// TestLongAirbyteDestination: a destination on a connector kit that is not ours has what the API has, wherever it was cut off.
func TestLongAirbyteDestination(t *testing.T) {
	folder := cached(t, "faros-airbyte-cdk-0.23.19", func(folder string) *exec.Cmd {
		return exec.Command("npm", "install", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund",
			"faros-airbyte-cdk@0.23.19", "faros-js-client@0.5.6", "commander@11.1.0", "lodash@4.18.1")
	})
	p, s := protocols["Airbyte"], newWholeSource(t)
	s.begin(t)
	catalog := p.choice(t, "entries", "events", "removals", "embeddables", "embeddable_versions", "experiments", "experiment_history")
	first := p.run(t, s, catalog, gjson.Result{})
	s.change(t)
	want := s.tables(t)
	for cut := 0; cut < len(first); cut += 20 {
		place := t.TempDir()
		file := func(name, content string) string {
			path := filepath.Join(place, name)
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}
		out := filepath.Join(place, "out.json")
		// load returns the last state that the destination has stored.
		load := func(messages []gjson.Result) gjson.Result {
			cmd := exec.CommandContext(t.Context(), "node", "testdata/airbyte-destination.js", "write",
				"--config", file("config.json", asJSON(t, object{"file": out}).Raw), "--catalog", file("catalog.json", catalog.Raw))
			cmd.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(folder, "node_modules"))
			var in, errs bytes.Buffer
			for _, m := range messages {
				in.WriteString(strings.TrimSpace(m.Raw) + "\n")
			}
			cmd.Stdin, cmd.Stderr = &in, &errs
			states, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, &errs)
			}
			lines := strings.Split(strings.TrimSpace(string(states)), "\n")
			return gjson.Get(lines[len(lines)-1], "state")
		}
		load(p.run(t, s, catalog, load(first[:cut])))
		var d program
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &d.tables); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, d.visible(p.deleted)); diff != "" {
			t.Fatalf("cut at %d: %s", cut, diff)
		}
	}
}

// airbyteSchema checks messages by the schema that Airbyte publishes.
func airbyteSchema(t *testing.T, lines []gjson.Result) {
	text, err := os.ReadFile("testdata/airbyte_protocol.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var document any
	if err := yaml.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	message := compile(t, asJSON(t, document), "#/definitions/AirbyteMessage")
	a := messages.Airbyte{}
	for _, m := range []any{a.Spec(), a.Catalog(), a.Status(nil), a.Status(errors.New("refused"))} {
		lines = append(lines, asJSON(t, m))
	}
	for _, line := range lines {
		if err := message.Validate(line.Value()); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	if message.Validate(row{"type": "STATE", "state": row{"type": "OTHER"}}) == nil {
		t.Error("the schema allows a state of another type")
	}
	configured := compile(t, asJSON(t, document), "#/definitions/ConfiguredAirbyteCatalog")
	if err := configured.Validate(protocols["Airbyte"].choice(t, "entries", "events").Value()); err != nil {
		t.Error(err)
	}
}

// visible returns the rows that are not removed, by what a user would see of them.
func (d *program) visible(deleted string) map[string][]row {
	list := map[string][]row{}
	for stream, table := range d.tables {
		for _, r := range table {
			switch {
			case stream == "entries" && r[deleted] != nil:
				for name, value := range r {
					if value != nil && name != "entry_id" && name != "seq" && name != deleted {
						list["kept"] = append(list["kept"], r) // erased data
					}
				}
				continue
			case stream == "events" && d.removed(r):
				continue
			}
			shown := row{}
			for name, value := range r {
				if name != deleted {
					shown[name] = value
				}
			}
			list[stream] = append(list[stream], shown)
		}
	}
	sortRows(list)
	return list
}

// removed reports whether a removal removes an event.
func (d *program) removed(event row) bool {
	for _, removal := range d.tables["removals"] {
		if removal["entry_id"] == event["entry_id"] && removal["seq"].(float64) > event["seq"].(float64) {
			return true
		}
	}
	return false
}

func sortRows(list map[string][]row) {
	for _, rows := range list {
		slices.SortFunc(rows, func(a, b row) int {
			for _, key := range []string{"event_key", "entry_id", "seq", "embeddable_id", "version_number", "id", "change"} {
				if c := strings.Compare(fmt.Sprint(a[key]), fmt.Sprint(b[key])); c != 0 {
					return c
				}
			}
			return 0
		})
	}
}

// tables returns what the API has, as [program.visible] does.
func (s *source) tables(t *testing.T) map[string][]row {
	t.Helper()
	list := map[string][]row{}
	records := s.records(t)
	for _, r := range records.entries {
		list["entries"] = append(list["entries"], r)
	}
	for _, r := range records.events {
		list["events"] = append(list["events"], r)
	}
	add := func(stream string, record any, err error) {
		if err != nil {
			t.Fatal(err)
		}
		list[stream] = append(list[stream], asRow(t, record))
	}
	embeddable, err := s.client.Embeddable(t.Context(), project, "emb_1")
	add("embeddables", embeddable, err)
	for n := range int64(3) {
		version, err := s.client.Version(t.Context(), project, "emb_1", n+1)
		add("embeddable_versions", version, err)
	}
	experiment, err := s.client.Experiment(t.Context(), project, "exp_emb_1")
	add("experiments", experiment, err)
	history, err := s.client.ExperimentHistory(t.Context(), project, "exp_emb_1")
	for i, change := range history {
		r := asRow(t, change)
		r["experiment_id"], r["change"] = "exp_emb_1", float64(i+1)
		add("experiment_history", r, err)
	}
	for page, err := range s.client.Changes(t.Context(), project, client.ChangeQuery{Types: []client.ChangeType{client.EntryRemoved}}) {
		for _, c := range page.Changes {
			r := asRow(t, c.Removal)
			r["seq"] = float64(c.Seq)
			add("removals", r, err)
		}
	}
	sortRows(list)
	return list
}
