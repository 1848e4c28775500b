package operator

import (
	"testing"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
)

// An operator that is uninstalled and installed again continues with the remaining objects. Their keys stay the same. No
// object waits for the operator: it revokes the keys of an object that was deleted meanwhile.
func TestReinstalled(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	redis := redistest.Start(t)
	keys := authtest.New(t, redis.URL)
	api := entries(t, redis, keys, nil)
	first := start(t, c, keyEnviron(keys), nil)
	kept, deleted := newKey("kept"), newKey("deleted")
	c.Create(t, kept, deleted)
	c.AwaitReady(t, kept, v1alpha1.ReasonIssued)
	c.AwaitReady(t, deleted, v1alpha1.ReasonIssued)
	keyOfKept, keyOfDeleted := keyIn(t, c, kept), keyIn(t, c, deleted)
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	c.Delete(t, deleted)
	c.Gone(t, deleted)

	start(t, c, keyEnviron(keys), nil)
	eventually.True(t, "the key of the object that was deleted is revoked", func() bool { return !reads(t, api, keyOfDeleted) })
	if got := keyIn(t, c, kept); got != keyOfKept || !reads(t, api, got) {
		t.Error("the object that stayed has another key, or one that does not work")
	}
}
