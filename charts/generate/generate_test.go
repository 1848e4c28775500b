package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFillSchema(t *testing.T) {
	settings := strings.Join([]string{
		"# Settings", "",
		"| Setting | Read by | Default | Meaning |", "|---|---|---|---|",
		"| `DATABASE_URL` (secret) | data services | – | Where. |",
		"| `RATE_LIMIT` | data services | `1000` | How many. |",
		"| `LOG_LEVEL` | data services, proxy, operator | `info` | How much. |",
		"| `DRAIN_DELAY` | data services, proxy | `5s` | How long. |",
		"| `MAX_LIMIT` | entries, embeddables | `1000000` | The most. |",
		"| `WORKERS` | operator | `4` | How many. |",
		"| `PROXY_ALLOWED_RANGES` | proxy | – | Where to. |", "",
	}, "\n")
	for _, tt := range []struct{ name, in, want string }{
		{"a service", `    "variables-entries": {"enum": ["OLD"]},`, `    "variables-entries": {"enum": ["LOG_LEVEL","MAX_LIMIT","RATE_LIMIT"]},`},
		{"the proxy", `"variables-proxy": {"enum": []}`, `"variables-proxy": {"enum": ["LOG_LEVEL","PROXY_ALLOWED_RANGES"]}`},
		{"the operator", `"variables-operator": {"enum": []}`, `"variables-operator": {"enum": ["LOG_LEVEL","WORKERS"]}`},
		{"anything else", `"type": {"enum": ["A"]}`, `"type": {"enum": ["A"]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := fillSchema([]byte(tt.in), []byte(settings))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
	if _, err := fillSchema([]byte(`"variables-proxy": {"enum": []}`), []byte("# Nothing")); err == nil {
		t.Error("a document without the table is accepted")
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
