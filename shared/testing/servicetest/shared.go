package servicetest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/lectern-dev/lectern/shared/service"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

// Shared is a service that tests of a package share, each with projects of its own. The start of a service with its
// databases takes longer than most tests. The zero value starts the service with the first test that asks for it. [Main]
// stops the service. A test starts a service of its own if it sets the configuration, breaks or locks something, or reads
// the log or the metrics. The same holds for a test that sends many refused keys: all tests have one client address, whose
// refused keys are counted.
type Shared struct {
	mu       sync.Mutex
	service  *Service
	projects int
}

// Get returns the service, which start starts, and the id of a project that no other test has.
func (s *Shared) Get(t testing.TB, start func(testing.TB) *Service) (_ *Service, project string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.service == nil {
		s.service = start(&binary{TB: t})
	}
	s.service.log.ReportErrors(t, "the shared service")
	s.projects++
	return s.service, fmt.Sprintf("pr_of_test_%d", s.projects)
}

// binary stands for the test binary where a fixture asks for its test: what is registered ends with the binary. It embeds
// the test that starts the fixture, which fails if the start does.
type binary struct{ testing.TB }

// ending has what [Main] runs, in the opposite order. It must be a variable, because TestMain and the tests share only the
// process.
var ending struct {
	sync.Mutex
	todo   []func()
	failed bool
}

// Cleanup registers f, which runs when all tests have ended.
func (*binary) Cleanup(f func()) {
	ending.Lock()
	defer ending.Unlock()
	ending.todo = append(ending.todo, f)
}

// Context returns a context that does not end.
func (*binary) Context() context.Context { return context.Background() }

// TempDir returns a folder that is removed when all tests have ended.
func (b *binary) TempDir() string {
	dir, err := os.MkdirTemp("", "lectern-servicetest-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Helper does nothing: the test may have ended.
func (*binary) Helper() {}

// Failed returns false: a test that fails prints the log itself.
func (*binary) Failed() bool { return false }

// Errorf makes the binary fail. It is called by what Cleanup registered.
func (*binary) Errorf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	ending.Lock()
	defer ending.Unlock()
	ending.failed = true
}

// Main is [pgtest.Main] for a package whose tests run its service. If the process is one that [StartProcess] started, the
// test binary runs commands instead of tests.
func Main(m *testing.M, commands ...service.Command) {
	if os.Getenv(asService) != "" {
		os.Exit(service.Main("service", os.Args[1:], os.Stderr, commands...))
	}
	pgtest.Main(ended{m})
}

// ended is a testing.M that stops what tests share.
type ended struct{ m *testing.M }

// Run runs the tests, then what they registered for the end of the binary. Unless -parallel says otherwise, two tests for
// each processor run at once, because these tests wait for servers more than they compute.
func (e ended) Run() int {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))) // a number is always valid
	}
	code := e.m.Run()
	for len(ending.todo) > 0 {
		last := len(ending.todo) - 1
		f := ending.todo[last]
		ending.todo = ending.todo[:last]
		f()
	}
	if ending.failed {
		code = max(code, 1)
	}
	return code
}
