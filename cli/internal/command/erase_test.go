package command

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/client"
)

// remover answers each request for a removal by the next of answers, and notes the requests.
type remover struct {
	*httptest.Server
	asked   []string
	answers []string
}

func newRemover(t *testing.T, answers ...string) *remover {
	t.Helper()
	r := &remover{answers: answers}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		r.asked = append(r.asked, strings.TrimSpace(req.Method+" "+req.RequestURI+" "+string(body)))
		if req.Header.Get("X-Api-Key") != "ak_1" || len(r.answers) == 0 {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":{"code":"unauthorized","message":"No."}}`)
			return
		}
		_, _ = io.WriteString(w, r.answers[0])
		r.answers = r.answers[1:]
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *remover) environ() map[string]string {
	return map[string]string{"LECTERN_INTERNAL_URL": r.URL, "LECTERN_PROJECT_ID": "pr_1", "LECTERN_ADMIN_API_KEY": "ak_1"}
}

func TestErase(t *testing.T) {
	r := newRemover(t, `{"entries":1,"events":8}`, `{"entries":500,"events":900,"more":true}`, `{"entries":2,"events":3}`)
	one := read[client.Removed](t, must(t, r.environ(), "", "erase", "--entry", "e/1"))
	all := read[client.Removed](t, must(t, r.environ(), "", "erase", "--contact", "c 1"))
	if one != (client.Removed{Entries: 1, Events: 8}) || all != (client.Removed{Entries: 502, Events: 903}) {
		t.Errorf("%+v and %+v", one, all)
	}
	contact := "DELETE /internal/projects/pr_1/contacts/c%201"
	if diff := cmp.Diff([]string{"DELETE /internal/projects/pr_1/entries/e%2F1", contact, contact}, r.asked); diff != "" {
		t.Error(diff)
	}
}

// TestEraseAll checks that nothing is asked for without a confirmation, and that the request is repeated while there is more.
func TestEraseAll(t *testing.T) {
	r := newRemover(t, `{"projects":1,"keys":2,"entries":10000,"events":5,"embeddables":3,"experiments":4,"more":true}`,
		`{"projects":0,"keys":0,"entries":7,"events":0,"embeddables":0,"experiments":0}`)
	for _, tt := range []struct {
		name, in string
		args     []string
		says     string
	}{
		{"nothing typed", "", nil, `"" is not the project's id, "pr_1": nothing was removed`},
		{"another id typed", "pr_2\n", nil, "nothing was removed"},
		{"another id given", "pr_1\n", []string{"--confirm", "pr_2"}, "nothing was removed"},
	} {
		if got := lectern(t, tt.in, r.environ(), append([]string{"erase", "--all"}, tt.args...)...); got.code != exitUsage || !strings.Contains(got.err, tt.says) || got.out != "" {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
	if len(r.asked) > 0 {
		t.Fatalf("it asked for %q without a confirmation", r.asked)
	}
	got := lectern(t, "pr_1\n", r.environ(), "erase", "--all")
	want := map[string]int{"projects": 1, "keys": 2, "entries": 10007, "events": 5, "embeddables": 3, "experiments": 4}
	if diff := cmp.Diff(want, read[map[string]int](t, got.out)); got.code != 0 || diff != "" {
		t.Errorf("%+v: %s", got, diff)
	}
	if diff := cmp.Diff([]string{"DELETE /internal/projects/pr_1", "DELETE /internal/projects/pr_1"}, r.asked); diff != "" {
		t.Error(diff)
	}
}

func TestPurge(t *testing.T) {
	r := newRemover(t, `{"entries":12000,"events":5,"dry_run":true}`, `{"entries":12000,"events":5,"dry_run":true}`,
		`{"entries":10000,"events":3,"more":true}`, `{"entries":2000,"events":2}`)
	if got := read[client.Removed](t, must(t, r.environ(), "", "purge", "--older-than", "400d", "--dry-run")); got != (client.Removed{Entries: 12000, Events: 5}) {
		t.Errorf("%+v", got)
	}
	if got := read[client.Removed](t, must(t, r.environ(), "", "purge", "--before", "2025-01-01")); got != (client.Removed{Entries: 12000, Events: 5}) {
		t.Errorf("%+v", got)
	}
	ask := func(before string, dry bool) string {
		return fmt.Sprintf(`POST /internal/projects/pr_1/purge {"updated_before":%q,"dry_run":%t}`, before, dry)
	}
	// The time of the commands' clock is always noon of 2026-11-01.
	ago := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC).AddDate(0, 0, -400).Format(time.RFC3339)
	const date = "2025-01-01T00:00:00Z"
	if diff := cmp.Diff([]string{ask(ago, true), ask(date, true), ask(date, false), ask(date, false)}, r.asked); diff != "" {
		t.Error(diff)
	}
}

func TestRemovalRefuses(t *testing.T) {
	r := newRemover(t)
	for _, tt := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"erase", "--all", "--contact", "c"}, exitUsage, "allowed: one of them"},
		{[]string{"erase", "--entry", "e"}, exitFailure, "check LECTERN_ADMIN_API_KEY"},
		{[]string{"erase", "--entry", "e", "--admin-api-key", ""}, exitUsage, "no admin key"},
		{[]string{"purge", "--older-than", "36h"}, exitFailure, "check LECTERN_ADMIN_API_KEY"},
	} {
		got := lectern(t, "", r.environ(), tt.args...)
		if got.code != tt.code || !strings.Contains(got.err, tt.says) || got.out != "" {
			t.Errorf("%v: %+v; want %d and %q", tt.args, got, tt.code, tt.says)
		}
	}
}
