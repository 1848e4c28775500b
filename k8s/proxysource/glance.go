package proxysource

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// version tells one state of an object from another.
type version struct {
	uid      types.UID
	revision string
}

// glance follows the metadata of Secrets in one namespace or in all, and tells a vault which of them have changed. It
// keeps nothing itself. It is a cache.ReflectorStore.
type glance struct {
	link

	ctx       context.Context // of follow, in which what has changed is read
	namespace string
	vault     *vault
}

// follow tells the vault of changes until ctx ends.
func (g *glance) follow(ctx context.Context, list lister, begin watcher) {
	g.ctx = ctx
	g.link.follow(ctx, list, begin, g)
}

// Transformer drops what must not stay in memory: kubectl apply leaves the whole object in an annotation, and with it
// the values of a Secret.
func (g *glance) Transformer() cache.TransformFunc {
	return func(o any) (any, error) {
		object, err := meta.Accessor(o)
		if err != nil {
			return o, nil // not an object: nothing to drop
		}
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
		}}, nil
	}
}

// Add tells of a Secret.
func (g *glance) Add(o any) error { return g.Update(o) }

// Update tells of a Secret.
func (g *glance) Update(o any) error {
	object, err := meta.Accessor(o)
	if err != nil {
		return err
	}
	g.vault.told(g.ctx, types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}, object.GetUID(), object.GetResourceVersion())
	return nil
}

// Delete tells that a Secret is gone.
func (g *glance) Delete(o any) error {
	object, err := meta.Accessor(o)
	if err != nil {
		return err
	}
	g.vault.told(g.ctx, types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}, object.GetUID(), "")
	return nil
}

// Replace tells of all Secrets that there are.
func (g *glance) Replace(all []any, _ string) error {
	versions := make(map[types.NamespacedName]version, len(all))
	for _, o := range all {
		object, err := meta.Accessor(o)
		if err != nil {
			return err
		}
		versions[types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}] = version{object.GetUID(), object.GetResourceVersion()}
	}
	g.vault.listed(g.ctx, g.namespace, versions)
	g.fill()
	g.vault.change()
	return nil
}

// Resync does nothing: nothing is lost here.
func (g *glance) Resync() error { return nil }
