package kubernetes

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/manifests"
	"github.com/lectern-dev/lectern/proxy/manifest"
)

// seen holds the objects that were read from the cache, and a fault for each object that cannot be decoded.
type seen struct {
	manifest.Objects
	unreadable []*manifest.Fault
}

// collect reads all objects of the policy from the cache. It returns an error if the Secret with the Credentials'
// values is missing, or if the operator has not filled the Secret yet.
func (s *Source) collect(ctx context.Context) (seen, error) {
	all := seen{Objects: manifest.Objects{RequireProject: s.requireProject}}
	var values corev1.Secret
	err := s.cache.Get(ctx, s.values, &values)
	switch {
	case apierrors.IsNotFound(err):
		return all, fmt.Errorf("there is no Secret %s (PROXY_VALUES): the chart makes it, and the operator fills it", s.values)
	case err != nil:
		return all, fmt.Errorf("read the Secret %s: %w", s.values, err)
	case values.Labels[v1alpha1.LabelManaged] != "true":
		return all, fmt.Errorf("the Secret %s is empty: the operator fills it, and has not yet", s.values)
	}
	if all.Projects, err = collected(ctx, s, &all, "Project", readProject); err != nil {
		return all, err
	}
	secrets, former := secrets{}, formersIn(values.Data)
	read := func(u *unstructured.Unstructured) (manifest.Credential, error) {
		c, err := readCredential(u)
		c.Former = former.of[u.GetUID()]
		if name, _ := manifests.ValueName(u, c.Spec.ValueFrom.SecretKeyRef); err == nil && values.Data[name] != nil {
			secrets.add(c, values.Data[name])
		}
		return c, err
	}
	if all.Credentials, err = collected(ctx, s, &all, "Credential", read); err != nil {
		return all, err
	}
	for name, data := range secrets {
		all.Secrets = append(all.Secrets, manifest.Secret{Metadata: manifest.Metadata{Namespace: name.Namespace, Name: name.Name}, Data: data})
	}
	all.Endpoints, err = collected(ctx, s, &all, "ProxyEndpoint", func(u *unstructured.Unstructured) (manifest.ProxyEndpoint, error) {
		e, err := readEndpoint(u)
		e.Former = former.at[u.GetNamespace()+"/"+u.GetName()]
		return e, err
	})
	return all, err
}

// secrets holds the values that Credentials name: by namespace and name of the Secret, and then by key.
type secrets map[types.NamespacedName]map[string][]byte

func (s secrets) add(c manifest.Credential, value []byte) {
	ref := c.Spec.ValueFrom.SecretKeyRef
	name := types.NamespacedName{Namespace: c.Metadata.Namespace, Name: ref.Name}
	if s[name] == nil {
		s[name] = map[string][]byte{}
	}
	s[name][ref.Key] = value
}

// collected returns the objects of a kind by standing and age. It leaves out Projects in conflict, and objects of other
// kinds that are being deleted or cannot be decoded. For each object that cannot be decoded, it adds a fault to all.
func collected[S any](ctx context.Context, s *Source, all *seen, kind string, read func(*unstructured.Unstructured) (S, error)) ([]S, error) {
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(kind + "List"))
	if err := s.cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list objects of %s: %w", kind, err)
	}
	standing := map[types.UID]manifests.Standing{}
	if kind == "Project" {
		for i := range list.Items {
			standing[list.Items[i].GetUID()] = standingOf(&list.Items[i])
		}
	}
	slices.SortFunc(list.Items, func(a, b unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(standing[a.GetUID()], standing[b.GetUID()]), manifests.Older(&a, &b))
	})
	specs := make([]S, 0, len(list.Items))
	for i := range list.Items {
		o := &list.Items[i]
		// A Project that is being deleted still decides which namespaces may use the project.
		if standing[o.GetUID()] == manifests.Conflicting || o.GetDeletionTimestamp() != nil && kind != "Project" {
			continue
		}
		spec, err := read(o)
		if err != nil {
			all.unreadable = append(all.unreadable, &manifest.Fault{
				Object: kind + "/" + o.GetName(), Of: manifest.ObjectKey{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()},
				Cause: manifest.Invalid, Reason: fmt.Sprintf("spec: cannot be read: %v", err),
			})
			if kind != "Project" {
				continue
			}
		}
		specs = append(specs, spec)
	}
	return specs, nil
}

// apply builds a policy from the objects and puts it in force. It reports the faults of objects in the log and in
// metrics.
func (s *Source) apply(ctx context.Context, all seen) {
	began := time.Now()
	snapshot, faults, warnings := manifest.BuildEach(all.Objects)
	for _, f := range faults {
		if f.Cause == manifest.SecretMissing || f.Cause == manifest.SecretKeyMissing {
			f.Reason = "spec.valueFrom.secretKeyRef: the operator has given no value; the status of the object says why"
		}
	}
	faults = append(all.unreadable, faults...)

	t := &tally{endpoints: len(snapshot.Endpoints()), credentials: snapshot.Credentials(), faulty: map[string]int{}}
	s.store.Replace(snapshot)
	s.loaded.Store(true)
	took := time.Since(began)
	s.rested = time.Now().Add(min(idleFor*took, idleAtMost))
	s.report.objects(ctx, t, faults, warnings)
	s.tally.Store(t)
	s.report.replaced(ctx, t, took)
}
