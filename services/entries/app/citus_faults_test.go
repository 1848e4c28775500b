package app

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/routes"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/faulttest"
)

// seen has the reports of a fleet's clients during one period.
type seen struct {
	others, own map[string]faulttest.Report
	control     faulttest.Report // requests of others to a process that does not use the second worker
	writes      faulttest.Report // acknowledged and refused writes of others
}

// all merges reports.
func all(reports map[string]faulttest.Report) faulttest.Report {
	return faulttest.Merge(slices.Collect(maps.Values(reports))...)
}

// ownClients is the number of clients for each project of the failing worker.
const ownClients = 3

// run reads and writes records of all services for d, and calls during meanwhile, if it is set. After the fault it
// reads the acknowledged records again.
func (f *fleet) run(t *testing.T, d time.Duration, during func()) (s seen) {
	t.Helper()
	stopOthers := f.load(t, f.healthy, 1, 30*time.Millisecond)
	stopOwn := f.load(t, f.failing, ownClients, 60*time.Millisecond)
	var control []*faulttest.Load
	for _, project := range f.healthy.read {
		r := f.healthy.requests(project)[0]
		control = append(control, faulttest.Start(t, f.control.URL, faulttest.LoadOptions{Key: r.key, Paths: r.paths, Clients: 1, Pause: 30 * time.Millisecond}))
	}
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var writing sync.WaitGroup
	var there, here []record
	writing.Go(func() { there, s.writes.Refused = f.write(ctx, t, f.healthy) })
	writing.Go(func() { here, _ = f.write(ctx, t, f.failing) })
	if during != nil {
		during()
	}
	writing.Wait()
	s.others, s.own = stopOthers(), stopOwn()
	s.control = faulttest.Merge(control[0].Stop(), control[1].Stop())
	again := func(s *side, r record) {
		eventually.True(t, r.path+" is answered", func() bool { return f.checkStored(t, s, r) })
	}
	for i, r := range there {
		if i%7 == 0 {
			again(f.healthy, r)
		}
	}
	for _, r := range here {
		again(f.failing, r)
	}
	s.writes.Good = len(there)
	if len(there) == 0 || len(here) == 0 {
		t.Errorf("%d and %d writes were acknowledged", len(there), len(here))
	}
	t.Logf("%d and %d writes were acknowledged", len(there), len(here))
	return s
}

// TestFleetAsksForEverything checks that the load covers every operation that uses a database.
func TestFleetAsksForEverything(t *testing.T) {
	t.Parallel()
	s := &side{write: "pr_1", fresh: []string{"pr_2"}}
	asked := map[string]bool{}
	for _, r := range s.requests("pr_1") {
		for _, path := range r.paths {
			path, _, _ = strings.Cut(path, "?")
			if route, ok := routes.Find(path); ok && route.Service == r.service && route.Allows(r.method) {
				asked[route.Operation] = true
			} else {
				t.Errorf("%s %s is not an operation of %s", r.method, path, r.service)
			}
		}
	}
	for range 6 {
		r := s.record()
		if route, ok := routes.Table(routes.Internal()).Find("/internal/" + r.resource); ok && route.Service == r.service {
			asked[route.Operation] = true
		}
	}
	for _, route := range append(routes.Public(), routes.Internal()...) {
		asksNoDatabase := route.Service == routes.Proxy || strings.HasPrefix(route.Operation, "getDescription") || strings.HasPrefix(route.Operation, "getReference")
		ofOperators := route.Auth == routes.AdminKey || route.Operation == "getSettings"
		ofAllNodes := route.Auth == routes.AnyKey                                      // each worker's fault concerns this operation
		if !asked[route.Operation] && !asksNoDatabase && !ofOperators && !ofAllNodes { // clients do not use these
			t.Errorf("%s is not in the load", route.Operation)
		}
	}
}

// slow is the longest delay that a busy machine may cause. A request that waits for a failing worker waits for a second
// or more, until its time-out.
const slow = 500 * time.Millisecond

// tolerance returns the number of requests that may be refused because the machine is busy: 2%, and one more. A worker that
// affects others makes most of their requests fail.
func tolerance(r faulttest.Report) int { return 1 + (r.Good+r.Refused)/50 }

