package try_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
)

// opener puts a program in the place of the one that starts browsers. It notes its arguments, and what it was given to
// open.
func opener(t *testing.T, code string) (args, page, cache string) {
	t.Helper()
	folder := t.TempDir()
	args, page, cache = filepath.Join(folder, "args"), filepath.Join(folder, "page"), filepath.Join(folder, "cache")
	script := "#!/bin/sh\ncp \"${1#file://}\" '" + page + "' 2>/dev/null\nprintf '%s\\n' \"$@\" > '" + args + ".part'\nmv '" + args + ".part' '" + args + "'\necho chatter\nexit " + code + "\n"
	if err := os.WriteFile(filepath.Join(folder, "xdg-open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("XDG_CACHE_HOME", cache)
	return args, page, cache
}

// The browser gets the link by a file of this user alone: its arguments do not have the key. The file is gone when the
// command has ended.
func TestConsoleOpensSignedIn(t *testing.T) {
	args, page, cache := opener(t, "0")
	t.Setenv("LECTERN_URL", "https://api.example.com")
	process := clitest.Start(t, "console")
	eventually.True(t, "the browser", func() bool { _, err := os.Stat(args); return err == nil })
	files, err := filepath.Glob(filepath.Join(cache, "lectern", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v: want one file", files, err)
	}
	file, err := os.Stat(files[0])
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.Stat(filepath.Dir(files[0]))
	if err != nil {
		t.Fatal(err)
	}
	if file.Mode().Perm() != 0o600 || folder.Mode().Perm() != 0o700 {
		t.Errorf("others can read the key: %v in %v", file.Mode(), folder.Mode())
	}
	given, err := os.ReadFile(args)
	if err != nil {
		t.Fatal(err)
	}
	if want := (&url.URL{Scheme: "file", Path: files[0]}).String() + "\n"; string(given) != want {
		t.Errorf("the browser was started with %q, want %q", given, want)
	}
	const goesOn = `<meta http-equiv="refresh" content="0; url=https://api.example.com/console/#project=pr_1&amp;key=rk_1">`
	content, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(content), goesOn) {
		t.Errorf("the page has no %s: %v\n%s", goesOn, err, content)
	}
	process.End(t, syscall.SIGINT)
	if process.Code != shell.ExitOK || strings.Contains(process.Stderr.String(), "rk_1") || strings.Contains(process.Stderr.String(), "chatter") {
		t.Errorf("exit code %d: %s", process.Code, &process.Stderr)
	}
	if _, err := os.Stat(files[0]); !os.IsNotExist(err) {
		t.Errorf("the file is left: %v", err)
	}
}

func TestConsoleLink(t *testing.T) {
	signIn := map[string]string{"LECTERN_URL": "https://api.example.com/", "LECTERN_PROJECT_ID": "pr 1&key=x", "LECTERN_API_KEY": "rk_1+/'\"%é"}
	const signInLink = "https://api.example.com/console/#project=pr%201%26key%3Dx&key=rk_1%2B%2F%27%22%25%C3%A9"
	file := clitest.File(t, "key", signIn["LECTERN_API_KEY"]+"\n")
	keyFile := map[string]string{"LECTERN_URL": signIn["LECTERN_URL"], "LECTERN_PROJECT_ID": signIn["LECTERN_PROJECT_ID"], "LECTERN_API_KEY_FILE": file}
	noFile := map[string]string{"LECTERN_PROJECT_ID": "pr_1", "LECTERN_API_KEY_FILE": file + "s"}
	keyless := map[string]string{"LECTERN_URL": "https://api.example.com"}
	keyOnly := map[string]string{"LECTERN_API_KEY": "rk_1"}
	const page = "https://api.example.com/console/"
	for _, tt := range []struct {
		name    string
		environ map[string]string
		args    []string
		opener  string // its exit code
		code    int
		out     string
		argv    string // of the browser
	}{
		{"printed", signIn, []string{"--print"}, "0", shell.ExitOK, signInLink + "\n", ""},
		{"a key in a file", keyFile, []string{"--print"}, "0", shell.ExitOK, signInLink + "\n", ""},
		{"a file that is missing", noFile, []string{"--print"}, "0", shell.ExitUsage, "", ""},
		{"printed without a key", keyless, []string{"--print"}, "0", shell.ExitOK, page + "\n", ""},
		{"no browser starts", signIn, nil, "3", shell.ExitOK, signInLink + "\n", "file://"},
		{"without a key", keyless, nil, "0", shell.ExitOK, "", page},
		{"without a key and browser", keyless, nil, "3", shell.ExitOK, page + "\n", page},
		{"a key without a project", keyOnly, nil, "0", shell.ExitUsage, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args, _, cache := opener(t, tt.opener)
			r := clitest.Run(t, "", tt.environ, append([]string{"console"}, tt.args...)...)
			if r.Code != tt.code || r.Out != tt.out {
				t.Errorf("exit code %d, want %d; printed %q, want %q: %s", r.Code, tt.code, r.Out, tt.out, r.Err)
			}
			given, _ := os.ReadFile(args)
			if !strings.HasPrefix(string(given), tt.argv) || tt.argv == "" && len(given) > 0 {
				t.Errorf("the browser was started with %q, want %q", given, tt.argv)
			}
			if left, _ := filepath.Glob(filepath.Join(cache, "lectern", "*")); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}
