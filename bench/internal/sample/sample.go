// Package sample makes the data of the benchmarks. The data is the same in every run, and shaped like the data of a
// real project. pgbench can compute the ids, because each id is a number.
package sample

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"strconv"
	"time"
)

// EntryColumns returns the columns of the table entries to which the values of [Entry.Row] belong, in the same order.
func EntryColumns() []string {
	return []string{
		"project_id", "entry_id", "group_id", "embeddable_id", "contact_id", "created_at", "updated_at", "entry_data", "seq",
	}
}

// The id of a project's n-th entry, from 1, is firstEntry + n·entryStep.
const (
	firstEntry = 1_000_000_000_000_000
	entryStep  = 48_611
)

// begin is the time of a project's first update, in Unix seconds and without fractions: 2024-01-01.
const begin = 1_704_067_200

// PgbenchEntryID returns a pgbench expression for the id of the entry whose number is in the pgbench variable n.
func PgbenchEntryID(n string) string {
	return strconv.Itoa(firstEntry) + " + :" + n + " * " + strconv.Itoa(entryStep)
}

// EntryID returns the id of a project's n-th entry, from 1.
func EntryID(n int) string { return strconv.Itoa(firstEntry + n*entryStep) }

// The id of contact n, from 0, is firstContact + n. Consecutive entries of a project belong to consecutive contacts.
const (
	firstContact = 8_000_000
	contacts     = 200
)

// PgbenchContactID returns a pgbench expression for the id of an entry's contact. The number of the entry is in the
// pgbench variable n.
func PgbenchContactID(n string) string {
	return strconv.Itoa(firstContact) + " + :" + n + " % " + strconv.Itoa(contacts)
}

// ContactID returns the id of the contact of a project's n-th entry.
func ContactID(n int) string { return strconv.Itoa(firstContact + n%contacts) }

// Entry is one generated entry of a project, from which the benchmarks make rows, events and ingest's JSON.
type Entry struct {
	Project          string
	ID               string
	Group            string
	Embeddable       string
	Contact          string
	Created, Updated time.Time
	Data             string // JSON, some 350 bytes

	n, many int64 // the entry is the n-th of its project's many
}

// EntryOf makes the n-th entry, from 1, of a project. many is the number of the project's entries. The order of
// updates is not that of the ids, so neighbours in a list are not neighbours in the table.
func EntryOf(project string, n, many int) Entry {
	at := time.Unix(begin+7*int64(shuffled(n, many)), 0).UTC()
	return Entry{
		Project: project, ID: EntryID(n), Group: "gr_" + project, Embeddable: "flow_" + strconv.Itoa(n%20),
		Contact: ContactID(n), Created: at.Add(-3 * time.Minute), Updated: at.Add(time.Duration(n%1000) * time.Millisecond),
		Data: data(n), n: int64(n), many: int64(many),
	}
}

// shuffled maps 1…many to 0…many-1, each once, by a multiplication with a prime that does not divide many.
func shuffled(n, many int) int {
	for _, prime := range []int{7_368_787, 15_485_863} {
		if many%prime != 0 {
			return n * prime % many
		}
	}
	return n % many
}

func data(n int) string {
	number := strconv.Itoa
	return `{"first_name":"Visitor ` + number(n) + `","email":"visitor.` + number(n) + `@example.com","phone":"+1 555 ` + number(1_000_000+n%8_999_999) +
		`","answers":{"budget":` + number(n%50*1000) + `,"timeline":"` + number(n%12+1) + ` months","rooms":["kitchen","bath room ` + number(n%4) +
		`"],"note":"Please call after five; the bell says \"Miller\"."},"utm":{"source":"newsletter","medium":"email","campaign":"spring-` + number(n%7) +
		`"},"score":` + number(n%100) + `,"consent":true,"referrer":null}`
}

// Row returns the entry as values of [EntryColumns]. The entry's number in the change feed is its number in the
// project.
func (e Entry) Row() []any {
	return []any{e.Project, e.ID, e.Group, e.Embeddable, e.Contact, e.Created, e.Updated, e.Data, e.n}
}

// EventsOf is how many events an entry has in most benchmarks. The event with the index EventsOf-1 is a custom event,
// and each other event is a page view.
const EventsOf = 5

// EventColumns returns the columns of the table events to which the values of [Entry.Event] belong, in the same order.
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

// NDJSON returns the entries in the format of ingest's request body: one JSON object a line.
func NDJSON(entries []Entry) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	for _, e := range entries {
		_ = encoder.Encode(struct { // a buffer takes all, and strings always marshal
			ID         string    `json:"entry_id"`
			Group      string    `json:"group_id"`
			Project    string    `json:"project_id"`
			Embeddable string    `json:"embeddable_id"`
			Contact    string    `json:"contact_id"`
			Created    time.Time `json:"created_at"`
			Updated    time.Time `json:"updated_at"`
			Data       string    `json:"entry_data"`
		}{e.ID, e.Group, e.Project, e.Embeddable, e.Contact, e.Created, e.Updated, e.Data})
	}
	return b.Bytes()
}
