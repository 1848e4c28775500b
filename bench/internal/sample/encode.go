package sample

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// NDJSON returns the entries in ingest's format, one a line.
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

// escapes are those of COPY's text format.
var escapes = strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`)

// CopyText returns the entries in COPY's text format, in the order of [EntryColumns].
func CopyText(entries []Entry) []byte {
	var b bytes.Buffer
	for _, e := range entries {
		for i, value := range e.Row() {
			if i > 0 {
				b.WriteByte('\t')
			}
			switch v := value.(type) {
			case string:
				_, _ = escapes.WriteString(&b, v) // a buffer takes all
			case time.Time:
				b.WriteString(v.Format(time.RFC3339Nano))
			case int64:
				b.WriteString(strconv.FormatInt(v, 10))
			}
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}
