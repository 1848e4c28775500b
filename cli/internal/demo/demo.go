// Package demo has the data of the demo project: 90 days of visits to three flows of several pages. The flows and the
// experiments are the files in the folder data, in the form of the ingest endpoints. The visits are generated: the
// generator is seeded, and uses no I/O and no clock. So every run on every machine has the same bytes.
package demo

import (
	"bufio"
	"embed"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/lectern-dev/lectern/client"
)

// The id of the demo project, and how many entries and events the project has.
const (
	ProjectID  = "pr_demo"
	EntryCount = 10_000
	EventCount = 80_000

	// days is the number of days with entries. The last of these days ends at [End].
	days = 90
)

// End returns the end of the demo project's time: everything in the project happened before End.
func End() time.Time { return time.Date(2026, time.October, 1, 0, 0, 0, 0, time.UTC) }

// event is an event in the form of the ingest endpoint, which has an id and a URL in addition to [client.Event].
type event struct {
	EventID string `json:"event_id"`
	client.Event
	URL *string `json:"url"`
}

//go:embed data
var data embed.FS

// Embeddables returns the embeddables of the demo project, each with the definition of its latest version.
func Embeddables() []client.EmbeddableWithDefinition {
	return decoded[client.EmbeddableWithDefinition]("embeddables")
}

// Versions returns all versions of all embeddables, embeddable by embeddable. Each version has events that name it.
func Versions() []client.EmbeddableVersionWithDefinition {
	return decoded[client.EmbeddableVersionWithDefinition]("embeddable-versions")
}

// Experiments returns the project's experiments, the oldest first. Each possible status occurs at least once.
func Experiments() []client.Experiment { return decoded[client.Experiment]("experiments") }

// Write writes all records of the resource as NDJSON: projects, embeddable-versions, embeddables, experiments, entries
// or events. Entries are written the oldest first. Events are ordered by their entry, and then by time.
func Write(w io.Writer, resource string) error {
	if resource != "entries" && resource != "events" {
		_, err := io.WriteString(w, file(resource))
		return err
	}
	buffered := bufio.NewWriterSize(w, 64<<10)
	encoder := json.NewEncoder(buffered)
	encoder.SetEscapeHTML(false)
	for entry, events := range visits() {
		if resource == "entries" {
			if err := encoder.Encode(entry); err != nil {
				return err
			}
			continue
		}
		for _, e := range events {
			if err := encoder.Encode(e); err != nil {
				return err
			}
		}
	}
	return buffered.Flush()
}

// file returns the records of the resource as NDJSON, from the folder data.
func file(resource string) string {
	ndjson, err := data.ReadFile("data/" + resource + ".ndjson")
	must(err)
	return string(ndjson)
}

func decoded[T any](resource string) (records []T) {
	for line := range strings.Lines(file(resource)) {
		var r T
		must(json.Unmarshal([]byte(line), &r))
		records = append(records, r)
	}
	return records
}

// must panics if a file in the folder data is missing or malformed. A test reads all of these files.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
