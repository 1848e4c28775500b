package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lectern-dev/lectern/cli/internal/shell"
)

// TestSingerAndAirbyte: the commands take what a runner gives them, and continue after the last state. The messages are
// tested in the package copiestest.
func TestSingerAndAirbyte(t *testing.T) {
	t.Parallel()
	s, environ := startEntries(t)
	file := func(name, content string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	config := file("config.json", `{"url":"`+environ["LECTERN_URL"]+`","project_id":"pr_1","api_key":"`+environ["LECTERN_API_KEY"]+`","added":true}`)
	catalog := file("catalog.json", must(t, nil, "", "singer", "--config", config, "--discover"))
	configured := `{"streams":[`
	for i, stream := range gjson.Get(must(t, nil, "", "airbyte", "discover", "--config", config), "catalog.streams").Array() {
		if i > 0 {
			configured += ","
		}
		configured += `{"sync_mode":"incremental","destination_sync_mode":"append_dedup","stream":` + stream.Raw + `}`
	}
	configured = file("configured.json", configured+"]}")
	for i, tt := range []struct {
		args  []string
		state string // the path of the state in a message
	}{
		{[]string{"singer", "--config", config, "--catalog", catalog}, "value"},
		{[]string{"airbyte", "read", "--config", config, "--catalog", configured}, "state"},
	} {
		s.MustIngest(t, "entries", entryOf("e1", 2*i), entryOf("e2", 2*i))
		r := lectern(t, "", nil, tt.args...)
		if r.code != shell.ExitOK || strings.Count(r.out, `"type":"RECORD"`) != 2 || !strings.Contains(r.err, "gets no experiments") {
			t.Fatalf("%+v", r)
		}
		var last string
		for line := range strings.Lines(r.out) {
			if gjson.Get(line, "type").String() == "STATE" {
				last = line
			}
		}
		state := file("state.json", gjson.Get(last, tt.state).Raw)
		s.MustIngest(t, "entries", entryOf("e2", 2*i+1))
		r = lectern(t, "", nil, append(tt.args, "--state", state)...)
		if r.code != shell.ExitOK || strings.Count(r.out, `"type":"RECORD"`) != 1 || !strings.Contains(r.out, `"entry_id":"e2"`) {
			t.Errorf("%+v", r)
		}
		other := file("config.json", `{"project_id":"pr_2"}`)
		r = lectern(t, "", nil, append(tt.args, "--state", state, "--config", other, "--api-key", "k")...)
		if r.code != shell.ExitUsage || !strings.Contains(r.err, "is of project pr_1") || r.out != "" {
			t.Errorf("%+v", r)
		}
	}
	if spec := must(t, nil, "", "airbyte", "spec"); !gjson.Get(spec, "spec.connectionSpecification.properties.api_key.airbyte_secret").Bool() {
		t.Error(spec)
	}
	for key, want := range map[string]string{environ["LECTERN_API_KEY"]: "SUCCEEDED", "wrong": "FAILED"} {
		config := file("config.json", `{"url":"`+environ["LECTERN_URL"]+`","project_id":"pr_1","api_key":"`+key+`"}`)
		if check := must(t, nil, "", "airbyte", "check", "--config", config); gjson.Get(check, "connectionStatus.status").String() != want {
			t.Errorf("%s; want %s", check, want)
		}
	}
	full := file("configured.json", `{"streams":[{"stream":{"name":"entries"},"sync_mode":"full_refresh"}]}`)
	if r := lectern(t, "", nil, "airbyte", "read", "--config", config, "--catalog", full); r.code != shell.ExitUsage || !strings.Contains(r.err, `"entries (full_refresh)"`) {
		t.Errorf("%+v", r)
	}
}
