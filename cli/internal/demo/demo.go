// Package demo generates the data of the demo project: 90 days of three multi-page flows. It only uses a seeded generator,
// no I/O and no clock. So every run on every machine generates the same bytes.
package demo

import (
	"bufio"
	"encoding/json"
	"io"
	"time"

	"github.com/lectern-dev/lectern/client"
)

// The size of the demo project.
const (
	ProjectID  = "pr_demo"
	EntryCount = 10_000
	EventCount = 80_000

	// Days is the number of days before End with entries.
	Days = 90
)

// End returns the time before which everything in the demo project happened.
func End() time.Time { return time.Date(2026, time.October, 1, 0, 0, 0, 0, time.UTC) }

// Event is an event for the ingest endpoint.
type Event struct {
	EventID string `json:"event_id"`
	client.Event
	URL *string `json:"url"`
}

// WriteEntries writes all entries as NDJSON.
func WriteEntries(w io.Writer) error {
	return writeAll(w, func(encode func(any) error) error {
		return visits(func(entry client.Entry, _ []Event) error { return encode(entry) })
	})
}

// WriteEvents writes all events as NDJSON, entry by entry, each entry's oldest first.
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

// writeEach writes records as NDJSON.
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
