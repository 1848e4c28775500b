package read_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/shared/testing/needs"
)

// TestLongMCP drives the command by the protocol's own inspector: its tools, an answer, the next page, and errors that say
// what to correct.
func TestLongMCP(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	needs.Node(t)
	folder := t.TempDir()
	if out, err := exec.Command("npm", "install", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund", "@modelcontextprotocol/inspector@2.12.0").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s, environ := clitest.Entries(t)
	s.MustIngest(t, "entries", clitest.Entry("en/1", 1))
	s.MustIngest(t, "entries", clitest.Entry("en_2", 2))
	for i := range 3 {
		long := clitest.Entry(fmt.Sprint("long_", i), i)
		long["contact_id"], long["entry_data"] = "long", fmt.Sprintf(`{"fill":%q}`, strings.Repeat("x", []int{25_000, 25_000, 75_000}[i]))
		s.MustIngest(t, "entries", long)
	}
	inspect := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), filepath.Join(folder, "node_modules/.bin/mcp-inspector"), append([]string{"--cli", self, "mcp", "-e", clitest.AsCommand + "=1"}, args...)...)
		for name, value := range environ {
			cmd.Args = append(cmd.Args, "-e", name+"="+value)
		}
		out, err := cmd.CombinedOutput()
		if err != nil && !strings.Contains(string(out), "isError") {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
		return string(out)
	}
	var listed struct {
		Tools []struct {
			Name        string
			InputSchema struct{ Properties map[string]any }
		}
	}
	text := inspect("--method", "tools/list")
	if err := json.Unmarshal([]byte(text), &listed); err != nil || len(listed.Tools) < 15 {
		t.Fatalf("%v: %s", err, text)
	}
	for _, tool := range listed.Tools {
		if !strings.HasPrefix(tool.Name, "get") && !strings.HasPrefix(tool.Name, "list") && !strings.HasPrefix(tool.Name, "count") || tool.InputSchema.Properties["projectId"] != nil {
			t.Errorf("the tool %s", tool.Name)
		}
	}
	for _, tt := range []struct {
		tool string
		args []string
		want []string
	}{
		{"getEntry", []string{"entryId=en/1"}, []string{`\"entry_id\":\"en/1\"`}},
		{"listEntries", []string{"limit=1", "sort=created_at", "contact_id=c", "embeddable_id=null"}, []string{`\"entry_id\":\"en_2\"`, "For the next page, call the tool with cursor: "}},
		{"listEntries", []string{"contact_id=long", "limit=100000"}, []string{"long_2", "These are the first 60000 of 7", "For the next page, call the tool with cursor: "}},
		{"listEntries", []string{"contact_id=long", "sort=created_at", "direction=asc", "limit=null"}, []string{"long_0", "long_1", "For the next page, call the tool with cursor: "}},
		{"countEntries", []string{"interval=all"}, []string{`\"entries\":5`}},
		{"getEntry", nil, []string{"entryId"}},
		{"getEntry", []string{"entryId=none"}, []string{"entry_not_found", `"isError": true`}},
		{"countEntries", []string{"interval=minute"}, []string{"interval", "hour, day, week, month"}},
	} {
		args := []string{"--method", "tools/call", "--tool-name", tt.tool}
		for _, a := range tt.args {
			args = append(args, "--tool-arg", a)
		}
		got := inspect(args...)
		for _, want := range tt.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s %v lacks %s: %s", tt.tool, tt.args, want, got)
			}
		}
	}
}
