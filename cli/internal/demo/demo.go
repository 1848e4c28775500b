// Package demo generates the data of the demo project: 90 days of three flows of several pages. The generator is
// seeded, and uses no I/O and no clock. So every run on every machine generates the same bytes.
package demo

import (
	"bufio"
	"encoding/json"
	"io"
	"time"

	"github.com/lectern-dev/lectern/client"
)

// The id of the demo project, and how many entries and events the project has.
const (
	ProjectID  = "pr_demo"
	EntryCount = 10_000
	EventCount = 80_000

	// Days is the number of days with entries. The last of these days ends at [End].
	Days = 90
)

// End returns the end of the demo project's time: everything in the project happened before End.
func End() time.Time { return time.Date(2026, time.October, 1, 0, 0, 0, 0, time.UTC) }

// Event is an event in the form of the ingest endpoint, which has an id and a URL in addition to [client.Event].
type Event struct {
	EventID string `json:"event_id"`
	client.Event
	URL *string `json:"url"`
}

// WriteEntries writes all entries as NDJSON, the oldest first.
func WriteEntries(w io.Writer) error {
	return writeAll(w, func(encode func(any) error) error {
		return visits(func(entry client.Entry, _ []Event) error { return encode(entry) })
	})
}

// WriteEvents writes the events of all entries as NDJSON. Events are ordered by their entry, and the oldest event of
// an entry comes first.
func WriteEvents(w io.Writer) error {
	return writeAll(w, func(encode func(any) error) error {
		return visits(func(_ client.Entry, events []Event) error {
			for _, e := range events {
				if err := encode(e); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// writeEach writes records as NDJSON, one a line, in the order of the slice.
func writeEach[T any](w io.Writer, records []T) error {
	return writeAll(w, func(encode func(any) error) error {
		for _, r := range records {
			if err := encode(r); err != nil {
				return err
			}
		}
		return nil
	})
}

func writeAll(w io.Writer, records func(encode func(any) error) error) error {
	buffered := bufio.NewWriterSize(w, 64<<10)
	encoder := json.NewEncoder(buffered)
	encoder.SetEscapeHTML(false)
	if err := records(encoder.Encode); err != nil {
		return err
	}
	return buffered.Flush()
}
