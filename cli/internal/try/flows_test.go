package try_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/cli/internal/demo"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/shared/routes"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/routestest"
)

// written returns the demo project's records of the resource, without the hidden fields, which the API does not return.
func written(t *testing.T, resource string, hidden ...string) []map[string]any {
	t.Helper()
	var b bytes.Buffer
	if err := demo.Write(&b, resource); err != nil {
		t.Fatal(err)
	}
	var records []map[string]any
	for line := range strings.Lines(b.String()) {
		record := clitest.Decode[map[string]any](t, line)
		for _, name := range hidden {
			delete(record, name)
		}
		records = append(records, record)
	}
	return records
}

// testDemoProject checks that the services serve the generated data.
func testDemoProject(t *testing.T, environ map[string]string) {
	var want bytes.Buffer
	if err := demo.Write(&want, "entries"); err != nil {
		t.Fatal(err)
	}
	if got := clitest.Must(t, environ, "", "export", "entries", "--sort", "created_at", "--direction", "ASC"); got != want.String() {
		t.Errorf("%d bytes of entries; want the %d that were made", len(got), want.Len())
	}
	one := written(t, "entries")[0]
	ofOne := clitest.Must(t, environ, "", "export", "entries", "--contact-id", one["contact_id"].(string),
		"--embeddable-id", one["embeddable_id"].(string), "--group-id", one["group_id"].(string))
	if n := strings.Count(ofOne, "\n"); n == 0 || n > 100 || n != strings.Count(ofOne, fmt.Sprintf(`"contact_id":%q`, one["contact_id"])) {
		t.Errorf("%d entries of a contact: %.500s", n, ofOne)
	}
	entries := 0 // the first tutorial counts all events
	for line := range strings.Lines(clitest.Must(t, environ, "", "export", "page-views", "--include-urls", "--limit", "500", "--page-size", "200")) {
		entry := clitest.Decode[client.EntryPageViews](t, line)
		if len(entry.PageViews) == 0 {
			t.Errorf("%s has no page view", entry.EntryID)
		}
		entries++
	}
	if entries != 500 {
		t.Errorf("page views of %d entries, want 500", entries)
	}
	testFlowsAreThere(t, environ)
}

