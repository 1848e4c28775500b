package faulttest_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestFaultTableNamesTests checks that every fault in the operators' table names an existing test.
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
	rows := 0
	for row := range strings.Lines(table) {
		if !strings.HasPrefix(row, "| ") || strings.HasPrefix(row, "| Fault ") {
			continue
		}
		rows++
		names := regexp.MustCompile("`(Test[^`]+)`").FindAllStringSubmatch(row, -1)
		if len(names) == 0 {
			t.Errorf("no test is named: %s", row)
		}
		for _, n := range names {
			test, sub, _ := strings.Cut(n[1], "/")
			text, ok := code[test]
			if !ok {
				t.Errorf("there is no %s", test)
			}
			if sub != "" && !strings.Contains(text, `"`+strings.ReplaceAll(sub, "_", " ")+`"`) {
				t.Errorf("%s has no case %s", test, sub)
			}
		}
	}
	if rows < 30 {
		t.Errorf("the table has %d rows", rows)
	}
}
