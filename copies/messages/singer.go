package messages

import (
	"maps"
	"slices"

	"github.com/tidwall/gjson"
)

// Singer is the [Format] of version 0.3.0 of the Singer specification, for a tap.
type Singer struct{}

// Catalog returns the catalog that a tap prints with --discover: all streams with schemas, keys and metadata.
func (f Singer) Catalog() any {
	var list []object
	for _, s := range streams {
		columns := schema(f, s)
		metadata := []object{{"breadcrumb": []string{}, "metadata": object{
			"inclusion": "available", "selected-by-default": true, "table-key-properties": s.keys, "forced-replication-method": "INCREMENTAL"}}}
		for _, name := range slices.Sorted(maps.Keys(columns["properties"].(object))) {
			inclusion := "available"
			if slices.Contains(s.keys, name) || name == "seq" || name == f.deleted() {
				inclusion = "automatic"
			}
			metadata = append(metadata, object{"breadcrumb": []string{"properties", name}, "metadata": object{"inclusion": inclusion, "selected-by-default": true}})
		}
		list = append(list, object{"tap_stream_id": s.name, "stream": s.name, "schema": columns, "key_properties": s.keys, "metadata": metadata})
	}
	return object{"streams": list}
}

func (Singer) selected(catalog gjson.Result) (names []string) {
	for _, s := range catalog.Get("streams").Array() {
		m := s.Get("metadata.#(breadcrumb.#==0).metadata")
		on := m.Get("selected-by-default").Bool() || s.Get("schema.selected").Bool()
		if selected := m.Get("selected"); selected.IsBool() {
			on = selected.Bool()
		}
		if on {
			names = append(names, s.Get("tap_stream_id").String())
		}
	}
	return names
}

// deselected returns the columns of a stream that the user's catalog does not select, by its metadata or by the older
// form in the schema.
func (Singer) deselected(catalog gjson.Result, stream string) (names []string) {
	for _, s := range catalog.Get("streams").Array() {
		if s.Get("tap_stream_id").String() != stream {
			continue
		}
		for _, m := range s.Get("metadata").Array() {
			path, metadata := m.Get("breadcrumb").Array(), m.Get("metadata")
			if len(path) != 2 || path[0].String() != "properties" || metadata.Get("inclusion").String() == "automatic" {
				continue
			}
			on := !metadata.Get("selected-by-default").Exists() || metadata.Get("selected-by-default").Bool()
			if selected := metadata.Get("selected"); selected.IsBool() {
				on = selected.Bool()
			}
			if !on || metadata.Get("inclusion").String() == "unsupported" {
				names = append(names, path[1].String())
			}
		}
		for name, property := range s.Get("schema.properties").Map() {
			if selected := property.Get("selected"); selected.IsBool() && !selected.Bool() { // the form of older catalogs
				names = append(names, name)
			}
		}
	}
	return names
}

// stored returns the position and the names of the streams in a state. state is the value of a STATE message, or the
// whole message.
func (Singer) stored(state gjson.Result) (at, streams gjson.Result) {
	if state.Get("type").String() == "STATE" {
		state = state.Get("value")
	}
	return state.Get("bookmarks.lectern"), state.Get("bookmarks.lectern.streams")
}

func (Singer) deleted() string { return "_sdc_deleted_at" }

func (Singer) begin(s stream, schema object) any {
	return object{"type": "SCHEMA", "stream": s.name, "schema": schema, "key_properties": s.keys}
}

func (Singer) end(string) any { return nil }

func (Singer) record(stream string, row any) any {
	return object{"type": "RECORD", "stream": stream, "record": row}
}

func (Singer) after(s state) any {
	return object{"type": "STATE", "value": object{"bookmarks": object{"lectern": s}}}
}
