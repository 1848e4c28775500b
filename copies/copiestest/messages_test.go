package copiestest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tidwall/gjson"
	"go.yaml.in/yaml/v3"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies"
	"github.com/lectern-dev/lectern/copies/internal/copytest"
	"github.com/lectern-dev/lectern/copies/messages"
)

type (
	row    = copytest.Row
	object = copytest.Row
)

func TestSinger(t *testing.T) {
	copytest.Run(t, func(t *testing.T) copytest.Kind { return newProgram(t, protocols["Singer"]) })
}

func TestAirbyte(t *testing.T) {
	copytest.Run(t, func(t *testing.T) copytest.Kind { return newProgram(t, protocols["Airbyte"]) })
}

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
		catalog = p.choose(catalog, asRow(t, s.Raw), slices.Contains(names, s.Get(p.name).String()))
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

func asRow(t *testing.T, text string) (r row) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	return r
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

// program is another program, which replaces rows by their keys and keeps the last state.
type program struct {
	t      *testing.T
	p      protocol
	tables map[string]map[string]row
	state  gjson.Result
	lines  []gjson.Result // of all runs
	left   int            // the program ends after so many lines, unless it is negative
	// keys and schemas are those of the catalog, and order is the order of a stream's columns. Rows are not checked
	// against a schema if columns are masked.
	keys    map[string][]gjson.Result
	schemas map[string]*jsonschema.Schema
	order   map[string]string
	masked  bool
}

func newProgram(t *testing.T, p protocol) *program {
	t.Helper()
	d := &program{t: t, p: p, tables: map[string]map[string]row{}, keys: map[string][]gjson.Result{}, schemas: map[string]*jsonschema.Schema{}, order: map[string]string{}}
	for _, stream := range asJSON(t, p.Catalog()).Get(p.streams).Array() {
		name := stream.Get(p.name).String()
		d.keys[name], d.schemas[name] = stream.Get(p.keys).Array(), compile(t, stream.Get(p.schema), "")
	}
	return d
}

// Write takes messages, of which each is a line.
func (d *program) Write(b []byte) (int, error) {
	for line := range bytes.Lines(b) {
		if d.left == 0 {
			return 0, copytest.ErrCut
		}
		d.left--
		d.take(gjson.ParseBytes(bytes.Clone(line)))
	}
	return len(b), nil
}

// take stores a message. Each record has the columns of its schema, and all of a stream have them in the same order.
func (d *program) take(line gjson.Result) {
	d.lines = append(d.lines, line)
	switch line.Get("type").String() {
	case "RECORD":
		stream, values := line.Get(d.p.stream).String(), []string{}
		for _, name := range d.keys[stream] {
			values = append(values, line.Get(d.p.row).Get(name.String()).Raw)
		}
		one := line.Get(d.p.row).Value().(row)
		if d.tables[stream] == nil {
			d.tables[stream] = map[string]row{}
		}
		d.tables[stream][strings.Join(values, " ")] = one
		if d.masked {
			return
		}
		if err := d.schemas[stream].Validate(one); err != nil || len(one) != len(d.schemas[stream].Properties) {
			d.t.Errorf("%s: %v", line, err)
		}
		columns := line.Get(d.p.row + ".@keys").Raw
		if first, ok := d.order[stream]; ok && columns != first {
			d.t.Errorf("%s: the columns are %s, and were %s", line, columns, first)
		}
		d.order[stream] = columns
	case "STATE":
		d.state = line.Get(d.p.state)
	}
}

// Open returns a run that continues from the last state.
func (d *program) Open(_ *testing.T, o copytest.Options) (copies.Destination, error) {
	if d.left, d.masked = o.Cut, o.Mask != nil; o.Cut == 0 {
		d.left = -1
	}
	return messages.NewWriter(d, d.p, o.Source.ProjectID, gjson.Result{}, d.state, o.Mask)
}

// Exact reports that entry_data is as it was.
func (*program) Exact() bool { return true }

// Text returns nothing: the program keeps only tables.
func (*program) Text(*testing.T) string { return "" }

