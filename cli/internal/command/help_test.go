package command

import (
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/cli/internal/destination"
	"github.com/lectern-dev/lectern/cli/internal/shell"
)

func TestHelpOfEveryCommandHasExamples(t *testing.T) {
	t.Parallel()
	parser, err := (&shell.Session{}).Parser(&commands{}, description, destination.Texts())
	if err != nil {
		t.Fatal(err)
	}
	for _, leaf := range parser.Model.Leaves(true) {
		if leaf.Name == "version" {
			continue
		}
		if !strings.Contains(leaf.Detail, "Example") {
			t.Errorf("lectern %s --help shows no example", leaf.Path())
		}
		var out, errs strings.Builder
		code := Main(&shell.Session{Context: t.Context(), Out: &out, Err: &errs}, append(strings.Fields(strings.TrimPrefix(leaf.Path(), "lectern ")), "--help"))
		if code != 0 || errs.Len() > 0 || !strings.Contains(out.String(), "Usage: lectern") {
			t.Errorf("%s --help: %d %q", leaf.Path(), code, errs.String())
		}
	}
}
