package messages

import "github.com/tidwall/gjson"

// Singer is version 0.3.0 of the Singer specification.
type Singer struct{}

// Catalog returns what a tap prints when it is to discover.
func (f Singer) Catalog() any {
	var list []object
	for _, s := range streams {
		list = append(list, object{
			"tap_stream_id": s.name, "stream": s.name, "schema": schema(f, s), "key_properties": s.keys,
			"metadata": []object{{"breadcrumb": []string{}, "metadata": object{
				"inclusion": "available", "selected-by-default": true, "table-key-properties": s.keys, "forced-replication-method": "INCREMENTAL"}}},
		})
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

func (Singer) stored(state gjson.Result) (at, streams gjson.Result) {
	return state.Get("bookmarks.lectern"), state.Get("bookmarks.lectern.streams")
}

func (Singer) deleted() string { return "_sdc_deleted_at" }

func (f Singer) begin(s stream) any {
	return object{"type": "SCHEMA", "stream": s.name, "schema": schema(f, s), "key_properties": s.keys}
}

func (Singer) record(stream string, row any) any {
	return object{"type": "RECORD", "stream": stream, "record": row}
}

func (Singer) after(s state) any {
	return object{"type": "STATE", "value": object{"bookmarks": object{"lectern": s}}}
}
