package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSinger: the tap takes what a runner of Singer gives it, and continues after the last state. The messages are tested
// with the package replicate.
func TestSinger(t *testing.T) {
	s, environ := startEntries(t)
	s.MustIngest(t, "entries", entryOf("e1", 1))
	file := func(name, content string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	config := file("config.json", `{"url":"`+environ["LECTERN_URL"]+`","project_id":"pr_1","api_key":"`+environ["LECTERN_API_KEY"]+`","added":true}`)
	catalog := file("catalog.json", must(t, nil, "", "singer", "--config", config, "--discover"))
	r := lectern(t, "", nil, "singer", "--config", config, "--catalog", catalog)
	if r.code != exitOK || strings.Count(r.out, `"type":"SCHEMA"`) != 7 || strings.Count(r.out, `"type":"RECORD"`) != 1 || !strings.Contains(r.err, "gets no experiments") {
		t.Fatalf("%+v", r)
	}
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	value, ok := strings.CutPrefix(lines[len(lines)-1], `{"type":"STATE","value":`)
	if !ok {
		t.Fatalf("the last message is %s", lines[len(lines)-1])
	}
	state := file("state.json", strings.TrimSuffix(value, "}"))
	s.MustIngest(t, "entries", entryOf("e2", 2))
	r = lectern(t, "", nil, "singer", "--config", config, "--catalog", catalog, "--state", state)
	if r.code != exitOK || strings.Count(r.out, `"type":"RECORD"`) != 1 || !strings.Contains(r.out, `"entry_id":"e2"`) {
		t.Errorf("%+v", r)
	}
	r = lectern(t, "", map[string]string{"LECTERN_PROJECT_ID": "pr_2", "LECTERN_API_KEY": "k"}, "singer", "--state", state)
	if r.code != exitUsage || !strings.Contains(r.err, "is of project pr_1") || r.out != "" {
		t.Errorf("%+v", r)
	}
}
