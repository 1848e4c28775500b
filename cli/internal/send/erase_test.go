package send_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
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
	t.Parallel()
	r := newRemover(t, `{"entries":1,"events":8}`, `{"entries":500,"events":900,"more":true}`, `{"entries":2,"events":3}`)
	one := clitest.Decode[client.Removed](t, clitest.Must(t, r.environ(), "", "erase", "--entry", "e/1"))
	all := clitest.Decode[client.Removed](t, clitest.Must(t, r.environ(), "", "erase", "--contact", "c 1"))
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
	t.Parallel()
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
		if got := clitest.Run(t, tt.in, r.environ(), append([]string{"erase", "--all"}, tt.args...)...); got.Code != shell.ExitUsage || !strings.Contains(got.Err, tt.says) || got.Out != "" {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
	if len(r.asked) > 0 {
		t.Fatalf("it asked for %q without a confirmation", r.asked)
	}
	got := clitest.Run(t, "pr_1\n", r.environ(), "erase", "--all")
	want := map[string]int{"projects": 1, "keys": 2, "entries": 10007, "events": 5, "embeddables": 3, "experiments": 4}
	if diff := cmp.Diff(want, clitest.Decode[map[string]int](t, got.Out)); got.Code != 0 || diff != "" {
		t.Errorf("%+v: %s", got, diff)
	}
	if diff := cmp.Diff([]string{"DELETE /internal/projects/pr_1", "DELETE /internal/projects/pr_1"}, r.asked); diff != "" {
		t.Error(diff)
	}
}

func TestPurge(t *testing.T) {
	t.Parallel()
	r := newRemover(t, `{"entries":12000,"events":3,"dry_run":true,"more":true,"cursor":"d"}`, `{"entries":0,"events":2,"dry_run":true}`,
		`{"entries":12000,"events":5,"dry_run":true}`,
		`{"entries":10000,"events":3,"more":true,"cursor":"c"}`, `{"entries":2000,"events":2,"cursor":"e"}`, `{"entries":0,"events":0}`)
	if got := clitest.Decode[client.Removed](t, clitest.Must(t, r.environ(), "", "purge", "--older-than", "400d", "--dry-run")); got != (client.Removed{Entries: 12000, Events: 5}) {
		t.Errorf("%+v", got)
	}
	if got := clitest.Decode[client.Removed](t, clitest.Must(t, r.environ(), "", "purge", "--before", "2025-01-01")); got != (client.Removed{Entries: 12000, Events: 5}) {
		t.Errorf("%+v", got)
	}
	ask := func(before string, dry bool, cursor string) string {
		return fmt.Sprintf(`POST /internal/projects/pr_1/purge {"updated_before":%q,"dry_run":%t%s}`, before, dry, cursor)
	}
	// The time of the commands' clock is always noon of 2026-11-01.
	ago := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC).AddDate(0, 0, -400).Format(time.RFC3339)
	const date = "2025-01-01T00:00:00Z"
	want := []string{
		ask(ago, true, ""), ask(ago, true, `,"cursor":"d"`), ask(date, true, ""),
		ask(date, false, ""), ask(date, false, `,"cursor":"c"`), ask(date, false, `,"cursor":"e"`),
	}
	if diff := cmp.Diff(want, r.asked); diff != "" {
		t.Error(diff)
	}
}

func TestRemovalRefuses(t *testing.T) {
	t.Parallel()
	r := newRemover(t)
	for _, tt := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"erase", "--entry", "e"}, shell.ExitFailure, "check LECTERN_ADMIN_API_KEY"},
		{[]string{"erase", "--entry", "e", "--admin-api-key", ""}, shell.ExitUsage, "no admin key"},
		{[]string{"purge", "--older-than", "36h"}, shell.ExitFailure, "check LECTERN_ADMIN_API_KEY"},
	} {
		got := clitest.Run(t, "", r.environ(), tt.args...)
		if got.Code != tt.code || !strings.Contains(got.Err, tt.says) || got.Out != "" {
			t.Errorf("%v: %+v; want %d and %q", tt.args, got, tt.code, tt.says)
		}
	}
}

