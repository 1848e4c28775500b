package client

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestReceiptErr checks that a receipt with rejected lines becomes an error that names the first of them.
func TestReceiptErr(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   Receipt
		want string
	}{
		{"all stored", Receipt{Stored: 2, Existing: 1}, ""},
		{"one rejected", Receipt{Stored: 1, Existing: 1, Rejected: 1, Rejects: []Reject{{2, "invalid_field", "No title."}}},
			"1 of 3 records were rejected; the first: line 2: invalid_field: No title."},
		{"no list", Receipt{Rejected: 3}, "3 records were rejected"},
	} {
		err := tt.in.Err()
		if got := message(err); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		if first, ok := errors.AsType[Reject](err); len(tt.in.Rejects) > 0 && (!ok || first != tt.in.Rejects[0]) {
			t.Errorf("%s: %v has no Reject in its chain", tt.name, err)
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestSendTyped checks the lines that typed records become. The tests of examples send them to real services.
func TestSendTyped(t *testing.T) {
	var sent string
	server, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		sent = r.URL.Path + " " + string(body)
		_, _ = io.WriteString(w, `{"stored":1,"changed":1,"existing":0,"rejected":0,"rejects":[]}`)
	})
	i := &Ingester{transport: server.transport}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		send func() (Receipt, error)
		want []string
	}{
		{func() (Receipt, error) {
			return i.SendEntries(t.Context(), []Entry{{EntryID: "a", UpdatedAt: at}, {EntryID: "b"}})
		},
			[]string{"/internal/entries", `"entry_id":"a"`, `"updated_at":"2026-01-02T03:04:05Z"`, "}\n{"}},
		{func() (Receipt, error) {
			return i.SendEvents(t.Context(), []NewEvent{{Event: Event{EntryID: "a"}, EventID: new("x")}})
		},
			[]string{"/internal/events", `"entry_id":"a"`, `"page_id":null`, `"event_id":"x"`}},
		{func() (Receipt, error) {
			return i.SendEmbeddables(t.Context(), []EmbeddableWithDefinition{{Embeddable{EmbeddableID: "f"}, "{}"}})
		},
			[]string{"/internal/embeddables", `"embeddable_id":"f"`, `"json_string_prod":"{}"`}},
		{func() (Receipt, error) {
			return i.SendEmbeddableVersions(t.Context(), "p", []EmbeddableVersionWithDefinition{{EmbeddableVersion{"f", 3, at}, "{}"}})
		},
			[]string{"/internal/embeddable-versions", `"project_id":"p"`, `"version_number":3`, `"json_string":"{}"`}},
		{func() (Receipt, error) { return i.SendExperiments(t.Context(), "p", []Experiment{{ID: "e"}}) },
			[]string{"/internal/experiments", `"project_id":"p"`, `"id":"e"`, `"experimentId":"e"`, `"status":null`}},
		{func() (Receipt, error) {
			return i.SendProjects(t.Context(), []NewProject{{Project{"p", "P"}, nil}})
		},
			[]string{"/internal/projects", `"id":"p"`, `"title":"P"`, `"region":null`}},
	} {
		receipt, err := tt.send()
		if err != nil || receipt.Stored != 1 || receipt.Changed != 1 {
			t.Errorf("%s: %+v, %v", tt.want[0], receipt, err)
		}
		for _, part := range tt.want {
			if !strings.Contains(sent, part) {
				t.Errorf("%s has no %s", sent, part)
			}
		}
	}
}
