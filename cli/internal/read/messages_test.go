package read_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/cli/internal/shell"
)

// TestSingerAndAirbyte: the commands take what a runner gives them, and continue after the last state. The messages are
// tested in the package copiestest.
func TestSingerAndAirbyte(t *testing.T) {
	t.Parallel()
	s, environ := clitest.Entries(t)
	file := func(name, content string) string {
		path := filepath.Join(t.TempDir(), name)
		clitest.Write(t, path, content)
		return path
	}
	config := file("config.json", `{"url":"`+environ["LECTERN_URL"]+`","project_id":"pr_1","api_key":"`+environ["LECTERN_API_KEY"]+`","added":true}`)
	catalog := file("catalog.json", clitest.Must(t, nil, "", "singer", "--config", config, "--discover"))
	configured := `{"streams":[`
	for i, stream := range gjson.Get(clitest.Must(t, nil, "", "airbyte", "discover", "--config", config), "catalog.streams").Array() {
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
		s.MustIngest(t, "entries", clitest.Entry("e1", 2*i), clitest.Entry("e2", 2*i))
		r := clitest.Run(t, "", nil, tt.args...)
		if r.Code != shell.ExitOK || strings.Count(r.Out, `"type":"RECORD"`) != 2 || !strings.Contains(r.Err, "gets no experiments") {
			t.Fatalf("%+v", r)
		}
		var last string
		for line := range strings.Lines(r.Out) {
			if gjson.Get(line, "type").String() == "STATE" {
				last = line
			}
		}
		state := file("state.json", gjson.Get(last, tt.state).Raw)
		s.MustIngest(t, "entries", clitest.Entry("e2", 2*i+1))
		r = clitest.Run(t, "", nil, append(tt.args, "--state", state)...)
		if r.Code != shell.ExitOK || strings.Count(r.Out, `"type":"RECORD"`) != 1 || !strings.Contains(r.Out, `"entry_id":"e2"`) {
			t.Errorf("%+v", r)
		}
		other := file("config.json", `{"project_id":"pr_2"}`)
		r = clitest.Run(t, "", nil, append(tt.args, "--state", state, "--config", other, "--api-key", "k")...)
		if r.Code != shell.ExitUsage || !strings.Contains(r.Err, `of project "pr_1", not of`) || r.Out != "" {
			t.Errorf("%+v", r)
		}
	}
	if spec := clitest.Must(t, nil, "", "airbyte", "spec"); !gjson.Get(spec, "spec.connectionSpecification.properties.api_key.airbyte_secret").Bool() {
		t.Error(spec)
	}
	for key, want := range map[string]string{environ["LECTERN_API_KEY"]: "SUCCEEDED", "wrong": "FAILED"} {
		config := file("config.json", `{"url":"`+environ["LECTERN_URL"]+`","project_id":"pr_1","api_key":"`+key+`"}`)
		if check := clitest.Must(t, nil, "", "airbyte", "check", "--config", config); gjson.Get(check, "connectionStatus.status").String() != want {
			t.Errorf("%s; want %s", check, want)
		}
	}
	full := file("configured.json", `{"streams":[{"stream":{"name":"entries"},"sync_mode":"full_refresh"}]}`)
	if r := clitest.Run(t, "", nil, "airbyte", "read", "--config", config, "--catalog", full); r.Code != shell.ExitUsage || !strings.Contains(r.Err, `"entries (full_refresh)"`) {
		t.Errorf("%+v", r)
	}
}
