package demo

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// The data of the demo is part of the documentation: examples name its ids.
const (
	goldenEntries = "98292586eff796f6360914d0a2c4b6b41764a00059208aa57830ded1b0b7f223"
	goldenEvents  = "9a9e04a1477905793eb814ea4dae0089467825ee64a9c4ee5d42c1820e599b62"
)

func TestData(t *testing.T) {
	var b, c strings.Builder
	if err := errors.Join(WriteEntries(&b), WriteEvents(&c)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, in, want string }{
		{"entries", b.String(), goldenEntries},
		{"events", c.String(), goldenEvents},
	} {
		t.Run(tt.name+" are the same bytes each time", func(t *testing.T) {
			sum := sha256.Sum256([]byte(tt.in))
			if got := hex.EncodeToString(sum[:]); got != tt.want {
				t.Errorf("SHA-256 %s, want %s", got, tt.want)
			}
		})
	}
	t.Run("believable", func(t *testing.T) { believable(t, decode[Entry](t, b.String()), decode[Event](t, c.String())) })
}

func decode[T any](t *testing.T, text string) []T {
	t.Helper()
	var all []T
	for line := range strings.Lines(text) {
		var v T
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

// believable checks what must hold whatever the flows are.
func believable(t *testing.T, entries []Entry, events []Event) {
	if len(entries) != EntryCount || len(events) != EventCount {
		t.Fatalf("%d entries and %d events, want %d and %d", len(entries), len(events), EntryCount, EventCount)
	}

	byEntry, ids := map[string][]Event{}, map[string]bool{}
	for _, e := range events {
		byEntry[e.EntryID] = append(byEntry[e.EntryID], e)
		ids[e.EventID] = true
	}
	if len(ids) != EventCount {
		t.Errorf("%d event ids, want one an event", len(ids))
	}
	first := End().AddDate(0, 0, -Days)
	seen := map[string]bool{}
	for _, entry := range entries {
		if seen[entry.EntryID] {
			t.Fatalf("%s comes twice", entry.EntryID)
		}
		seen[entry.EntryID] = true
		own := byEntry[entry.EntryID]
		if !slices.ContainsFunc(own, func(e Event) bool { return e.EventType == "flowpage.viewed" }) {
			t.Fatalf("%s has no page view", entry.EntryID)
		}
		if entry.CreatedAt.Before(first) || !entry.UpdatedAt.Before(End()) || entry.UpdatedAt.Before(entry.CreatedAt) {
			t.Fatalf("%s: %v to %v is not within %v to %v", entry.EntryID, entry.CreatedAt, entry.UpdatedAt, first, End())
		}
		if !json.Valid([]byte(entry.Data)) {
			t.Fatalf("%s: data is no JSON: %s", entry.EntryID, entry.Data)
		}
		furthest := 0
		var before time.Time
		for _, e := range own {
			if !e.Timestamp.After(before) {
				t.Fatalf("%s: events are not in order", entry.EntryID)
			}
			before = e.Timestamp
			furthest = max(furthest, e.PageIndex)
			if e.MaxPageIndex != furthest || e.PageIndex < 0 || e.PageIndex >= e.TotalPages {
				t.Fatalf("%s: page %d of %d, furthest %d, want %d", entry.EntryID, e.PageIndex, e.TotalPages, e.MaxPageIndex, furthest)
			}
			if e.ContactID != entry.ContactID || e.GroupID != entry.GroupID || e.EmbeddableID != entry.EmbeddableID || e.ProjectID != ProjectID {
				t.Fatalf("%s: an event names another's ids", entry.EntryID)
			}
		}
		if !before.Equal(entry.UpdatedAt) {
			t.Fatalf("%s: updated %v, last event %v", entry.EntryID, entry.UpdatedAt, before)
		}
	}
}
