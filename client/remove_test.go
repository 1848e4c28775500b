package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"
)

func TestAdministratorRemoves(t *testing.T) {
	var asked []string
	answers := []string{`{"entries":1,"events":2}`, `{"entries":3,"events":4}`, `{"entries":5,"events":6,"more":true}`, `{"entries":0,"events":0,"more":false}`,
		`{"embeddables":7,"versions":8,"more":true}`}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		asked = append(asked, r.Method+" "+r.RequestURI+" "+r.Header.Get("X-Api-Key")+" "+string(body))
		if len(asked)%2 == 1 { // fails the first attempt, so that each request is retried
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, answers[len(asked)/2-1])
	}))
	t.Cleanup(server.Close)
	a, err := NewAdministrator(server.URL, WithAPIKey("ak"))
	if err != nil {
		t.Fatal(err)
	}
	a.sleep = func(context.Context, time.Duration) error { return nil }
	before := time.Date(2024, 1, 2, 1, 0, 0, 5e8, time.FixedZone("", 3600))
	var got []string
	note := func(removed any, err error) { got = append(got, fmt.Sprintf("%+v %v", removed, err)) }
	note(a.EraseEntry(t.Context(), "p/1", "e/1"))
	note(a.EraseContact(t.Context(), "p", "c 1"))
	note(a.Purge(t.Context(), "p", before, false))
	note(a.Purge(t.Context(), "p", before, true))
	note(a.RemoveProject(t.Context(), "p"))
	if want := []string{
		"{Entries:1 Events:2 More:false} <nil>", "{Entries:3 Events:4 More:false} <nil>", "{Entries:5 Events:6 More:true} <nil>",
		"{Entries:0 Events:0 More:false} <nil>", "{Records:map[embeddables:7 versions:8] More:true} <nil>",
	}; !slices.Equal(got, want) {
		t.Errorf("got %q; want %q", got, want)
	}
	want := []string{
		"DELETE /internal/projects/p%2F1/entries/e%2F1 ak ",
		"DELETE /internal/projects/p/contacts/c%201 ak ",
		`POST /internal/projects/p/purge ak {"updated_before":"2024-01-02T00:00:00.5Z","dry_run":false}`,
		`POST /internal/projects/p/purge ak {"updated_before":"2024-01-02T00:00:00.5Z","dry_run":true}`,
		"DELETE /internal/projects/p ak ",
	}
	for i, w := range want {
		if !slices.Equal(asked[2*i:2*i+2], []string{w, w}) {
			t.Errorf("asked %q; want %q twice", asked[2*i:2*i+2], w)
		}
	}
}
