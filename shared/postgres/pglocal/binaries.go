package pglocal

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ErrNoBinaries is wrapped by the errors of [Start] and [Binaries] if the machine has no Postgres server.
var ErrNoBinaries = errors.New("no Postgres server binaries found")

// Binaries returns the folder with initdb and postgres. If PG_BIN_DIR is set, Binaries looks only there. Otherwise
// Binaries looks in the layouts of Debian, Red Hat, Homebrew and Postgres.app, and takes the highest version in the
// first layout that has one. After that, Binaries looks in the folder that pg_config prints, and in PATH. The error
// wraps [ErrNoBinaries].
func Binaries() (string, error) {
	return binaries(os.Getenv("PG_BIN_DIR"), []string{
		"/usr/lib/postgresql/*/bin",
		"/usr/pgsql-*/bin",
		"/opt/homebrew/opt/postgresql@*/bin",
		"/usr/local/opt/postgresql@*/bin",
		"/Applications/Postgres.app/Contents/Versions/*/bin",
	})
}

func binaries(named string, patterns []string) (string, error) {
	if named != "" {
		if !holdsServer(named) {
			return "", fmt.Errorf("%w: PG_BIN_DIR is %q, which holds no initdb and postgres", ErrNoBinaries, named)
		}
		return named, nil
	}
	tried := []string{"PG_BIN_DIR (not set)"}
	for _, pattern := range patterns {
		tried = append(tried, pattern)
		found, err := filepath.Glob(pattern)
		if err != nil {
			return "", fmt.Errorf("look for Postgres in %q: %w", pattern, err)
		}
		slices.SortFunc(found, func(a, b string) int { return slices.Compare(numbers(b), numbers(a)) })
		for _, dir := range found {
			if holdsServer(dir) {
				return dir, nil
			}
		}
	}
	tried = append(tried, "pg_config --bindir")
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		if dir := strings.TrimSpace(string(out)); holdsServer(dir) {
			return dir, nil
		}
	}
	tried = append(tried, "PATH")
	if path, err := exec.LookPath("postgres"); err == nil {
		if target, err := filepath.EvalSymlinks(path); err == nil && holdsServer(filepath.Dir(target)) {
			return filepath.Dir(target), nil
		}
	}
	return "", fmt.Errorf("%w; looked at %s. Install them (Debian, Ubuntu: apt-get install postgresql; "+
		"macOS: brew install postgresql@17) or name their folder in PG_BIN_DIR", ErrNoBinaries, strings.Join(tried, ", "))
}

func holdsServer(dir string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			return false
		}
	}
	return true
}

// numbers returns the decimal numbers in s, in order, to compare versions in paths.
func numbers(s string) []int {
	var all []int
	for field := range strings.FieldsFuncSeq(s, func(r rune) bool { return r < '0' || r > '9' }) {
		if n, err := strconv.Atoi(field); err == nil {
			all = append(all, n)
		}
	}
	return all
}
