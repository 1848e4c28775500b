package singer

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Catalog returns what a tap prints when it is to discover.
func Catalog() any {
	var streams []object
	for _, s := range Streams {
		streams = append(streams, object{
			"tap_stream_id": s.Name, "stream": s.Name, "schema": s.Schema(), "key_properties": s.Keys,
			"metadata": []object{{"breadcrumb": []string{}, "metadata": object{
				"inclusion": "available", "selected-by-default": true, "table-key-properties": s.Keys, "forced-replication-method": "INCREMENTAL",
			}}},
		})
	}
	return object{"streams": streams}
}

// Selection returns the streams that a catalog selects.
func Selection(catalog []byte) ([]Stream, error) {
	var in struct {
		Streams []struct {
			ID       string `json:"tap_stream_id"`
			Schema   struct{ Selected *bool }
			Metadata []struct {
				Breadcrumb []string
				Metadata   struct {
					Selected  *bool
					ByDefault bool `json:"selected-by-default"`
				}
			}
		}
	}
	if err := json.Unmarshal(catalog, &in); err != nil {
		return nil, err
	}
	var names []string
	for _, s := range in.Streams {
		selected := s.Schema.Selected != nil && *s.Schema.Selected
		for _, m := range s.Metadata {
			if len(m.Breadcrumb) > 0 {
				continue
			}
			if selected = m.Metadata.ByDefault; m.Metadata.Selected != nil {
				selected = *m.Metadata.Selected
			}
		}
		if selected {
			names = append(names, s.ID)
		}
	}
	var streams []Stream
	for _, s := range Streams {
		if slices.Contains(names, s.Name) {
			streams = append(streams, s)
		}
	}
	if len(streams) == 0 || len(streams) != len(names) {
		return nil, fmt.Errorf("it selects the streams %q; allowed: some of those that --discover prints", names)
	}
	return streams, nil
}

// ReadState reads the value of a state message.
func ReadState(value []byte) (State, error) {
	var in struct{ Bookmarks struct{ Lectern State } }
	err := json.Unmarshal(value, &in)
	return in.Bookmarks.Lectern, err
}
