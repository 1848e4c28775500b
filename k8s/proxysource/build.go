package proxysource

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lectern-dev/lectern/k8s/manifests"
	"github.com/lectern-dev/lectern/proxy/manifest"
)

// seen holds the objects of the API server at one moment.
type seen struct {
	objects    manifest.Objects                  // but the Secrets; the older ones first
	wanted     map[types.NamespacedName][]string // the keys of Secrets that Credentials refer to
	unreadable []*manifest.Fault
}

// collect gathers the objects of all mirrors.
func (s *Source) collect() seen {
	var all seen
	all.objects.RequireProject = s.requireProject
	all.objects.Projects = gathered(s.projects, "Project", true, &all.unreadable)
	all.objects.Credentials = gathered(s.credentials, "Credential", false, &all.unreadable)
	all.objects.Endpoints = gathered(s.endpoints, "ProxyEndpoint", false, &all.unreadable)
	all.wanted = map[types.NamespacedName][]string{}
	for i := range all.objects.Credentials {
		key, name := reference(&all.objects.Credentials[i])
		if !slices.Contains(all.wanted[key], name) {
			all.wanted[key] = append(all.wanted[key], name)
		}
	}
	return all
}

// reference returns the Secret that a Credential refers to, and the key within.
func reference(c *manifest.Credential) (types.NamespacedName, string) {
	ref := c.Spec.ValueFrom.SecretKeyRef
	return types.NamespacedName{Namespace: c.Metadata.Namespace, Name: ref.Name}, ref.Key
}

// gathered returns the objects of mirrors by standing and age, without those in conflict. It adds a fault for each
// object that cannot be read, and returns such objects only if all is true.
func gathered[S any](from []*mirror[S], kind string, all bool, unreadable *[]*manifest.Fault) []S {
	var objects []object[S]
	for _, m := range from {
		objects = append(objects, m.all()...)
	}
	slices.SortFunc(objects, func(a, b object[S]) int {
		return cmp.Or(cmp.Compare(a.standing, b.standing), manifests.Older(&a.meta, &b.meta))
	})
	specs := make([]S, 0, len(objects))
	for i := range objects {
		o := &objects[i]
		if o.standing == manifests.Conflicting {
			continue
		}
		if o.err != nil {
			*unreadable = append(*unreadable, &manifest.Fault{
				Object: kind + "/" + o.meta.Name, Of: manifest.ObjectKey{Kind: kind, Namespace: o.meta.Namespace, Name: o.meta.Name},
				Cause: manifest.Invalid, Reason: fmt.Sprintf("spec: cannot be read: %v", o.err),
			})
			if !all {
				continue
			}
		}
		specs = append(specs, o.spec)
	}
	return specs
}

// apply builds a policy from the objects, applies it, and reports the faults of objects.
func (s *Source) apply(ctx context.Context, all seen) {
	began := time.Now()
	o := all.objects
	var unknown map[types.NamespacedName]error
	o.Secrets, unknown = s.vault.copies()
	snapshot, faults, warnings := manifest.BuildEach(o)
	faults = append(all.unreadable, faults...)
	explainUnread(faults, o.Credentials, unknown)

	t := &tally{endpoints: len(snapshot.Endpoints()), credentials: snapshot.Credentials(), faulty: map[string]int{}}
	s.store.Replace(snapshot)
	s.loaded.Store(true)
	took := time.Since(began)
	s.rested = time.Now().Add(min(idleFor*took, idleAtMost))
	s.report.objects(ctx, t, faults, warnings)
	s.tally.Store(t)
	s.report.replaced(ctx, t, took)
}

// explainUnread corrects the faults of Credentials whose Secret is not read yet or cannot be read.
func explainUnread(faults []*manifest.Fault, credentials []manifest.Credential, unknown map[types.NamespacedName]error) {
	if len(unknown) == 0 {
		return
	}
	for _, f := range faults {
		if f.Cause != manifest.SecretMissing {
			continue
		}
		i := slices.IndexFunc(credentials, func(c manifest.Credential) bool {
			return c.Metadata.Namespace == f.Of.Namespace && c.Metadata.Name == f.Of.Name
		})
		if i < 0 {
			continue
		}
		key, _ := reference(&credentials[i])
		switch err, is := unknown[key]; {
		case is && err != nil:
			f.Reason = fmt.Sprintf("spec.valueFrom.secretKeyRef: the Secret %q cannot be read: %v", key.Name, err)
		case is:
			f.Reason = fmt.Sprintf("spec.valueFrom.secretKeyRef: the Secret %q is not read yet", key.Name)
		}
	}
}
