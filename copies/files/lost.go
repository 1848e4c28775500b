package files

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies"
)

// lostName matches the names of the files with rows that only the copy had when its source lost changes: NDJSON for lectern
// import. The manifest does not name these files.
var lostName = regexp.MustCompile(`^lost/(entries|events)-[0-9]{20}-[0-9a-f]{16}\.ndjson$`)

// aside collects the newest states of the rows that only the copy has, while Mend removes the rows.
type aside struct {
	*copies.Loss
	newest map[copies.Key]client.Change
}

func (a *aside) add(key copies.Key, change func() client.Change) {
	if a.Loss == nil || !a.Aside[key] {
		return
	}
	if c := change(); c.Seq > a.newest[key].Seq {
		a.newest[key] = c
	}
}

// putAside writes the collected rows to files. A digest of its rows is in the name of each file. So a repair that was killed
// writes the same files again.
func (d *Destination) putAside(ctx context.Context, a *aside) error {
	lines := map[string]*bytes.Buffer{"entries": {}, "events": {}}
	for _, c := range slices.SortedFunc(maps.Values(a.newest), func(a, b client.Change) int { return int(a.Seq - b.Seq) }) {
		name, record := "entries", any(c.Entry)
		if c.Event != nil {
			name, record = "events", client.NewEvent{Event: c.Event.Event, EventID: c.Event.EventID, URL: c.Event.URL}
		}
		record, err := d.Mask.Strip(record)
		if err != nil {
			return err
		}
		if err := json.NewEncoder(lines[name]).Encode(record); err != nil {
			return err
		}
	}
	for name, b := range lines {
		if b.Len() == 0 {
			continue
		}
		name := fmt.Sprintf("lost/%s-%020d-%.16s.ndjson", name, a.After, sumOf(b.Bytes()))
		if err := d.write(ctx, name, b.Bytes()); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// eraseLost removes the rows of erased entries from the files that putAside has written.
func (d *Destination) eraseLost(ctx context.Context, erased removals) error {
	objects, err := d.list(ctx)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if !lostName.MatchString(o.name) || o.past {
			continue
		}
		data, _, err := d.read(ctx, o.name)
		if err != nil {
			return err
		}
		var left []byte
		for line := range bytes.Lines(data) {
			var row key
			if err := json.Unmarshal(line, &struct {
				EntryID *string `json:"entry_id"`
			}{&row.EntryID}); err != nil || !erased.has(row) {
				left = append(left, line...)
			}
		}
		if len(left) < len(data) {
			if err := d.write(ctx, o.name, left); err != nil {
				return err
			}
		}
	}
	return nil
}