// testFlowsAreThere: the demo's embeddables, versions, experiments and project are served as they were
// made.
func testFlowsAreThere(t *testing.T, environ map[string]string) {
	c, err := client.New(environ["LECTERN_URL"], client.WithAPIKey(environ["LECTERN_API_KEY"]))
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, e := range demo.Embeddables() {
		got, err := c.Embeddable(t.Context(), demo.ProjectID, e.EmbeddableID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(e, got); diff != "" {
			t.Error(diff)
		}
		ids[e.EmbeddableID] = true
	}
	for e, err := range c.Embeddables(t.Context(), demo.ProjectID, client.EmbeddableQuery{Paging: client.Paging{PageSize: 2}}) {
		if err != nil {
			t.Fatal(err)
		}
		if !ids[e.EmbeddableID] {
			t.Errorf("%s is listed, twice or unasked", e.EmbeddableID)
		}
		delete(ids, e.EmbeddableID)
	}
	if len(ids) > 0 {
		t.Errorf("not listed: %v", ids)
	}
	for _, v := range demo.Versions() {
		got, err := c.Version(t.Context(), demo.ProjectID, v.EmbeddableID, v.Number)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(v, got); diff != "" {
			t.Error(diff)
		}
	}
	want := written(t, "experiments", "project_id")
	slices.Reverse(want) // the newest first
	if diff := cmp.Diff(want, clitest.Decode[[]map[string]any](t, clitest.Must(t, environ, "", "get", "experiments", "-o", "json"))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(written(t, "projects", "region"), []map[string]any{clitest.Decode[map[string]any](t, clitest.Must(t, environ, "", "get", "project"))}); diff != "" {
		t.Error(diff)
	}
}

// testGetFromAll: every get of what is not an entry's.
func testGetFromAll(t *testing.T, environ map[string]string) {
	keyless := maps.Clone(environ)
	delete(keyless, "LECTERN_API_KEY")
	for _, tt := range []struct {
		name    string
		environ map[string]string
		args    []string
		code    int
		out     string // a part of standard output
		err     string // a part of standard error
	}{
		{"embeddables", environ, []string{"embeddables"}, 0, `"embeddable_id": "emb_solar7kq2"`, ""},
		{"a page of embeddables", environ, []string{"embeddables", "--limit", "1"}, 0, `"embeddable_id": "emb_loan3xw9d"`, "There is more: --cursor "},
		{"embeddable", environ, []string{"embeddable", "emb_skin5mh8t"}, 0, `"json_string_prod": "{\"flow_id\":\"emb_skin5mh8t\"`, ""},
		{"no such embeddable", environ, []string{"embeddable", "e/1"}, shell.ExitFailure, "", "embeddable_does_not_exist"},
		{"versions", environ, []string{"versions", "emb_solar7kq2", "--direction", "asc", "--limit", "1"}, 0, `"version_number": 1,`, "There is more"},
		{"versions of none", environ, []string{"versions", "none"}, shell.ExitFailure, "", "embeddable_does_not_exist"},
		{"version", environ, []string{"version", "emb_solar7kq2", "2"}, 0, `"json_string": "{`, ""},
		{"no such version", environ, []string{"version", "emb_solar7kq2", "9"}, shell.ExitFailure, "", "embeddable_version_does_not_exist"},
		{"no number", environ, []string{"version", "emb_solar7kq2", "latest"}, shell.ExitUsage, "", "number"},
		{"no key for embeddables", keyless, []string{"embeddables"}, shell.ExitUsage, "", "set LECTERN_API_KEY"},
		{"experiments", keyless, []string{"experiments", "--status", "paused"}, 0, `"id": "exp_budget9hc"`, ""},
		{"a page of experiments", environ, []string{"experiments", "--limit", "2"}, 0, `"id": "exp_contact3yp"`, "There is more: --cursor "},
		{"experiment", keyless, []string{"experiment", "exp_untitled7bf"}, 0, `"flow_ids": null`, ""},
		{"no such experiment", environ, []string{"experiment", "none"}, shell.ExitFailure, "", "experiment_not_found"},
		{"history", keyless, []string{"experiment", "exp_untitled7bf", "--history"}, 0, `"changed_at": "2026-09-30T16:05:00.25Z"`, ""},
		{"project", keyless, []string{"project"}, 0, `"title": "Homes and care"`, ""},
		{"no such project", keyless, []string{"project", "--project", "none"}, shell.ExitFailure, "", "project_not_found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := clitest.Run(t, "", tt.environ, append([]string{"get"}, append(tt.args, "-o", "json")...)...)
			if r.Code != tt.code || !strings.Contains(r.Out, tt.out) || !strings.Contains(r.Err, tt.err) || tt.err == "" && r.Err != "" {
				t.Errorf("%+v", r)
			}
		})
	}
	page := clitest.Run(t, "", environ, "get", "experiments", "--limit", "7", "-o", "json")
	cursor := strings.TrimSpace(strings.TrimPrefix(page.Err, "There is more: --cursor"))
	rest := clitest.Decode[[]client.Experiment](t, clitest.Must(t, environ, "", "get", "experiments", "--cursor", cursor, "-o", "json"))
	if len(rest) != len(demo.Experiments())-7 || rest[0].ID != "exp_first4vn" {
		t.Errorf("behind the first seven: %+v", rest)
	}
}

// testExportFromAll: as NDJSON and as CSV, by pages smaller than the list.
func testExportFromAll(t *testing.T, environ map[string]string) {
	folder := t.TempDir()
	for _, tt := range []struct {
		args   []string
		rows   int
		header string
		row    string // in the file
	}{
		{[]string{"embeddables"}, len(demo.Embeddables()), "embeddable_id,title,group_id,project_id", "emb_solar7kq2,What would solar save you?,grp_home,pr_demo"},
		{[]string{"versions", "emb_solar7kq2"}, 4, "embeddable_id,version_number,saved_at", "emb_solar7kq2,4,2026-09-17T13:32:00Z"},
		{[]string{"experiments"}, len(demo.Experiments()),
			"id,experimentId,flowId,name,hypothesis,impact_metrics,no_impact_metrics,created_at,updated_at,observations,outcome,attachments,variants,flow_ids,paused_showing_variant,winner_variant,status",
			`exp_untitled7bf,exp_untitled7bf,emb_skin5mh8t,,,,,2026-09-30T09:12:31Z,2026-09-30T16:05:00.25Z,,,,,,,,draft`},
		{[]string{"experiments", "--status", "running"}, 2, "id,", `"[""emb_solar7kq2"",""emb_loan3xw9d""]"`},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			lines := clitest.Must(t, environ, "", append(append([]string{"export"}, tt.args...), "--page-size", "2")...)
			if got := strings.Count(lines, "\n"); got != tt.rows {
				t.Errorf("%d lines, want %d", got, tt.rows)
			}
			file := filepath.Join(folder, strings.Join(tt.args, "")+".csv")
			clitest.Must(t, environ, "", append(append([]string{"export"}, tt.args...), "--page-size", "2", "--out", file)...)
			table, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(table), tt.header) || !strings.Contains(string(table), tt.row) {
				t.Errorf("%s", table)
			}
			rows, err := csv.NewReader(bytes.NewReader(table)).ReadAll()
			if err != nil || len(rows) != tt.rows+1 {
				t.Errorf("%d rows, %v", len(rows), err)
			}
		})
	}
}

