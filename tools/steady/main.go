// Command steady runs tests many times on a busy machine, to find those that depend on a time. Two loops keep two processors busy
// meanwhile.
//
//	steady -pkg ./services/region/app -run TestX ROOT    the tests of a package that match a regular expression
//	steady -since COMMIT ROOT                            all tests that changed since the commit
//
// A test runs 20 times, or 5 times if its first run takes over 10 seconds. With -since, a test whose text stayed the same runs
// once if the test moved, or if something else in its file changed. The command ends after an hour. Tests on a cluster (k8s/e2e)
// are left to make e2e. The exit status is 1 if a run failed, or if the hour was too short.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	runs     = 20               // of a test
	slow     = 10 * time.Second // a test that takes longer is slow
	slowRuns = 5                // of a slow test
	limit    = time.Hour        // of all runs
)

func main() {
	pkg := flag.String("pkg", "", "the folder of a package")
	run := flag.String("run", ".", "the tests of the package, as a regular expression")
	since := flag.String("since", "", "a commit: take all tests that changed since")
	flag.Parse()
	if flag.NArg() != 1 || (*pkg == "") == (*since == "") {
		fmt.Fprintln(os.Stderr, "usage: steady -pkg FOLDER [-run REGEXP] ROOT, or steady -since COMMIT ROOT")
		os.Exit(2)
	}
	if err := os.Chdir(flag.Arg(0)); err != nil {
		fail(err)
	}
	plans := map[string]plan{}
	if *pkg != "" {
		tests, err := matching(*pkg, *run)
		if err != nil {
			fail(err)
		}
		plans[*pkg] = plan{often: tests}
	} else {
		var err error
		if plans, err = changed(*since); err != nil {
			fail(err)
		}
	}
	if !runAll(plans) {
		os.Exit(1)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "steady:", err)
	os.Exit(2)
}

// plan has the names of the tests of a package: those that run often, and those that run once.
type plan struct{ often, once []string }

// tests maps the name of each test in a file to its text. rest is the text of all else in the file.
type tests struct {
	file string
	text map[string]string
	rest string
}

// read returns the tests in source, the content of the Go file file.
func read(file string, source []byte) (tests, error) {
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, source, parser.SkipObjectResolution)
	if err != nil {
		return tests{}, err
	}
	t := tests{file: file, text: map[string]string{}}
	rest, last := strings.Builder{}, 0
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && isTest(f) {
			from, to := fset.Position(f.Pos()).Offset, fset.Position(f.End()).Offset
			t.text[f.Name.Name] = string(source[from:to])
			rest.Write(source[last:from])
			last = to
		}
	}
	rest.Write(source[last:])
	t.rest = rest.String()
	return t, nil
}

func isTest(f *ast.FuncDecl) bool {
	return f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain"
}

// matching returns the tests of the package in folder whose names match the expression.
func matching(folder, expression string) ([]string, error) {
	match, err := regexp.Compile(expression)
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		t, err := read(file, source)
		if err != nil {
			return nil, err
		}
		for name := range t.text {
			if match.MatchString(name) {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no test of %s matches %q", folder, expression)
	}
	slices.Sort(names)
	return names, nil
}

// changed returns the tests that changed since the commit, by the folder of their package.
func changed(commit string) (map[string]plan, error) {
	list, err := git("diff", "--name-only", "--no-renames", commit, "--", "*_test.go")
	if err != nil {
		return nil, err
	}
	before := map[string]tests{}          // by file
	texts := map[string]map[string]bool{} // the texts that a test of this name had before, in any of the files
	var after []tests
	for _, file := range strings.Fields(list) {
		if old, err := git("show", commit+":"+file); err == nil {
			t, err := read(file, []byte(old))
			if err != nil {
				return nil, err
			}
			before[file] = t
			for name, text := range t.text {
				if texts[name] == nil {
					texts[name] = map[string]bool{}
				}
				texts[name][text] = true
			}
		}
		if source, err := os.ReadFile(file); err == nil {
			t, err := read(file, source)
			if err != nil {
				return nil, err
			}
			after = append(after, t)
		}
	}
	plans := map[string]plan{}
	for _, t := range after {
		folder := filepath.Dir(t.file)
		if folder == "k8s/e2e" {
			fmt.Println("steady: k8s/e2e changed: run make e2e")
			continue
		}
		p := plans[folder]
		old, there := before[t.file]
		for name, text := range t.text {
			switch {
			case !texts[name][text]:
				p.often = append(p.often, name)
			case !there || old.text[name] != text || old.rest != t.rest:
				p.once = append(p.once, name)
			}
		}
		slices.Sort(p.often)
		slices.Sort(p.once)
		plans[folder] = p
	}
	return plans, nil
}

// git returns what a command of Git prints.
func git(arguments ...string) (string, error) {
	out, err := exec.Command("git", arguments...).Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("git %s: %s", arguments[0], failed.Stderr)
	}
	return string(out), err
}

// runAll runs the tests next to two busy loops, prints a line for each, and reports whether all passed.
func runAll(plans map[string]plan) bool {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	work, err := os.MkdirTemp("", "steady")
	if err != nil {
		fail(err)
	}
	defer os.RemoveAll(work)
	for range 2 {
		loop := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
		if err := loop.Start(); err != nil {
			fail(err)
		}
		defer loop.Wait()
		defer loop.Process.Kill()
	}
	passed := true
	folders := make([]string, 0, len(plans))
	for folder := range plans {
		folders = append(folders, folder)
	}
	slices.Sort(folders)
	for i, folder := range folders {
		p := plans[folder]
		binary := filepath.Join(work, strconv.Itoa(i)+".test")
		compile := exec.CommandContext(ctx, "go", "test", "-vet=off", "-c", "-o", binary, ".")
		compile.Dir, compile.Stderr = folder, os.Stderr
		if err := compile.Run(); err != nil {
			fmt.Printf("FAIL  %s does not compile: %v\n", folder, err)
			passed = false
			continue
		}
		check := func(what string, tests []string, count int) time.Duration {
			took, output, err := repeat(ctx, binary, folder, tests, count)
			verdict := "ok   "
			switch {
			case err != nil:
				verdict, passed = "FAIL ", false
			case strings.Contains(output, "--- SKIP"):
				verdict = "skip "
			}
			fmt.Printf("%s %s %s: %d in %.1f s\n", verdict, folder, what, count, took.Seconds())
			if err != nil {
				fmt.Printf("%v\n%s\n", err, tail(output, 60))
			}
			return took
		}
		for _, name := range p.often {
			first := check(name, []string{name}, 1)
			if first > slow {
				check(name, []string{name}, slowRuns-1)
			} else {
				check(name, []string{name}, runs-1)
			}
		}
		if len(p.once) > 0 {
			check(fmt.Sprintf("%d tests that moved", len(p.once)), p.once, 1)
		}
		_ = os.Remove(binary)
	}
	return passed
}

// repeat runs tests of a compiled package count times in its folder. repeat returns the time of all runs and what they printed.
func repeat(ctx context.Context, binary, folder string, tests []string, count int) (time.Duration, string, error) {
	started := time.Now()
	command := exec.CommandContext(ctx, binary, "-test.v", "-test.run", "^("+strings.Join(tests, "|")+")$", "-test.count", strconv.Itoa(count), "-test.timeout", "30m")
	command.Dir = folder
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = time.Minute
	out, err := command.CombinedOutput()
	if ctx.Err() != nil {
		err = fmt.Errorf("not finished: %w; all runs together may take %v", ctx.Err(), limit)
	}
	return time.Since(started), string(out), err
}

// tail returns the last n lines of a text.
func tail(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
