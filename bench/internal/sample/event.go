package sample

import (
	"crypto/sha256"
	"strconv"
	"time"
)

// EventsOf is how many events each entry has; all but the last are page views.
const EventsOf = 5

// EventColumns names the columns of [Entry.Event], of the table events.
func EventColumns() []string {
	return []string{
		"project_id", "event_key", "entry_id", "contact_id", "group_id", "embeddable_id", "embeddable_version_number",
		"timestamp", "page_id", "page_key", "page_index", "max_page_id", "max_page_key", "max_page_index", "total_pages",
		"event_type", "view_type", "custom_event_name", "custom_event_props", "url", "seq",
	}
}

// Event returns the entry's i-th event, from 0, as values of [EventColumns]. In the change feed, events come after
// all entries of the project: first the first event of each entry, then the second of each.
func (e Entry) Event(i int) []any {
	sum := sha256.Sum256([]byte(e.Project + " " + e.ID + " " + strconv.Itoa(i)))
	page := "page_" + strconv.Itoa(i)
	row := []any{
		e.Project, sum[:16], e.ID, e.Contact, e.Group, e.Embeddable, int64(3),
		e.Created.Add(time.Duration(i) * 20 * time.Second), page, "step-" + strconv.Itoa(i), int64(i), page, "step-" + strconv.Itoa(i), int64(i),
		int64(EventsOf), "flowpage.viewed", "flowpage", nil, nil, "https://www.example.com/start?step=" + strconv.Itoa(i),
		e.many*int64(i+1) + e.n,
	}
	if i == EventsOf-1 {
		copy(row[15:], []any{"custom_event:triggered", nil, "quote_requested", `{"value":"12 000","currency":"USD"}`, nil})
	}
	return row
}
