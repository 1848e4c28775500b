package demo

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The documentation's examples use these ids, so the generated records must not change.
const (
	goldenEntries = "98292586eff796f6360914d0a2c4b6b41764a00059208aa57830ded1b0b7f223"
	goldenEvents  = "9a9e04a1477905793eb814ea4dae0089467825ee64a9c4ee5d42c1820e599b62"

	goldenEmbeddables = "d282336ffc97e4f75b7b9973645dc90a613981fe293f580ccf82002e310a90c4"
	goldenVersions    = "a36147ff6d76b990191b93c591e495f993438fe3b59d09b4996891647cc76cbf"
	goldenExperiments = "7edc5b7362cf77fdb1abfad5bdbdedd81cb16bff1e6131f0650242052e78b601"
	goldenProjects    = "a7355c06896be69c60804bc585db93f372d24f4647ea093b244fda7c8a44e9b5"
)

func TestData(t *testing.T) {
	written := func(write func(io.Writer) error) string {
		t.Helper()
		var b strings.Builder
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	entries, events := written(WriteEntries), written(WriteEvents)
	for _, tt := range []struct{ name, in, want string }{
		{"entries", entries, goldenEntries},
		{"events", events, goldenEvents},
		{"embeddables", written(WriteEmbeddables), goldenEmbeddables},
		{"versions", written(WriteVersions), goldenVersions},
		{"experiments", written(WriteExperiments), goldenExperiments},
		{"projects", written(WriteProjects), goldenProjects},
	} {
		t.Run(tt.name+" are the same bytes each time", func(t *testing.T) {
			sum := sha256.Sum256([]byte(tt.in))
			if got := hex.EncodeToString(sum[:]); got != tt.want {
				t.Errorf("SHA-256 %s, want %s", got, tt.want)
			}
		})
	}
	decoded := decode[Event](t, events)
	t.Run("believable", func(t *testing.T) { checkFlows(t, decode[Entry](t, entries), decoded) })
	t.Run("events name the versions that there are", func(t *testing.T) { checkVersions(t, decoded) })
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

// checkFlows checks properties that hold for the entries and events of real visitors.
func checkFlows(t *testing.T, entries []Entry, events []Event) {
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
			t.Fatalf("%s: data is not JSON: %s", entry.EntryID, entry.Data)
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
				t.Fatalf("%s: an event has the ids of another entry", entry.EntryID)
			}
		}
		if !before.Equal(entry.UpdatedAt) {
			t.Fatalf("%s: updated %v, last event %v", entry.EntryID, entry.UpdatedAt, before)
		}
	}
}

