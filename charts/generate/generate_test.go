package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFillSchema(t *testing.T) {
	operating := strings.Join([]string{
		"# Operating", "## Configuration", "", "### Every data service", "",
		"| Variable | Meaning | Default |", "|---|---|---|",
		"| `DATABASE_URL` | Where. Secret: `DATABASE_URL_FILE` may name a file instead. | – |",
		"| `RATE_LIMIT` | How many. | `1000` |", "| `LOG_LEVEL` | How much. | `info` |", "| `DRAIN_DELAY` | How long. | `5s` |",
		"", "### entries", "", "| `MAX_LIMIT` | The most. | `1000000` |",
		"", "### The operator", "", "| `WORKERS` | How many. | `4` |", "", "### proxy", "", "| `PROXY_ALLOWED_RANGES` | Where to. | – |",
		"", "## API keys", "", "| `NOT_A_VARIABLE` | no | – |", "",
	}, "\n")
	for _, tt := range []struct{ name, in, want string }{
		{"a service", `    "variables-entries": {"enum": ["OLD"]},`, `    "variables-entries": {"enum": ["LOG_LEVEL","MAX_LIMIT","RATE_LIMIT"]},`},
		{"what is no service", `"variables-proxy": {"enum": []}`, `"variables-proxy": {"enum": ["LOG_LEVEL","PROXY_ALLOWED_RANGES"]}`},
		{"what is called by an article", `"variables-operator": {"enum": []}`, `"variables-operator": {"enum": ["LOG_LEVEL","WORKERS"]}`},
		{"anything else", `"type": {"enum": ["A"]}`, `"type": {"enum": ["A"]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := fillSchema([]byte(tt.in), []byte(operating))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
	if _, err := fillSchema(nil, []byte("# Nothing")); err == nil {
		t.Error("a document without the chapter is taken")
	}
	if got := string(routesFile()); !strings.Contains(got, `{service: entries, operation: listEntries, pattern: "^/projects/[^/]+/entries$"}`) {
		t.Errorf("the routes' file:\n%s", got)
	}
}

func TestCopyManifests(t *testing.T) {
	from, into := t.TempDir(), t.TempDir()
	put := func(path, content string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put(filepath.Join(from, "crd", "a.yaml"), "a")
	if err := copyManifests(from, into); err == nil {
		t.Error("a folder without roles is taken")
	}
	put(filepath.Join(from, "rbac", "r.yaml"), "r")
	put(filepath.Join(into, "crds", "gone.yaml"), "gone")
	if err := copyManifests(from, into); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, pattern := range []string{"crds/*", "rbac/*"} {
		found, err := filepath.Glob(filepath.Join(into, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			content, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, filepath.Base(f)+"="+string(content))
		}
	}
	if diff := cmp.Diff([]string{"a.yaml=a", "r.yaml=r"}, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
