package try_test

import (
	"testing"

	"github.com/lectern-dev/lectern/cli/internal/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m) }
