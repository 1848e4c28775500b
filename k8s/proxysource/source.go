package proxysource

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/lectern-dev/lectern/k8s/manifests"
	"github.com/lectern-dev/lectern/proxy/app"
	"github.com/lectern-dev/lectern/proxy/manifest"
	"github.com/lectern-dev/lectern/proxy/policy"
)

const (
	// gather is the delay after a change, so that changes that are applied together make one policy.
	gather = 10 * time.Millisecond
	// secretsWait is how long a change waits for Secrets that are being read.
	secretsWait = 200 * time.Millisecond
	// After a build, the next one waits for idleFor times its duration, but at most idleAtMost. So a cluster with
	// many changes takes a fifth of one processor.
	idleFor    = 4
	idleAtMost = 300 * time.Millisecond
)

// Source keeps a policy.Store up to date with a cluster. It is an app.Gradual.
type Source struct {
	store *policy.Store
	api   *api

	requireProject bool // objects of a project that no Project declares are refused

	projects      []*mirror[manifest.Project] // for each namespace, or one for all
	credentials   []*mirror[manifest.Credential]
	endpoints     []*mirror[manifest.ProxyEndpoint]
	secretWatches []*secretWatch
	vault         *vault
	alive         *link

	changes chan struct{} // objects have changed
	news    chan struct{} // what trouble returns has changed
	rests   chan struct{} // Secrets were read

	loaded atomic.Bool
	tally  atomic.Pointer[tally]
	report *report

	rested time.Time // when the next policy may be made
}

// New returns a Source that reads the namespaces in options from the API server in config. It sends no request before
// Run.
func New(config *rest.Config, options Options, o app.SourceOptions) (*Source, error) {
	api, err := newAPI(config)
	if err != nil {
		return nil, err
	}
	s := &Source{store: o.Store, api: api, changes: make(chan struct{}, 1), news: make(chan struct{}, 1), rests: make(chan struct{}, 1)}
	s.tally.Store(&tally{})
	if s.report, err = newReport(o.Log, o.Meter, s); err != nil {
		return nil, err
	}
	s.requireProject = options.UndeclaredProjects != manifests.AllowUndeclared
	namespaces := options.WatchNamespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	changed, news := signal(s.changes), signal(s.news)
	s.vault = newVault(api.secret, changed, news, signal(s.rests))
	s.alive = &link{what: "the API server", news: news, filled: true}
	for _, namespace := range namespaces {
		of := func(resource string) string {
			if namespace != "" {
				resource += " of " + namespace
			}
			return resource
		}
		owners := newMirror(of(projects), readProject, changed, news)
		owners.keepDeleting, owners.standing = true, standingOf
		s.projects = append(s.projects, owners)
		s.credentials = append(s.credentials, newMirror(of(credentials), readCredential, changed, news))
		s.endpoints = append(s.endpoints, newMirror(of(endpoints), readEndpoint, changed, news))
		s.secretWatches = append(s.secretWatches, &secretWatch{link: link{what: of(secrets), news: news}, namespace: namespace, vault: s.vault})
	}
	return s, nil
}

// signal returns a function that puts a value into c, unless one is waiting there already.
func signal(c chan struct{}) func() {
	return func() {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// Run follows changes until ctx ends. The last policy stays in force.
func (s *Source) Run(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	var following sync.WaitGroup
	defer func() {
		stop()
		following.Wait()
		s.vault.close()
		s.api.redial()
	}()
	for i, g := range s.secretWatches {
		follow := func(resource string, f func(context.Context, lister, watcher)) {
			list, begin := s.api.of(resource, g.namespace)
			following.Go(func() { f(ctx, list, begin) })
		}
		follow(projects, s.projects[i].follow)
		follow(credentials, s.credentials[i].follow)
		follow(endpoints, s.endpoints[i].follow)
		follow(secrets, g.follow)
	}
	following.Go(func() {
		s.alive.probe(ctx, func(ctx context.Context) error { return s.api.alive(ctx, s.secretWatches[0].namespace) }, s.api.redial)
	})
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.news:
			s.report.trouble(ctx, s.trouble())
		case <-s.changes:
			if sleep(ctx, max(gather, time.Until(s.rested))) {
				s.renew(ctx)
			}
		}
	}
}

// renew builds and applies a policy from the objects. It waits for their Secrets, but at most for secretsWait once a policy
// is in force.
func (s *Source) renew(ctx context.Context) {
	late := time.NewTimer(secretsWait)
	defer late.Stop()
	waited := false
	for s.filled() {
		seen := s.collect()
		s.vault.want(ctx, seen.wanted)
		settled, answered := s.vault.settled()
		if answered && (settled || waited) || waited && s.loaded.Load() {
			s.apply(ctx, seen)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-late.C:
			waited = true
		case <-s.changes:
		case <-s.rests:
		case <-s.news:
			s.report.trouble(ctx, s.trouble())
		}
	}
}

// links returns the links of the probe and of all watches.
func (s *Source) links() []*link {
	list := []*link{s.alive}
	for i := range s.secretWatches {
		list = append(list, &s.projects[i].link, &s.credentials[i].link, &s.endpoints[i].link, &s.secretWatches[i].link)
	}
	return list
}

// filled reports whether all objects of all kinds were read once.
func (s *Source) filled() bool {
	for _, l := range s.links() {
		if filled, _ := l.state(); !filled {
			return false
		}
	}
	return true
}

// trouble returns the reason why the policy in force may be out of date, or nil if none is known.
func (s *Source) trouble() error {
	for _, l := range s.links() {
		if _, err := l.state(); err != nil {
			return err
		}
	}
	return s.vault.failing()
}

var errLoading = errors.New("the first policy is being loaded")

// Healthy returns nil if a policy is in force and up to date, and otherwise the reason. Faulty objects do not make it
// unhealthy.
func (s *Source) Healthy() error {
	if err := s.trouble(); err != nil {
		return err
	}
	return s.Loaded()
}

// Loaded returns nil after the first policy is in force, and until then the reason why it is not.
func (s *Source) Loaded() error {
	if s.loaded.Load() {
		return nil
	}
	if err := s.trouble(); err != nil {
		return err
	}
	return errLoading
}
