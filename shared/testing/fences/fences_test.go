package fences

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWorkspaceKeepsItsFences(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	all := workspace(t, root)
	if len(all) < 10 {
		t.Fatalf("only %d packages were found", len(all))
	}
	for _, v := range violations(all) {
		t.Error(v)
	}
	for _, named := range append([]string{program, commandLine, commandTests, destination, shell, copies}, commandGroups...) {
		if !slices.ContainsFunc(all, func(p pkg) bool { return p.path == named }) {
			t.Errorf("%s is fenced, but there is no such package", named)
		}
	}
	var folders []string
	for _, p := range all {
		if folder, _, _ := strings.Cut(strings.TrimPrefix(p.path, "shared/"), "/"); strings.HasPrefix(p.path, "shared/") && folder != "testing" {
			folders = append(folders, folder)
		}
	}
	slices.Sort(folders)
	if diff := cmp.Diff(slices.Compact(folders), slices.Sorted(slices.Values(sharedFloors))); diff != "" {
		t.Errorf("the folders of shared, and its floors: %s", diff)
	}
}

func TestFences(t *testing.T) {
	for _, tt := range []struct {
		path, imports string
		want          int
	}{
		{"cli/cmd/lectern", "cli/internal/command", 0},
		{"cli/internal/command", "cli/internal/read", 0},
		{"cli/internal/read", "cli/internal/shell", 0},
		{"cli/internal/read", "cli/internal/destination", 0},
		{"cli/internal/read", "cli/internal/send", 1},
		{"cli/internal/shell", "cli/internal/access", 1},
		{"cli/internal/destination", "cli/internal/read", 1},
		{"cli/internal/operate", "cli/internal/command", 1},
		{"cli/internal/clitest", "cli/internal/command", 0},
		{"cli/internal/export", "cli/internal/shell", 1},
		{"cli/internal/destination", "copies/push", 0},
		{"copies/files", "client", 0},
		{"copies/files", "copies/parquetfile", 0},
		{"copies", "shared/wire", 1},
		{"copies/internal/copytest", "client/clienttest", 0},
		{"copies/files", "client/clienttest", 1},
		{"copies/push", "cli/internal/shell", 1},
		{"shared/http/httpserver", "shared/http/httpapi", 0},
		{"shared/http/httpserver", "shared/apierr", 0},
		{"shared/apierr", "shared/http/httpapi", 1},
		{"shared/postgres/lists", "shared/http/httpapi", 1},
		{"shared/testing/servicetest", "shared/service", 0},
	} {
		if found := violations([]pkg{{path: tt.path, imports: []string{prefix + tt.imports}}}); len(found) != tt.want {
			t.Errorf("%s imports %s: %q; want %d", tt.path, tt.imports, found, tt.want)
		}
	}
}

// workspace returns every package of every module of the workspace at root.
func workspace(t *testing.T, root string) []pkg {
	t.Helper()
	var work struct{ Use []struct{ DiskPath string } }
	if err := json.Unmarshal(run(t, root, "work", "edit", "-json"), &work); err != nil {
		t.Fatal(err)
	}
	arguments := []string{"list", "-json=ImportPath,Imports,Deps"}
	for _, use := range work.Use {
		arguments = append(arguments, use.DiskPath+"/...")
	}
	var all []pkg
	for listed := json.NewDecoder(bytes.NewReader(run(t, root, arguments...))); ; {
		var p struct {
			ImportPath    string
			Imports, Deps []string
		}
		if err := listed.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, pkg{path: strings.TrimPrefix(p.ImportPath, prefix), imports: p.Imports, deps: p.Deps})
	}
}

func run(t *testing.T, folder string, arguments ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", arguments...)
	cmd.Dir = folder
	cmd.Env = append(cmd.Environ(), "GOWORK=") // use the workspace, even if this module is tested alone
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("go %s: %v: %s", arguments[0], err, exit.Stderr)
		}
		t.Fatal(err)
	}
	return out
}
