package try_test

import (
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
	"github.com/lectern-dev/lectern/cli/internal/demo"
)

func TestDemo(t *testing.T) {
	t.Parallel()
	for _, resource := range []string{"projects", "embeddables", "embeddable-versions"} {
		var want strings.Builder
		if err := demo.Write(&want, resource); err != nil {
			t.Fatal(err)
		}
		if out := clitest.Must(t, nil, "", "demo", resource); out != want.String() {
			t.Errorf("%s: %.200s; want what the package demo writes", resource, out)
		}
	}
}