// checkVersions checks that the versions are exactly those in the events. Each must be saved before the first of its
// events, and its definition must contain the pages of the events.
func checkVersions(t *testing.T, events []Event) {
	type key struct {
		id     string
		number int
	}
	first := map[key]time.Time{}
	pages := map[string]map[int]string{}
	for _, e := range events {
		k := key{e.EmbeddableID, e.VersionNumber}
		if at, ok := first[k]; !ok || e.Timestamp.Before(at) {
			first[k] = e.Timestamp
		}
		if pages[k.id] == nil {
			pages[k.id] = map[int]string{}
		}
		pages[k.id][e.PageIndex] = e.PageID
	}
	latest := map[string]string{}
	perFlow := map[string]int{}
	definitions := map[string]bool{}
	for _, v := range Versions() {
		k := key{v.EmbeddableID, v.Number}
		at, ok := first[k]
		if !ok {
			t.Errorf("no event names version %d of %s", v.Number, v.EmbeddableID)
		}
		if !v.SavedAt.Before(at) {
			t.Errorf("version %d of %s was saved at %v, and used at %v", v.Number, v.EmbeddableID, v.SavedAt, at)
		}
		delete(first, k)
		var d struct {
			FlowID  string `json:"flow_id"`
			Version int
			Pages   []struct {
				ID         string
				Index      int
				Components []struct{ Type string }
			}
		}
		if err := json.Unmarshal([]byte(v.Definition), &d); err != nil {
			t.Fatal(err)
		}
		if d.FlowID != v.EmbeddableID || d.Version != v.Number {
			t.Errorf("the definition of version %d of %s is of %d of %s", v.Number, v.EmbeddableID, d.Version, d.FlowID)
		}
		shown := map[int]string{}
		for _, p := range d.Pages {
			shown[p.Index] = p.ID
			for _, c := range p.Components {
				if c.Type == "" {
					t.Errorf("a component of page %s has no type", p.ID)
				}
			}
		}
		if diff := cmp.Diff(pages[v.EmbeddableID], shown); diff != "" {
			t.Errorf("pages of version %d of %s (-of the events +of the definition):\n%s", v.Number, v.EmbeddableID, diff)
		}
		latest[v.EmbeddableID] = v.Definition
		perFlow[v.EmbeddableID]++
		definitions[v.Definition] = true
	}
	for k := range first {
		t.Errorf("events name version %d of %s, which is not there", k.number, k.id)
	}
	if len(definitions) != len(Versions()) {
		t.Errorf("%d definitions in %d versions: want each to change something", len(definitions), len(Versions()))
	}
	for _, e := range Embeddables() {
		if e.Definition != latest[e.EmbeddableID] {
			t.Errorf("the definition of %s is not that of its latest version", e.EmbeddableID)
		}
		if perFlow[e.EmbeddableID] < 2 {
			t.Errorf("%s has %d versions, want several", e.EmbeddableID, perFlow[e.EmbeddableID])
		}
		delete(latest, e.EmbeddableID)
	}
	if len(latest) > 0 {
		t.Errorf("versions of embeddables that are not there: %v", latest)
	}
}

func TestExperiments(t *testing.T) {
	flows := map[string]int{}
	for _, v := range Versions() {
		flows[v.EmbeddableID] = v.Number
	}
	statuses, nulls := map[string]bool{}, map[string]bool{}
	for _, e := range Experiments() {
		if e.ID != e.ExperimentID || e.UpdatedAt.Before(e.CreatedAt) || !e.UpdatedAt.Before(End()) || flows[e.FlowID] == 0 {
			t.Errorf("%+v", e)
		}
		statuses[*e.Status] = true
		var fields map[string]any
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, &fields); err != nil {
			t.Fatal(err)
		}
		for name, value := range fields {
			nulls[name] = nulls[name] || value == nil
		}
		var attachments []struct{ URL, Name string }
		if e.Attachments != nil {
			if err := json.Unmarshal([]byte(*e.Attachments), &attachments); err != nil {
				t.Errorf("%s: attachments: %v", e.ID, err)
			}
		}
		variants := map[string]struct {
			Number int `json:"version_number"`
			Weight int
		}{}
		if e.Variants != nil {
			if err := json.Unmarshal([]byte(*e.Variants), &variants); err != nil {
				t.Errorf("%s: variants: %v", e.ID, err)
			}
		}
		sum := 0
		for _, v := range variants {
			sum += v.Weight
			if v.Number < 1 || v.Number > flows[e.FlowID] {
				t.Errorf("%s: a variant shows version %d of %s, which is not there", e.ID, v.Number, e.FlowID)
			}
		}
		if len(variants) > 0 && sum != 100 {
			t.Errorf("%s: the weights of its variants are %d together, want 100", e.ID, sum)
		}
		for _, key := range []*string{e.WinnerVariant, e.PausedShowingVariant} {
			if key == nil {
				continue
			}
			if _, ok := variants[*key]; !ok {
				t.Errorf("%s: there is no variant %s", e.ID, *key)
			}
		}
	}
	want := map[string]bool{"draft": true, "running": true, "paused": true, "winner_picked": true, "completed": true, "discarded": true}
	if diff := cmp.Diff(want, statuses); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	for _, name := range []string{
		"name", "hypothesis", "impact_metrics", "no_impact_metrics", "observations", "outcome", "attachments", "variants",
		"flow_ids", "paused_showing_variant", "winner_variant",
	} {
		if !nulls[name] {
			t.Errorf("%s is never null", name)
		}
	}
}