// testRegion: the region of the demo project, at moments on both sides of a change of daylight saving.
func testRegion(t *testing.T, environ map[string]string) {
	berlin := func(offset int) map[string]any {
		return map[string]any{"region": "Europe/Berlin", "offsetInMinutes": float64(offset)}
	}
	for _, tt := range []struct {
		args []string
		want map[string]any
	}{
		{[]string{"--at", "2026-07-01"}, berlin(120)},
		{[]string{"pr_demo", "--at", "2026-12-24T12:00:00+01:00"}, berlin(60)},
		{[]string{"pr_unknown", "--at", "2026-12-24"}, map[string]any{"region": "America/Los_Angeles", "offsetInMinutes": float64(-480)}},
	} {
		if diff := cmp.Diff(tt.want, clitest.Decode[map[string]any](t, clitest.Must(t, environ, "", append([]string{"region"}, tt.args...)...))); diff != "" {
			t.Errorf("%v: %s", tt.args, diff)
		}
	}
	if got := clitest.Decode[client.Region](t, clitest.Must(t, environ, "", "region")); got.Name != "Europe/Berlin" || got.OffsetMinutes != 60 && got.OffsetMinutes != 120 {
		t.Errorf("now: %+v", got)
	}
	for args, want := range map[string]string{"pr_demo": "", "pr_dmeo": "pr_dmeo is unknown or has no region, so this is the default.\n"} {
		if r := clitest.Run(t, "", environ, "region", args); r.Code != shell.ExitOK || r.Err != want {
			t.Errorf("%s: %+v, want %q", args, r, want)
		}
	}
	for _, tt := range []struct {
		environ map[string]string
		args    []string
		code    int
		want    string
	}{
		{map[string]string{"LECTERN_INTERNAL_API_KEY": "x"}, nil, shell.ExitUsage, "no project"},
		{map[string]string{}, []string{"pr_demo"}, shell.ExitUsage, "no internal key"},
		{map[string]string{"LECTERN_URL": environ["LECTERN_URL"], "LECTERN_INTERNAL_API_KEY": environ["LECTERN_API_KEY"]}, []string{"pr_demo"},
			shell.ExitFailure, "check LECTERN_INTERNAL_API_KEY"},
	} {
		r := clitest.Run(t, "", tt.environ, append([]string{"region"}, tt.args...)...)
		if r.Code != tt.code || !strings.Contains(r.Err, tt.want) || strings.Count(r.Err, "\n") != 1 || r.Out != "" {
			t.Errorf("%v: %+v", tt.args, r)
		}
	}
}

