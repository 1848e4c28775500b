package copies

import (
	"slices"

	"github.com/lectern-dev/lectern/client"
)

// Newest is the net effect of a batch: the last change of each record. A destination with one row for each record
// applies Removals first, to rows with smaller numbers, and then Entries and Events.
type Newest struct {
	Removals, Entries, Events []client.Change
}

// Newest returns the changes of the batch that no later change of the batch replaces. A removal replaces the earlier
// changes of the entry and of the entry's events.
func (b *Batch) Newest() Newest {
	var n Newest
	removed, entries, events := map[string]bool{}, map[string]bool{}, map[string]bool{}
	first := func(seen map[string]bool, id string) bool {
		if seen[id] {
			return false
		}
		seen[id] = true
		return true
	}
	for _, c := range slices.Backward(b.Changes) {
		switch c.Type {
		case client.EntryRemoved:
			if first(removed, c.Removal.EntryID) {
				n.Removals = append(n.Removals, c)
			}
		case client.EntryChanged:
			if !removed[c.Entry.EntryID] && first(entries, c.Entry.EntryID) {
				n.Entries = append(n.Entries, c)
			}
		case client.EventAdded:
			if !removed[c.Event.EntryID] && first(events, c.Event.EventKey) {
				n.Events = append(n.Events, c)
			}
		}
	}
	slices.Reverse(n.Removals)
	slices.Reverse(n.Entries)
	slices.Reverse(n.Events)
	return n
}
