package operator

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/needs"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// TestLongScale has an operator and a proxy over many objects. All become ready, ten seconds of rest see no request that writes,
// and memory stays within 128 MiB and 64 KiB for each object. LECTERN_SCALE is the number of objects; the log has the figures.
func TestLongScale(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	each := 125
	if text := os.Getenv("LECTERN_SCALE"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		each = n / 4 // of each kind
	}
	c := kubetest.Start(t)
	keys := authtest.New(t, redistest.Start(t).URL)
	region, _ := startRegion(t)
	environ := keyEnviron(keys)
	maps.Copy(environ, withRegion(region))
	valuesFor(t, c, environ)
	binary, file := servicetest.Build(t, "../cmd/operator"), kubeconfig(t, c.Config())

	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := worker; i < each; i += 8 {
				name := fmt.Sprintf("o-%d", i)
				id := fmt.Sprintf("cred_%d", i)
				k := newKey(name)
				k.Spec.ProjectID = "pr_" + name
				for _, o := range []client.Object{
					newProject(named(name), "pr_"+name), k,
					newSecret(named("value-"+name), map[string]string{"token": "value-of-" + name}),
					newCredential(named(name), "pr_"+name, id, "value-"+name), newEndpoint(named(name), "pr_"+name, id),
				} {
					o.SetNamespace(c.Namespace)
					if err := c.Client.Create(context.Background(), o); err != nil {
						t.Errorf("create %T %s: %v", o, o.GetName(), err)
						return
					}
				}
			}
		})
	}
	wg.Wait()

	start := time.Now()
	p := launch(t, binary, file, c, environ)
	lists := []client.ObjectList{&v1alpha1.ProjectList{}, &v1alpha1.APIKeyList{}, &v1alpha1.CredentialList{}, &v1alpha1.ProxyEndpointList{}}
	// versions are those of all objects, and how many are ready.
	versions := func() (all map[string]string, ready int) {
		all = map[string]string{}
		for _, list := range lists {
			if err := c.Client.List(context.Background(), list, inNamespace(c.Namespace)); err != nil {
				t.Fatal(err)
			}
			for _, o := range items(list) {
				all[fmt.Sprintf("%T %s", o, o.GetName())] = o.GetResourceVersion()
				if r := kubetest.Ready(o); r != nil && r.Status == metav1.ConditionTrue {
					ready++
				}
			}
		}
		return all, ready
	}
	// The tests look seldom, because a list of all objects keeps the API server busy.
	const pause = 500 * time.Millisecond
	eventually.Succeeds(t, "all objects are ready", func() error {
		if _, ready := versions(); ready < 4*each {
			time.Sleep(pause)
			return fmt.Errorf("%d of %d are ready\n%s", ready, 4*each, p.log.Tail(4000))
		}
		return nil
	})
	took := time.Since(start)
	toReady := p.asked(t)

	// Requests in flight, mostly events, do not belong to the steady state.
	last, since := p.asked(t), time.Now()
	eventually.True(t, "the operator comes to rest", func() bool {
		time.Sleep(pause)
		if now := p.asked(t); !maps.Equal(now, last) {
			last, since = now, time.Now()
		}
		return time.Since(since) >= 5*time.Second
	})
	// The proxy, over the same objects and their Secrets.
	environ["LISTEN_PUBLIC"], environ["AUTH_DATABASE_URL"] = "127.0.0.1:0", keys.Config.DatabaseURL.Reveal()
	start = time.Now()
	proxy := launch(t, servicetest.BuildOf(t, "../../proxy/kubernetes", "./cmd/proxy"), file, c, environ)
	eventually.True(t, "the proxy is ready", func() bool { return ready200(proxy.URL) })
	proxyReady := time.Since(start)
	before, _ := versions()
	time.Sleep(10 * time.Second) // a sleep, because the requests of a time without changes are measured
	asked := p.asked(t)
	after, ready := versions()
	for method, n := range asked {
		asked[method] = n - last[method]
		if method != "GET" && asked[method] > 0 {
			t.Errorf("%d requests of %s at rest", asked[method], method)
		}
	}
	if !maps.Equal(before, after) || ready != 4*each {
		t.Errorf("objects changed at rest, or are not ready any more: %d", ready)
	}
	now, peak := p.memory(t)
	if limit := int64(128<<20 + 4*each<<16); peak > limit {
		t.Errorf("%d MiB at the peak; want at most %d", peak>>20, limit>>20)
	}
	proxyNow, proxyPeak := proxy.memory(t)
	t.Logf("%d objects ready %.1f s after the operator's start, with %v requests; in ten seconds of rest %v; memory %d MiB, %d MiB at the peak",
		4*each, took.Seconds(), toReady, asked, now>>20, peak>>20)
	t.Logf("the proxy ready %.1f s after its start; memory %d MiB, %d MiB at the peak", proxyReady.Seconds(), proxyNow>>20, proxyPeak>>20)
}

// items are the objects of a list.
func items(list client.ObjectList) (all []client.Object) {
	switch l := list.(type) {
	case *v1alpha1.ProjectList:
		for i := range l.Items {
			all = append(all, &l.Items[i])
		}
	case *v1alpha1.APIKeyList:
		for i := range l.Items {
			all = append(all, &l.Items[i])
		}
	case *v1alpha1.CredentialList:
		for i := range l.Items {
			all = append(all, &l.Items[i])
		}
	case *v1alpha1.ProxyEndpointList:
		for i := range l.Items {
			all = append(all, &l.Items[i])
		}
	}
	return all
}
