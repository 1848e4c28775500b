package proxysource

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// version identifies one state of an object.
type version struct {
	uid      types.UID
	revision string
}

// secretWatch follows the metadata of Secrets in one namespace or in all, and reports changes to a vault. It stores
// nothing itself. It is a cache.ReflectorStore.
type secretWatch struct {
	link

	ctx       context.Context // of follow; the vault reads changed Secrets in it
	namespace string
	vault     *vault
}

// follow reports changes to the vault until ctx ends.
func (g *secretWatch) follow(ctx context.Context, list lister, begin watcher) {
	g.ctx = ctx
	g.link.follow(ctx, list, begin, g)
}

// Transformer drops all metadata but the identity and the version. Values of a Secret must not stay in memory, and
// kubectl apply writes them to an annotation.
func (g *secretWatch) Transformer() cache.TransformFunc {
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

// Add reports a new Secret.
func (g *secretWatch) Add(o any) error { return g.Update(o) }

// Update reports a changed Secret.
func (g *secretWatch) Update(o any) error {
	object, err := meta.Accessor(o)
	if err != nil {
		return err
	}
	g.vault.secretChanged(g.ctx, types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}, object.GetUID(), object.GetResourceVersion())
	return nil
}

// Delete reports a deleted Secret.
func (g *secretWatch) Delete(o any) error {
	object, err := meta.Accessor(o)
	if err != nil {
		return err
	}
	g.vault.secretChanged(g.ctx, types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}, object.GetUID(), "")
	return nil
}

// Replace reports all Secrets that exist.
func (g *secretWatch) Replace(all []any, _ string) error {
	versions := make(map[types.NamespacedName]version, len(all))
	for _, o := range all {
		object, err := meta.Accessor(o)
		if err != nil {
			return err
		}
		versions[types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}] = version{object.GetUID(), object.GetResourceVersion()}
	}
	g.vault.secretsListed(g.ctx, g.namespace, versions)
	g.fill()
	g.vault.change()
	return nil
}

// Resync does nothing, as no change is lost.
func (g *secretWatch) Resync() error { return nil }
