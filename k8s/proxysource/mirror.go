package proxysource

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lectern-dev/lectern/k8s/manifests"
)

// mirror holds the objects of one kind as the API server has them, in one namespace or in all. It is a
// cache.ReflectorStore.
type mirror[S any] struct {
	link

	read func(*unstructured.Unstructured) (S, error)
	// keepDeleting keeps objects that are being deleted until their finalizers are done.
	keepDeleting bool
	// standing reads from an object's status whether it may declare its project. Nil: the status is ignored.
	standing func(*unstructured.Unstructured) manifests.Standing
	change   func()

	objects map[types.NamespacedName]object[S] // under the link's mu
}

// object is an object of the mirror.
type object[S any] struct {
	meta     metav1.ObjectMeta // identity, generation and creation time
	standing manifests.Standing
	spec     S
	err      error // why the object cannot be read
}

// newMirror returns an empty mirror. It calls change after objects have changed, and news as a link does.
func newMirror[S any](what string, read func(*unstructured.Unstructured) (S, error), change, news func()) *mirror[S] {
	return &mirror[S]{link: link{what: what, news: news}, read: read, change: change, objects: map[types.NamespacedName]object[S]{}}
}

// follow keeps the mirror up to date until ctx ends.
func (m *mirror[S]) follow(ctx context.Context, list lister, begin watcher) {
	m.link.follow(ctx, list, begin, m)
}

// all returns the objects.
func (m *mirror[S]) all() []object[S] {
	m.mu.Lock()
	defer m.mu.Unlock()
	objects := make([]object[S], 0, len(m.objects))
	for _, o := range m.objects {
		objects = append(objects, o)
	}
	return objects
}

// Add stores an object.
func (m *mirror[S]) Add(o any) error { return m.Update(o) }

// Update stores an object, unless the mirror has this state of it.
func (m *mirror[S]) Update(o any) error {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("%s: not an object: %T", m.what, o)
	}
	m.mu.Lock()
	changed := m.put(m.objects, u)
	m.mu.Unlock()
	if changed {
		m.change()
	}
	return nil
}

// Delete drops an object.
func (m *mirror[S]) Delete(o any) error {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("%s: not an object: %T", m.what, o)
	}
	key := types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}
	m.mu.Lock()
	_, known := m.objects[key]
	delete(m.objects, key)
	m.mu.Unlock()
	if known {
		m.change()
	}
	return nil
}

// Replace stores all objects and drops the others.
func (m *mirror[S]) Replace(all []any, _ string) error {
	next := make(map[types.NamespacedName]object[S], len(all))
	m.mu.Lock()
	changed := !m.filled
	for _, o := range all {
		u, ok := o.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		key := types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}
		if old, known := m.objects[key]; known {
			next[key] = old
		}
		changed = m.put(next, u) || changed
	}
	for key := range m.objects {
		_, stays := next[key]
		changed = changed || !stays
	}
	m.objects, m.filled = next, true
	m.mu.Unlock()
	if changed {
		m.change()
	}
	return nil
}

// Resync does nothing, as no change is lost.
func (m *mirror[S]) Resync() error { return nil }

// put stores an object in objects. It reports whether the generation or the standing has changed: other changes do
// not affect the policy.
func (m *mirror[S]) put(objects map[types.NamespacedName]object[S], u *unstructured.Unstructured) bool {
	key := types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}
	old, known := objects[key]
	leaving := u.GetDeletionTimestamp() != nil
	var standing manifests.Standing
	if m.standing != nil {
		standing = m.standing(u)
	}
	switch {
	case leaving && !m.keepDeleting:
		delete(objects, key)
		return known
	case known && old.meta.UID == u.GetUID() && old.meta.Generation == u.GetGeneration() && old.standing == standing:
		return false
	}
	next := object[S]{standing: standing, meta: metav1.ObjectMeta{
		Namespace: key.Namespace, Name: key.Name, UID: u.GetUID(), Generation: u.GetGeneration(), CreationTimestamp: u.GetCreationTimestamp(),
	}}
	next.spec, next.err = m.read(u)
	objects[key] = next
	return true
}
