package faulttest_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFaultTableNamesTests checks that the operators' table lists the faults of testdata/faults.txt in their order, and that
// every fault there names existing tests.
func TestFaultTableNamesTests(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	doc, err := os.ReadFile(filepath.Join(root, "docs", "how-to", "operate.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(doc), "\n## Faults\n")
	if !found {
		t.Fatal("docs/how-to/operate.md has no section Faults")
	}
	var documented []string
	for _, m := range regexp.MustCompile(`(?m)^\| ([^|]+) \|`).FindAllStringSubmatch(table, -1)[1:] { // but the head of the table
		documented = append(documented, m[1])
	}
	list, err := os.ReadFile(filepath.Join("testdata", "faults.txt"))
	if err != nil {
		t.Fatal(err)
	}
	code := map[string]string{} // of the file with the test, by test
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			code[m[1]] += string(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var tested []string
	for line := range strings.Lines(string(list)) {
		fault, names, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		tested = append(tested, fault)
		for name := range strings.SplitSeq(names, ", ") {
			test, sub, _ := strings.Cut(name, "/")
			text, ok := code[test]
			if !ok {
				t.Errorf("%s: there is no test %q", fault, test)
			}
			if sub != "" && !strings.Contains(text, `"`+strings.ReplaceAll(sub, "_", " ")+`"`) {
				t.Errorf("%s: %s has no case %s", fault, test, sub)
			}
		}
	}
	if diff := cmp.Diff(tested, documented); diff != "" {
		t.Errorf("docs/how-to/operate.md (-testdata/faults.txt +page):\n%s", diff)
	}
}