// testImportIntoAll takes records into a project of their own, and reads them back.
func testImportIntoAll(t *testing.T, environ map[string]string) {
	const project = "pr_import"
	into := func(resource, records string) clitest.Result {
		return clitest.Run(t, records, environ, "import", resource, "-")
	}
	said := func(resource, records, want string) {
		t.Helper()
		if r := into(resource, records); !strings.Contains(r.Err, want) {
			t.Errorf("%s: %+v, want it to say %q", resource, r, want)
		}
	}
	said("projects", `{"id":"`+project+`","title":"Imported","region":"Asia/Kathmandu"}`, "1 new")
	said("projects", `{"id":"pr_wrong","title":"Wrong","region":"Mars/Olympus"}`, "1 rejected")
	version := func(n int, definition string) string {
		return fmt.Sprintf(`{"embeddable_id":"e/1","project_id":%q,"version_number":%d,"saved_at":"2026-01-01T00:00:00Z","json_string":%q}`, project, n, definition)
	}
	said("embeddable-versions", version(1, `{"a":1}`)+"\n"+version(2, `{"a":2}`), "2 new")
	said("embeddables", `{"embeddable_id":"e/1","title":"E","group_id":"g","project_id":"`+project+`","json_string_prod":"{}"}`, "1 new")
	if r := into("embeddable-versions", version(1, `{"a":1}`)+"\n"+version(2, `{"a":3}`)); r.Code != shell.ExitRejected || !strings.Contains(r.Err, "0 new, 0 changed, 1 unchanged, 1 rejected") {
		t.Errorf("a version that changes: %+v", r)
	}
	exported := clitest.Must(t, environ, "", "export", "experiments", "--status", "completed")
	var moved strings.Builder
	for line := range strings.Lines(exported) {
		moved.WriteString(`{"project_id":"` + project + `",` + strings.TrimPrefix(line, "{"))
	}
	said("experiments", moved.String(), "2 new")
	said("projects", `{"id":"`+project+`","title":"Imported","region":"Asia/Tokyo"}`+"\n"+`{"id":"`+project+`","title":"Imported","region":"Asia/Kathmandu"}`, "0 new, 2 changed")
	said("experiments", moved.String(), "0 new, 0 changed, 2 unchanged")

	other := maps.Clone(environ)
	other["LECTERN_PROJECT_ID"] = project
	if got := clitest.Must(t, other, "", "export", "experiments"); got != exported {
		t.Errorf("the copy differs: %s, want %s", got, exported)
	}
	if got := clitest.Must(t, other, "", "region"); got != `{"region":"Asia/Kathmandu","offsetInMinutes":345}`+"\n" {
		t.Errorf("region: %q", got)
	}
	if r := clitest.Run(t, "", environ, "import", "experiments", "table.csv"); r.Code != shell.ExitUsage || !strings.Contains(r.Err, "NDJSON") {
		t.Errorf("%+v", r)
	}
	twice := version(1, "{}") + "\n" + version(1, "[]") + "\n" + version(1, "{}")
	if r := clitest.Run(t, twice, nil, "import", "embeddable-versions", "--dry-run", "-"); r.Code != shell.ExitRejected ||
		!strings.Contains(r.Err, "-:2: conflict: ") || !strings.Contains(r.Err, "1 new, 0 changed, 1 unchanged, 1 rejected") {
		t.Errorf("dry run: %+v", r)
	}
	if got := clitest.Must(t, environ, version(1, "{}"), "import", "embeddable-versions", "--dry-run", "-"); got != version(1, "{}")+"\n" {
		t.Errorf("dry run: %q", got)
	}
}

// testEraseAll: the one internal address suffices to remove a project from every service.
func testEraseAll(t *testing.T, environ map[string]string) {
	other := maps.Clone(environ)
	other["LECTERN_PROJECT_ID"] = "pr_import"
	// On a busy machine the command repeats a request, and then counts only what the first request left.
	if removed := clitest.Decode[map[string]int](t, clitest.Must(t, other, "", "erase", "--all", "--confirm", "pr_import")); len(removed) == 0 {
		t.Error("no kind of record is counted")
	}
	if r := clitest.Run(t, "", other, "get", "project"); !strings.Contains(r.Err, "project_not_found") {
		t.Errorf("the project is still there: %+v", r)
	}
	if got := clitest.Must(t, other, "", "export", "experiments"); got != "" {
		t.Errorf("experiments are still there: %s", got)
	}
}

// testEdge: what the edges do that no path tells.
func testEdge(t *testing.T, environ map[string]string) {
	t.Run("no public path on the internal port", func(t *testing.T) {
		resp, err := http.Get(environ["LECTERN_INTERNAL_URL"] + "/projects/pr_demo/entries")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("%d, want 404", resp.StatusCode)
		}
	})
	t.Run("regions on the internal port", func(t *testing.T) {
		req, _ := http.NewRequest(http.MethodPost, environ["LECTERN_INTERNAL_URL"]+"/api/projects/region", strings.NewReader(`{"projectId":"pr_demo"}`))
		req.Header.Set("X-Api-Key", environ["LECTERN_INTERNAL_API_KEY"])
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%d, want 200", resp.StatusCode)
		}
	})
	t.Run("OPTIONS *", func(t *testing.T) {
		row := routestest.Row{Method: http.MethodOptions, Path: "*"}
		if a := askRow(t, row, strings.TrimPrefix(environ["LECTERN_URL"], "http://"), "", "asterisk"); a.status != http.StatusNotFound || !strings.Contains(a.body, "route_not_found") {
			t.Errorf("%+v", a)
		}
	})
	t.Run("links lead through the edge", func(t *testing.T) {
		for _, path := range []string{"/projects/pr_demo/entries", "/projects/pr_demo/embeddables?limit=1", "/projects/pr_demo/experiments?limit=1"} {
			req, _ := http.NewRequest(http.MethodGet, environ["LECTERN_URL"]+path, nil)
			req.Header.Set("X-Api-Key", environ["LECTERN_API_KEY"])
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			bare, _, _ := strings.Cut(path, "?")
			if link := resp.Header.Get("Link"); !strings.HasPrefix(link, "<"+environ["LECTERN_URL"]+bare+"?") {
				t.Errorf("Link %q does not begin with %s", link, environ["LECTERN_URL"])
			}
		}
	})
}

