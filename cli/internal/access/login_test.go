package access_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/cli/internal/shell"
)

// newKeyAPI answers for one project, one key and three entries, and notes each key that it was sent.
func newKeyAPI(t *testing.T, project, key string) (url string, sent *[]string) {
	t.Helper()
	sent = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*sent = append(*sent, r.Header.Get("X-Api-Key"))
		switch {
		case r.Header.Get("X-Api-Key") != key || !strings.HasPrefix(r.URL.Path, "/projects/"+project+"/"):
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":{"code":"unauthorized","message":"No."}}`)
		case strings.HasSuffix(r.URL.Path, "/key"):
			_, _ = io.WriteString(w, `{"projectId":"`+project+`","keyId":"key_1","name":"me","scopes":["entries:read"],"expires_at":null,"rate":null}`)
		default:
			at, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
			if at < 2 {
				w.Header().Set("X-Next-Cursor", strconv.Itoa(at+1))
				w.Header().Set("Link", `<next>; rel="next"`)
			}
			record := `{"entry_id":"e` + strconv.Itoa(at) + `"}`
			if r.Header.Get("Accept") != "application/x-ndjson" {
				record = "[" + record + "]"
			}
			_, _ = io.WriteString(w, record+"\n")
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, sent
}

func TestLogin(t *testing.T) {
	t.Parallel()
	url, _ := newKeyAPI(t, "pr_1", "rk_1")
	other, foreign := newKeyAPI(t, "pr_2", "rk_2")
	m := clitest.Machine{Folder: filepath.Join(t.TempDir(), "lectern")}
	ok := func(r clitest.Result, want string) {
		t.Helper()
		if r.Code != shell.ExitOK || !strings.Contains(r.Out+r.Err, want) || strings.Contains(r.Err, "rk_") {
			t.Errorf("%+v; want %q", r, want)
		}
	}
	refused := func(r clitest.Result, code int, want string) {
		t.Helper()
		if r.Code != code || !strings.Contains(r.Err, want) || r.Out != "" {
			t.Errorf("%+v; want %d and %q", r, code, want)
		}
	}
	refused(m.Run(t, url+"\npr_1\n", "rk_0", nil, "login"), shell.ExitFailure, "check the key, and that it is one of the project pr_1")
	refused(m.Run(t, "rk_1", "", nil, "login"), shell.ExitUsage, "login needs --url URL or LECTERN_URL")
	refused(m.Run(t, "\n", "", nil, "login", "--url", url, "-p", "pr_1"), shell.ExitUsage, "no key was given")
	refused(m.Run(t, "", "", nil, "get", "entries", "-p", "pr_1"), shell.ExitUsage, "run lectern login")
	if _, err := os.Stat(m.Folder); !os.IsNotExist(err) {
		t.Errorf("something was stored: %v", err)
	}

	ok(m.Run(t, url+"\npr_1\n", "rk_1", nil, "login"), "Key key_1 of project pr_1 may entries:read. The key is stored as the context pr_1")
	ok(m.Run(t, "", "", nil, "whoami"), `"keyId":"key_1"`)
	ok(m.Run(t, "rk_2\n", "", nil, "login", "--url", other, "--project", "pr_2", "--name", "shop"), "the context shop")
	ok(m.Run(t, "", "", nil, "get", "entries"), `{"entry_id":"e0"}`)
	ok(m.Run(t, "", "", nil, "whoami"), `"projectId":"pr_2"`)
	ok(m.Run(t, "", "", nil, "whoami", "--context", "pr_1"), `"projectId":"pr_1"`)
	ok(m.Run(t, "", "", map[string]string{"LECTERN_CONTEXT": "pr_1"}, "whoami"), `"projectId":"pr_1"`)
	variables := clitest.File(t, "context.env", "LECTERN_CONTEXT=pr_1\n")
	ok(m.Run(t, "", "", nil, "whoami", "--env-file", variables), `"projectId":"pr_1"`)
	ok(m.Run(t, "", "", nil, "context", "list"), `{"name":"pr_1","current":false,"url":"`+url+`","projectId":"pr_1"}`+"\n"+`{"name":"shop","current":true`)
	refused(m.Run(t, "", "", nil, "context", "use", "shp"), shell.ExitUsage, `NAME was given as "shp"; allowed: pr_1, shop`)
	refused(m.Run(t, "", "", nil, "whoami", "--context", "shp"), shell.ExitUsage, `--context was given as "shp"; allowed: pr_1, shop`)
	ok(m.Run(t, "", "", nil, "context", "use", "pr_1"), "project pr_1")
	ok(m.Run(t, "", "", nil, "whoami"), `"projectId":"pr_1"`)
	if r := m.Run(t, "", "", nil, clitest.CompleteWord, "whoami", "--context", ""); r.Out != "pr_1\t"+url+"\nshop\t"+other+"\n" {
		t.Errorf("%+v", r)
	}

	// The environment wins, and a context's key goes to no other URL.
	ok(m.Run(t, "", "", map[string]string{"LECTERN_URL": other, "LECTERN_PROJECT_ID": "pr_2", "LECTERN_API_KEY": "rk_2"}, "whoami"), `"projectId":"pr_2"`)
	*foreign = nil
	config := clitest.File(t, "config.json", `{"url":"`+other+`","project_id":"pr_1"}`)
	for _, args := range [][]string{{"singer", "--config", config}, {"airbyte", "read", "--config", config}, {"whoami", "--url", other, "-p", "pr_1"}, {"api", "/projects/pr_1/key", "--url", other, "-p", "pr_1"}} {
		if r := m.Run(t, "", "", nil, args...); r.Code == shell.ExitOK {
			t.Errorf("%+v", r)
		}
	}
	refused(m.Run(t, "", "", nil, "whoami", "--url", other, "--context", "pr_1"), shell.ExitUsage, "another URL was given")
	for _, key := range *foreign {
		if key != "" {
			t.Errorf("the key %s went to another URL", key)
		}
	}

	// All pages of a list, and no other host.
	if r := m.Run(t, "", "", nil, "api", "projects/{projectId}/entries?limit=1", "--paginate"); r.Code != shell.ExitOK || r.Out != "{\"entry_id\":\"e0\"}\n{\"entry_id\":\"e1\"}\n{\"entry_id\":\"e2\"}\n" {
		t.Errorf("%+v", r)
	}
	refused(m.Run(t, "", "", nil, "api", other), shell.ExitUsage, "allowed: a path of the API")
	refused(m.Run(t, "", "", nil, "api", "//host/key"), shell.ExitUsage, `PATH was given as "//host/key"; allowed: a path of the API`)

	file := filepath.Join(m.Folder, "contexts.json")
	if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	ok(m.Run(t, "", "", nil, "context", "remove", "pr_1"), "removed")
	if content, err := os.ReadFile(file); err != nil || strings.Contains(string(content), "rk_1") {
		t.Errorf("%v: %s", err, content)
	}
	clitest.Write(t, file, "{")
	complete := map[string]string{"LECTERN_URL": url, "LECTERN_PROJECT_ID": "pr_1", "LECTERN_API_KEY": "rk_1"}
	ok(m.Run(t, "", "", complete, "whoami"), "no context applies: "+file+" is damaged")
	refused(m.Run(t, "", "", complete, "whoami", "--context", "shop"), shell.ExitUsage, `--context was given as "shop": `+file+" is damaged")
	refused(m.Run(t, "", "", nil, "context", "list"), shell.ExitUsage, "is damaged")
	refused(m.Run(t, "", "", nil, "context", "use", "shop"), shell.ExitUsage, "is damaged")

	// Commands without a context run though the folder cannot be read.
	unreadable := clitest.Machine{Folder: filepath.Join(file, "lectern")}
	if r := unreadable.Run(t, "", "", complete, "whoami"); r.Code != shell.ExitOK || r.Err != "" {
		t.Errorf("%+v", r)
	}
	refused(unreadable.Run(t, "", "", map[string]string{"LECTERN_CONTEXT": "shop"}, "whoami"), shell.ExitUsage, `LECTERN_CONTEXT was given as "shop": open `)
	refused(unreadable.Run(t, "", "", nil, "context", "list"), shell.ExitFailure, "open "+unreadable.Folder)
	refused(unreadable.Run(t, "", "", nil, "context", "use", "shop"), shell.ExitFailure, "mkdir "+file)
}

// A context says nothing about addresses that it does not have: they may be another deployment's.
func TestContextStaysAtItsDeployment(t *testing.T) {
	t.Parallel()
	url, _ := newKeyAPI(t, "pr_1", "rk_1")
	other, sent := newKeyAPI(t, "pr_1", "rk_1")
	m := clitest.Machine{Folder: filepath.Join(t.TempDir(), "lectern")}
	if r := m.Run(t, "rk_1", "", nil, "login", "--url", url, "-p", "pr_1"); r.Code != shell.ExitOK {
		t.Fatal(r)
	}
	environ := map[string]string{"LECTERN_INTERNAL_URL": other, "LECTERN_ADMIN_API_KEY": "ak_1", "LECTERN_INGEST_API_KEY": "gk_1"}
	for _, line := range []string{"purge --older-than 400d", "erase --contact c", "erase --all --confirm pr_1", "keys list", "keys mint", "keys revoke key_1"} {
		args := strings.Fields(line)
		if r := m.Run(t, "", "", environ, args...); r.Code != shell.ExitUsage || !strings.Contains(r.Err, "needs --project ID or LECTERN_PROJECT_ID") {
			t.Errorf("%s: %+v", line, r)
		}
		if r := m.Run(t, "", "", environ, append(args, "-p", "pr_2", "--context", "pr_1")...); r.Code != shell.ExitUsage || !strings.Contains(r.Err, "an address that no context has") {
			t.Errorf("%s: %+v", line, r)
		}
	}
	if len(*sent) > 0 {
		t.Errorf("%d requests were sent", len(*sent))
	}
	m.Run(t, "", "", nil, "check", "-p", "pr_1", "--service", "entries="+other)
	for _, key := range *sent {
		if key != "" {
			t.Errorf("the key %s went to another URL", key)
		}
	}
	if len(*sent) == 0 {
		t.Error("check sent nothing")
	}
}

// The first source with a key, or a file with one, wins: flags, variables, --env-file, the context.
func TestKeySources(t *testing.T) {
	t.Parallel()
	url, sent := newKeyAPI(t, "pr_1", "rk_context")
	folder := t.TempDir()
	m := clitest.Machine{Folder: filepath.Join(folder, "lectern")}
	if r := m.Run(t, "rk_context", "", nil, "login", "--url", url, "-p", "pr_1"); r.Code != shell.ExitOK {
		t.Fatal(r)
	}
	write := func(name, content string) string {
		path := filepath.Join(folder, name)
		clitest.Write(t, path, content)
		return path
	}
	file := write("key", "rk_file\n")
	keyEnv, fileEnv := write("key.env", "LECTERN_API_KEY=rk_env"), write("file.env", "LECTERN_API_KEY_FILE="+file)
	key, keyFile := map[string]string{"LECTERN_API_KEY": "rk_variable"}, map[string]string{"LECTERN_API_KEY_FILE": file}
	both := map[string]string{"LECTERN_API_KEY": "rk_variable", "LECTERN_API_KEY_FILE": file}
	for _, tt := range []struct {
		name    string
		environ map[string]string
		args    []string
		want    string // "": refused
	}{
		{"the context", nil, nil, "rk_context"},
		{"a file in --env-file", nil, []string{"--env-file", fileEnv}, "rk_file"},
		{"a variable over a file in --env-file", key, []string{"--env-file", fileEnv}, "rk_variable"},
		{"a variable's file over --env-file", keyFile, []string{"--env-file", keyEnv}, "rk_file"},
		{"a flag over a variable's file", keyFile, []string{"--api-key", "rk_flag"}, "rk_flag"},
		{"a flag's file over a variable", key, []string{"--api-key-file", file}, "rk_file"},
		{"a flag over two variables", both, []string{"--api-key", "rk_flag"}, "rk_flag"},
		{"two variables", both, nil, ""},
	} {
		*sent = nil
		r := m.Run(t, "", "", tt.environ, append([]string{"whoami"}, tt.args...)...)
		switch {
		case tt.want == "" && (r.Code != shell.ExitUsage || !strings.Contains(r.Err, "2 credentials were given") || len(*sent) > 0):
			t.Errorf("%s: %+v", tt.name, r)
		case tt.want != "" && (len(*sent) == 0 || (*sent)[0] != tt.want):
			t.Errorf("%s: %q was sent, want %s: %+v", tt.name, *sent, tt.want, r)
		}
	}
}