// A receipt comes when all copies have passed the removal, and says what each did.
func TestEraseWaitsForCopies(t *testing.T) {
	t.Parallel()
	s, environ := clitest.Entries(t)
	for _, id := range []string{"en_1", "en_2", "en_3"} {
		s.MustIngest(t, "entries", servicetest.Object{"entry_id": id, "group_id": "g", "project_id": "pr_1", "embeddable_id": "m", "contact_id": "c_" + id,
			"created_at": "2024-01-01T00:00:00Z", "updated_at": "2024-01-01T00:00:00Z", "entry_data": "{}"})
	}
	path := filepath.Join(t.TempDir(), "shop")
	warehouse, folder := clitest.Warehouse(t), "file://"+path
	sync := func() {
		t.Helper()
		for _, to := range []string{warehouse, folder} {
			clitest.Must(t, environ, "", "sync", "--quiet", "--to", to)
		}
	}
	sync()
	began := time.Now()
	environ["LECTERN_ERASE_WAIT"] = folder + " " + warehouse // with a password
	erase := clitest.Begin(t, maps.Clone(environ), "erase", "--contact", "c_en_2")
	eventually.True(t, "the removal", func() bool { return clitest.Run(t, "", environ, "get", "entry", "en_2").Code == shell.ExitFailure })
	select {
	case <-erase.Ended():
		t.Fatalf("ended before the copies had the removal: %s%s", erase.Out.String(), erase.Err.String())
	default:
	}
	says := func(text string) {
		t.Helper()
		eventually.True(t, text, func() bool { return strings.Contains(erase.Err.String(), text) })
	}
	says("Removed. Waiting for the folder " + path + ": its sync has not come to the removal yet")
	if err := os.Rename(path, path+" away"); err != nil {
		t.Fatal(err)
	}
	says("Removed. Waiting for the folder " + path + ": manifest.json of folder")
	if err := os.Rename(path+" away", path); err != nil {
		t.Fatal(err)
	}
	late := clitest.Run(t, "", environ, "erase", "--contact", "c_en_2", "--timeout", "1ms")
	if late.Code != shell.ExitFailure || !strings.Contains(late.Err, "the data is removed, but within 1ms (--timeout) the folder ") {
		t.Errorf("%+v", late)
	}
	delete(environ, "LECTERN_ERASE_WAIT")
	sync()
	waited := erase.Wait(t)
	if waited.Code != shell.ExitOK {
		t.Fatalf("%+v", waited)
	}
	type receipt struct {
		ContactID string    `json:"contact_id"`
		Entries   int       `json:"entries"`
		Seq       int64     `json:"seq"`
		RemovedAt time.Time `json:"removed_at"`
		Copies    []struct {
			Seq            int64     `json:"seq"`
			PassedAt       time.Time `json:"passed_at"`
			FilesRewritten *int      `json:"files_rewritten"`
		} `json:"copies"`
	}
	r := clitest.Decode[receipt](t, waited.Out)
	if r.ContactID != "c_en_2" || r.Entries != 1 || r.Seq == 0 || r.RemovedAt.Before(began) || len(r.Copies) != 2 {
		t.Fatalf("%+v", r)
	}
	for i, rewritten := range []*int{new(1), nil} {
		if c := r.Copies[i]; c.Seq == 0 || c.Seq > r.Seq || c.PassedAt.Before(r.RemovedAt) || !cmp.Equal(c.FilesRewritten, rewritten) {
			t.Errorf("%+v", c)
		}
	}
	// A repeated removal finds copies that have passed it.
	if r := clitest.Decode[receipt](t, clitest.Must(t, environ, "", "erase", "--contact", "c_en_2", "--wait", folder)); r.Entries != 0 || len(r.Copies) != 1 {
		t.Errorf("%+v", r)
	}
	if r := clitest.Run(t, "", environ, "erase", "--contact", "c_en_3", "--wait", "file:///nowhere"); r.Code != shell.ExitFailure || !strings.Contains(r.Err, "manifest.json of folder /nowhere") {
		t.Errorf("%+v", r)
	}
}