// TestLongCitusWorkerFaults kills a worker, and then stops one, during a load of all operations of all services. The
// clients of the worker's projects outnumber the service's connections.
//
// While a worker is dead, projects on other workers see no error and no slower answers, but for what a busy machine causes.
// While a worker hangs, those projects may see 503. The worker's own projects see only 503. All recover by themselves.
// Acknowledged records can be read by the next request.
func TestLongCitusWorkerFaults(t *testing.T) {
	f := startFleet(t)
	f.run(t, 3*time.Second, nil) // fills pools and caches
	quiet := f.run(t, 10*time.Second, nil)
	for _, name := range slices.Sorted(maps.Keys(quiet.others)) {
		quiet.others[name].Check(t, "quiet: "+name)
	}
	t.Logf("quiet: %v", all(quiet.others))
	if both := faulttest.Merge(all(quiet.others), all(quiet.own)); both.Refused > tolerance(both) || both.Broken+len(both.Wrong) > 0 {
		t.Errorf("before any fault: %v, wrong %q", both, both.Wrong)
	}
	for _, tt := range []struct {
		name       string
		begin, end func()
		check      func(t *testing.T, s, quiet seen)
	}{
		{"killed", func() { f.cluster.Kill(t, 2) }, func() { f.cluster.Start(t, 2) }, f.compare},
		{"stopped", func() { f.cluster.Pause(t, 2) }, func() { f.cluster.Resume(t, 2) }, f.checkAnswers},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const before, lasts, after = 2 * time.Second, 15 * time.Second, 10 * time.Second
			var back time.Duration
			s := f.run(t, before+lasts+after, func() {
				wait(before)
				tt.begin()
				wait(lasts)
				tt.end()
				back = eventually.True(t, "all projects are back", func() bool { return f.serve(t, f.failing) && f.serve(t, f.healthy) })
			})
			tt.check(t, s, quiet)
			t.Logf("all are back after %v", back)
		})
	}
}

// checkAnswers checks that clients of all projects saw only right answers, 503 and 422. A question that a stopped worker does
// not answer in time gets 422.
func (f *fleet) checkAnswers(t *testing.T, s, _ seen) {
	t.Helper()
	for _, side := range []map[string]faulttest.Report{s.others, s.own} {
		for _, name := range slices.Sorted(maps.Keys(side)) {
			r := side[name]
			r.Check(t, name)
			if r.Statuses[http.StatusOK]+r.Statuses[http.StatusServiceUnavailable]+r.Statuses[http.StatusUnprocessableEntity] != r.Good+r.Refused {
				t.Errorf("%s: %v", name, r)
			}
		}
	}
}

// serve reports whether all requests of a side succeed.
func (f *fleet) serve(t *testing.T, s *side) bool {
	t.Helper()
	for _, project := range s.read {
		for _, r := range s.requests(project) {
			if r.method != http.MethodGet {
				continue
			}
			for _, path := range r.paths {
				if f.of[r.service].Get(t, r.key, path).Status != http.StatusOK {
					return false
				}
			}
		}
	}
	return true
}

// compare checks the reports of a fault against those of a quiet period.
func (f *fleet) compare(t *testing.T, s, quiet seen) {
	t.Helper()
	p99 := func(r faulttest.Report) time.Duration { return faulttest.Quantile(r.Latencies, 0.99) }
	for _, name := range slices.Sorted(maps.Keys(s.others)) {
		others, own := s.others[name], s.own[name]
		others.Check(t, "others: "+name)
		own.Check(t, "its own: "+name)
		if others.Refused > tolerance(others) || others.Broken > 0 {
			t.Errorf("others noticed: %s: %v", name, others)
		}
		// Cached data is still served. Answers in flight when the worker failed may be broken.
		begun := ownClients * len(f.failing.read)
		if own.Refused == 0 && name != lookUps || own.Broken > begun || own.Statuses[http.StatusOK]+own.Statuses[http.StatusServiceUnavailable] != own.Good+own.Refused {
			t.Errorf("its own: %s: %v", name, own)
		}
	}
	if s.writes.Refused > tolerance(s.writes) {
		t.Errorf("others noticed: %d of their writes were refused, %d acknowledged", s.writes.Refused, s.writes.Good)
	}
	others, own, was := all(s.others), all(s.own), all(quiet.others)
	t.Logf("others: %v", others)
	t.Logf("others' p99 %v: %.2f times that of a quiet time (%v); at the same time entries %v and the control %v (quiet: %v)",
		p99(others), float64(p99(others))/float64(p99(was)), p99(was), p99(s.others["entries"]), p99(s.control), p99(quiet.control))
	// The machine may be busier than in the quiet period, which affects all requests.
	limit := max(slow, 3*max(p99(was), p99(s.control)))
	if p99(others) > limit {
		t.Errorf("others wait: p99 %v, quiet %v, elsewhere at the same time %v", p99(others), p99(was), p99(s.control))
	}
	median := faulttest.Quantile(own.Refusals, 0.5)
	t.Logf("its own are refused at the median after %v, at worst after %v", median, faulttest.Quantile(own.Refusals, 1))
	if median > limit {
		t.Errorf("its own are refused after %v", median)
	}
}

// wait waits while a fault lasts.
func wait(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
}