// Read returns the rows that are not removed. A removed entry has no other values than its key, and none of its events
// that are older.
func (d *program) Read(t *testing.T) copytest.Tables {
	t.Helper()
	deleted, all := d.p.deleted, copytest.NewTables(slices.Sorted(maps.Keys(d.keys))...)
	for stream, table := range d.tables {
		for _, r := range table {
			if stream == "entries" && r[deleted] != nil {
				for name, value := range r {
					if value != nil && name != "entry_id" && name != "seq" && name != deleted {
						t.Errorf("a removed entry has the %s %v", name, value)
					}
				}
				continue
			}
			if stream == "events" && d.removed(r) {
				continue
			}
			shown := maps.Clone(r)
			delete(shown, deleted)
			all.Add(t, stream, shown, nil)
		}
	}
	// A removal that moved in the feed is here with each of its numbers.
	for key, r := range all["removals"] {
		for _, other := range all["removals"] {
			if r["entry_id"] == other["entry_id"] && r["seq"].(float64) < other["seq"].(float64) {
				delete(all["removals"], key)
			}
		}
	}
	return all
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

// run returns the messages of a run with a catalog and a state.
func (p protocol) run(t *testing.T, s *copytest.Source, catalog, state gjson.Result) []gjson.Result {
	t.Helper()
	d := newProgram(t, p)
	d.left, d.masked = -1, true // columns may be deselected
	w, err := messages.NewWriter(d, p, copytest.Project, catalog, state, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sync(t.Context(), copytest.Small(w), nil); err != nil {
		t.Fatal(err)
	}
	return d.lines
}

// TestStreams checks that a stream that is selected later, or cleared, gets all of its rows, and what is refused.
func TestStreams(t *testing.T) {
	t.Parallel()
	for name, p := range protocols {
		t.Run(name, func(t *testing.T) {
			s := copytest.NewSource(t)
			s.Fill(0, 30)
			s.Define("emb_1", 2, client.Draft, 1)
			fresh := p.run(t, s, gjson.Result{}, gjson.Result{})
			entries := p.run(t, s, p.choice(t, "entries"), gjson.Result{})
			state := lastState(p, entries)
			if again := p.run(t, s, p.choice(t, "entries"), state); len(again) > 3 {
				t.Errorf("the second run of one stream has %d lines", len(again))
			}
			if all := p.run(t, s, gjson.Result{}, state); len(all) != len(fresh) {
				t.Errorf("%d lines, want %d", len(all), len(fresh))
			}
			for _, catalog := range []gjson.Result{p.choice(t), gjson.Parse(`{"streams":[{"tap_stream_id":"users","stream":{"name":"users"},"sync_mode":"incremental"}]}`)} {
				if _, err := messages.NewWriter(nil, p, copytest.Project, catalog, gjson.Result{}, nil); err == nil {
					t.Errorf("a Writer of %s", catalog)
				}
			}
			if name == "Airbyte" { // which passes a list, in which the state of a cleared stream is null
				list := gjson.Parse("[" + state.Raw + "]")
				cleared := gjson.Parse(strings.Replace(list.Raw, `{"copied":true}`, "null", 1))
				kept, all := p.run(t, s, p.choice(t, "entries"), list), p.run(t, s, p.choice(t, "entries"), cleared)
				if len(kept) > 3 || len(all) != len(entries) {
					t.Errorf("%d lines after a list, %d after a cleared stream", len(kept), len(all))
				}
				airbyteSchema(t, fresh)
			}
		})
	}
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
	s := copytest.NewSource(t)
	s.Fill(0, 3)
	s.Put(copytest.Entry("en_1", 9, `{"secret":"canary"}`))
	s.Remove(client.Purged, "en_2")
	deselect := []string{"contact_id", "entry_data", "entry_id", "seq"}
	for name, p := range protocols {
		catalog := asRow(t, p.choice(t, "entries", "events").Raw)
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
	p, s := protocols["Airbyte"], copytest.NewSource(t)
	s.Fill(0, 30)
	s.Define("emb_1", 2, client.Draft, 1)
	catalog := p.choice(t, slices.Sorted(maps.Keys(newProgram(t, p).keys))...)
	first := p.run(t, s, catalog, gjson.Result{})
	s.Fill(30, 10)
	s.Put(copytest.Entry("en_2", 500, `{"n":"changed"}`))
	s.Remove(client.Erased, "en_3", "en_31")
	s.Remove(client.Purged, "en_4")
	s.Fill(4, 1)
	s.Define("emb_1", 3, client.Paused, 2)
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
		d := newProgram(t, p)
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &d.tables); err != nil {
			t.Fatal(err)
		}
		copytest.Equal(t, s.Tables(t), d.Read(t), true)
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
