package demo

import (
	"io"
	"time"

	"github.com/lectern-dev/lectern/client"
)

// Version is a version of an embeddable, in the form of the ingest endpoint. Definition is JSON in a string.
type Version struct {
	EmbeddableID string    `json:"embeddable_id"`
	ProjectID    string    `json:"project_id"`
	Number       int       `json:"version_number"`
	SavedAt      time.Time `json:"saved_at"`
	Definition   string    `json:"json_string"`
}

// Embeddables returns the embeddables of the demo project, each with the definition of its latest version.
func Embeddables() []client.EmbeddableWithDefinition {
	var all []client.EmbeddableWithDefinition
	for _, f := range flows() {
		all = append(all, client.EmbeddableWithDefinition{
			Embeddable: client.Embeddable{EmbeddableID: f.id, Title: f.title, GroupID: f.groupID, ProjectID: ProjectID},
			Definition: f.definition(len(f.releases)),
		})
	}
	return all
}

// Versions returns all versions of all embeddables, embeddable by embeddable. Each version has events that name it.
func Versions() []Version {
	var all []Version
	for _, f := range flows() {
		for i, r := range f.releases {
			number := i + 1
			// A version is saved in the afternoon before it goes live at midnight.
			savedAt := r.live().Add(-8*time.Hour - time.Duration(number*37)*time.Minute)
			all = append(all, Version{f.id, ProjectID, number, savedAt, f.definition(number)})
		}
	}
	return all
}

// WriteEmbeddables writes the embeddables of [Embeddables] as NDJSON.
func WriteEmbeddables(w io.Writer) error { return writeEach(w, Embeddables()) }

// WriteVersions writes the versions of [Versions] as NDJSON, embeddable by embeddable.
func WriteVersions(w io.Writer) error { return writeEach(w, Versions()) }

// definition returns the definition of a version of the flow, as JSON. number is the version's number, from 1.
func (f flow) definition(number int) string {
	r := f.releases[number-1]
	pages := make([]pairs, len(f.pages))
	for i := range f.pages {
		pages[i] = f.page(r, i)
	}
	b, _ := plain(pairs{ // never fails: it only contains strings, numbers, booleans and lists of them
		{"flow_id", f.id},
		{"version", number},
		{"note", r.note},
		{"theme", pairs{{"accent", r.accent}, {"font", "Inter"}, {"corner_radius_px", 8}}},
		{"settings", pairs{{"progress_bar", r.progress}, {"back_button", true}, {"url", f.url}}},
		{"pages", pages},
	})
	return string(b)
}

// page returns the definition of the page of f at index, as the release r shows the page.
func (f flow) page(r release, index int) pairs {
	p := f.pages[index]
	components := []pairs{}
	add := func(component pairs) { components = append(components, component) }
	title := p.title
	if index == 0 {
		title = r.headline
	}
	add(pairs{{"type", "headline"}, {"text", title}})
	for _, q := range p.questions {
		add(append(pairs{{"name", q.name}, {"label", q.label}, {"required", q.optional == 0}}, q.input...))
	}
	var next any
	if index+1 < len(f.pages) {
		next = f.pages[index+1].id
		add(pairs{{"type", "button"}, {"label", r.button}, {"action", "next"}})
	}
	reports := []string{}
	if c, ok := customOn(p.key, customEvents()); ok {
		reports = append(reports, c.name)
	}
	return pairs{{"id", p.id}, {"key", p.key}, {"index", index}, {"components", components}, {"custom_events", reports}, {"next", next}}
}
