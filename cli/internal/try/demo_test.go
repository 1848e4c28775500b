package try_test

import (
	"io"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/cli/internal/demo"
)

func TestDemo(t *testing.T) {
	t.Parallel()
	for resource, write := range map[string]func(io.Writer) error{
		"projects": demo.WriteProjects, "embeddables": demo.WriteEmbeddables, "embeddable-versions": demo.WriteVersions,
	} {
		var want strings.Builder
		if err := write(&want); err != nil {
			t.Fatal(err)
		}
		if out := clitest.Must(t, nil, "", "demo", resource); out != want.String() {
			t.Errorf("%s: %.200s; want what the package demo writes", resource, out)
		}
	}
}
