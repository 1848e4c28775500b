package apierr

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDocs checks that the page of errors has a heading for each code, followed by its status and the fields of its body.
// The page that services serve has the same headings, to which the header Link of an error leads.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, m := range regexp.MustCompile(`(?m)^### (\w+)\n\n(\*\*\d+\*\*(?:, with [^.]*)?)\.`).FindAllStringSubmatch(string(page), -1) {
		documented = append(documented, m[1]+": "+m[2])
	}
	slices.Sort(documented)
	served, err := os.ReadFile("../openapi/reference/errors.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range Codes() {
		if !strings.Contains(string(served), fmt.Sprintf("<h3 id=%q>", code)) {
			t.Errorf("the served page has no place for %s: run make generate", code)
		}
	}
	var want []string
	for _, code := range Codes() {
		line := fmt.Sprintf("%s: **%d**", code, code.Status())
		if fields := code.Context(); len(fields) > 0 {
			line += ", with `" + strings.Join(fields, "`, `") + "`"
		}
		want = append(want, line)
	}
	if diff := cmp.Diff(want, documented); diff != "" {
		t.Errorf("docs/reference/errors.md (-want +got):\n%s", diff)
	}
}
