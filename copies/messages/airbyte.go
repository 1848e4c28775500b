package messages

import (
	"time"

	"github.com/tidwall/gjson"
)

// Airbyte is the [Format] of version 0.3.2 of the Airbyte protocol, for a source connector.
type Airbyte struct{}

// Spec returns the message SPEC, with a JSON schema of the connector's configuration: url, project_id and api_key.
func (Airbyte) Spec() any {
	return object{"type": "SPEC", "spec": object{"connectionSpecification": object{
		"$schema": "http://json-schema.org/draft-07/schema#", "title": "Lectern", "type": "object", "required": []string{"url", "project_id", "api_key"},
		"properties": object{
			"url":        object{"order": 0, "type": "string", "title": "URL", "description": "The address of the API, such as https://lectern.example.com."},
			"project_id": object{"order": 1, "type": "string", "title": "Project", "description": "The project's id."},
			"api_key":    object{"order": 2, "type": "string", "title": "API key", "description": "A key of the project that may read.", "airbyte_secret": true},
		},
	}}}
}

// Status returns the message CONNECTION_STATUS. Status reports success if err is nil, and otherwise the text of err.
func (Airbyte) Status(err error) any {
	status := object{"status": "SUCCEEDED"}
	if err != nil {
		status = object{"status": "FAILED", "message": err.Error()}
	}
	return object{"type": "CONNECTION_STATUS", "connectionStatus": status}
}

// Catalog returns the message CATALOG: all streams with their JSON schemas and primary keys.
func (f Airbyte) Catalog() any {
	var list []object
	for _, s := range streams {
		cursor, keys := []string{}, [][]string{}
		if !s.project {
			cursor = []string{"seq"}
		}
		for _, key := range s.keys {
			keys = append(keys, []string{key})
		}
		list = append(list, object{
			"name": s.name, "json_schema": schema(f, s), "supported_sync_modes": []string{"incremental"}, "is_resumable": true,
			"source_defined_cursor": true, "default_cursor_field": cursor, "source_defined_primary_key": keys,
		})
	}
	return object{"type": "CATALOG", "catalog": object{"streams": list}}
}

func (Airbyte) selected(catalog gjson.Result) (names []string) {
	for _, s := range catalog.Get("streams").Array() {
		name := s.Get("stream.name").String()
		if mode := s.Get("sync_mode").String(); mode != "incremental" {
			name += " (" + mode + ")" // no stream has this name, so NewWriter rejects the catalog
		}
		names = append(names, name)
	}
	return names
}

// stored returns the position and the names of the streams in a state message of type GLOBAL, or in a list of one. A
// stream that the user has cleared has the state null, and is left out.
func (Airbyte) stored(state gjson.Result) (at, streams gjson.Result) {
	if state.IsArray() {
		state = state.Get("0")
	}
	return state.Get("global.shared_state"), state.Get("global.stream_states.#(stream_state.copied==true)#.stream_descriptor.name")
}

func (Airbyte) deleted() string { return "_ab_cdc_deleted_at" }

// begin returns the message by which Airbyte shows that the stream has started.
func (Airbyte) begin(s stream, _ object) any { return streamStatus(s.name, "STARTED") }

func (Airbyte) end(stream string) any { return streamStatus(stream, "COMPLETE") }

func streamStatus(stream, status string) any {
	return object{"type": "TRACE", "trace": object{"type": "STREAM_STATUS", "emitted_at": time.Now().UnixMilli(),
		"stream_status": object{"stream_descriptor": object{"name": stream}, "status": status}}}
}

// deselected returns the columns that the schema of the configured stream name lacks. A schema without columns selects
// all.
func (f Airbyte) deselected(catalog gjson.Result, name string) (names []string) {
	for _, c := range catalog.Get("streams").Array() {
		chosen := c.Get("stream.json_schema.properties").Map()
		if c.Get("stream.name").String() != name || len(chosen) == 0 {
			continue
		}
		for _, s := range streams {
			for column := range schema(f, s)["properties"].(object) {
				if _, ok := chosen[column]; s.name == name && !ok {
					names = append(names, column)
				}
			}
		}
	}
	return names
}

func (Airbyte) record(stream string, row any) any {
	return object{"type": "RECORD", "record": object{"stream": stream, "data": row, "emitted_at": time.Now().UnixMilli()}}
}

func (Airbyte) after(s state) any {
	var states []object
	for _, name := range s.Streams {
		states = append(states, object{"stream_descriptor": object{"name": name}, "stream_state": object{"copied": true}})
	}
	return object{"type": "STATE", "state": object{"type": "GLOBAL", "global": object{"shared_state": s, "stream_states": states}}}
}