// testLoginToAll logs in to a running Lectern, and reads by the stored context alone.
func testLoginToAll(t *testing.T, environ map[string]string) {
	m := clitest.Machine{Folder: t.TempDir()}
	r := m.Run(t, environ["LECTERN_API_KEY"], "", nil, "login", "--url", environ["LECTERN_URL"], "--project", "pr_demo")
	if r.Code != shell.ExitOK || !strings.Contains(r.Err, " of project pr_demo may ") {
		t.Fatalf("%+v", r)
	}
	own := m.Run(t, "", "", nil, "whoami", "-o", "json")
	if own.Code != shell.ExitOK || !strings.Contains(own.Out, `"projectId": "pr_demo"`) || !strings.Contains(own.Out, "entries:read") {
		t.Errorf("%+v", own)
	}
	if all := m.Run(t, "", "", nil, "api", "/projects/{projectId}/entries", "--paginate"); all.Code != shell.ExitOK || strings.Count(all.Out, "\n") != 10_000 {
		t.Errorf("%d, %d lines: %s", all.Code, strings.Count(all.Out, "\n"), all.Err)
	}
}

// testKeysOfAll takes a key of the run through its life: each command by demo.env alone, and the entries service refuses
// what is revoked.
func testKeysOfAll(t *testing.T, environ map[string]string, folder string) {
	file := filepath.Join(t.TempDir(), "demo.env")
	var variables strings.Builder
	for name, value := range environ {
		variables.WriteString(name + "='" + value + "'\n")
	}
	clitest.Write(t, file, variables.String())
	keys := func(args ...string) string {
		return clitest.Must(t, nil, "", append([]string{"--env-file", file, "keys"}, args...)...)
	}
	reads := func(key string) bool {
		r := clitest.Run(t, "", map[string]string{"LECTERN_API_KEY": key}, "--env-file", file, "get", "entries", "--limit", "1")
		if r.Code != 0 && !strings.Contains(r.Err, "unauthorized") {
			t.Fatalf("%+v", r)
		}
		return r.Code == 0
	}
	minted := clitest.Decode[client.MintedAPIKey](t, keys("mint", "--name", "life", "-o", "json"))
	if !reads(minted.Key) {
		t.Error("the minted key is refused")
	}
	second := strings.TrimSpace(keys("rotate", minted.ID, "--overlap", "1h"))
	if !reads(minted.Key) || !reads(second) {
		t.Error("within the overlap both keys are accepted")
	}
	keys("revoke", minted.ID)
	eventually.True(t, "the revoked key is refused", func() bool { return !reads(minted.Key) })
	if !reads(second) {
		t.Error("the new key is refused")
	}
	if _, err := os.Stat(filepath.Join(folder, "keys.env")); !os.IsNotExist(err) {
		t.Errorf("keys.env holds a database's URL: %v", err)
	}
}

// testCheck: all that runs answers as described, with keys and without.
func testCheck(t *testing.T, environ map[string]string) {
	keyless := map[string]string{"LECTERN_URL": environ["LECTERN_URL"], "LECTERN_PROJECT_ID": environ["LECTERN_PROJECT_ID"]}
	for _, tt := range []struct {
		name    string
		environ map[string]string
		want    string // status of what asks for a key
	}{
		{"with keys", environ, "200"},
		{"without", keyless, "401"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := clitest.Must(t, tt.environ, "", "check", "-o", "table")
			lines := strings.Split(strings.TrimSpace(out), "\n")
			all := routes.Outside()
			lines = lines[1:] // the names of the columns
			if len(lines) != len(all) {
				t.Fatalf("%d lines for %d operations and pages:\n%s", len(lines), len(all), out)
			}
			for i, r := range all {
				fields := strings.Fields(lines[i])
				if fields[0] != string(r.Service) || fields[1] != r.Operation || fields[len(fields)-1] != "ok" {
					t.Errorf("%q: want %s %s, ok", lines[i], r.Service, r.Operation)
				}
				if slices.Contains([]routes.Auth{routes.APIKey, routes.AnyKey, routes.InternalKey}, r.Auth) && fields[2] != tt.want {
					t.Errorf("%q: want status %s", lines[i], tt.want)
				}
			}
		})
	}
}
