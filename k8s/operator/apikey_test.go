package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
	entriesapp "github.com/lectern-dev/lectern/services/entries/app"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/postgres/migrate"
	"github.com/lectern-dev/lectern/shared/service"
	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/issuertest"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// keyEnviron returns the environment of an operator that manages APIKeys.
func keyEnviron(keys *authtest.Keys) map[string]string {
	return map[string]string{
		"AUTH_ADMIN_DATABASE_URL": keys.Config.AdminURL.Reveal(),
		"REDIS_URL":               keys.Config.Redis.URL.Reveal(),
		"PUBLIC_URL":              "https://api.example.com",
	}
}

func newKey(name string, change ...func(*v1alpha1.APIKey)) *v1alpha1.APIKey {
	k := &v1alpha1.APIKey{ObjectMeta: named(name), Spec: v1alpha1.APIKeySpec{
		ProjectID: "pr_1",
		Rotation:  &v1alpha1.APIKeyRotation{Every: metav1.Duration{Duration: time.Hour}, Overlap: metav1.Duration{Duration: 3 * time.Second}},
	}}
	for _, c := range change {
		c(k)
	}
	return k
}

func annotated(name, value string) func(*v1alpha1.APIKey) {
	return func(k *v1alpha1.APIKey) { metav1.SetMetaDataAnnotation(&k.ObjectMeta, name, value) }
}

// keyIn returns the key in an APIKey's Secret, or "" if there is none.
func keyIn(t testing.TB, c *kubetest.Cluster, k *v1alpha1.APIKey) string {
	t.Helper()
	var s corev1.Secret
	err := c.Client.Get(context.Background(), client.ObjectKeyFromObject(k), &s)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return string(s.Data["api-key"])
}

// anotherKey waits until the Secret has another key than before, and returns it.
func anotherKey(t testing.TB, c *kubetest.Cluster, k *v1alpha1.APIKey, before string) (key string) {
	t.Helper()
	eventually.True(t, "the Secret of "+k.Name+" holds another key", func() bool {
		key = keyIn(t, c, k)
		return key != "" && key != before
	})
	return key
}

// entries runs the entries service with one entry of the project pr_1, and with the settings in environ.
func entries(t testing.TB, redis *redistest.Server, keys *authtest.Keys, environ map[string]string) *servicetest.Service {
	t.Helper()
	// The service brings its schema with it.
	empty := migrate.Schema{Name: "readings", Migrations: fstest.MapFS{"0001_nothing.sql": {Data: []byte("-- +goose Up\nSELECT 1;\n")}}}
	b := &servicetest.Backing{DB: pgtest.Database(t, empty), Redis: redis, Keys: keys}
	all := map[string]string{"MIGRATE_ON_START": "true"}
	maps.Copy(all, environ)
	s := servicetest.Start(t, b, entriesapp.Run, func(c *entriesapp.Config) *service.Config { return &c.Config }, all)
	s.MustIngest(t, "entries", map[string]any{
		"entry_id": "en_1", "group_id": "gr_1", "project_id": "pr_1", "embeddable_id": "emb_1", "contact_id": "co_1",
		"created_at": "2022-01-01T00:00:00Z", "updated_at": "2022-01-01T00:00:00Z", "entry_data": "{}",
	})
	return s
}

// reads reports whether a key can read the entry.
func reads(t testing.TB, api *servicetest.Service, key string) bool {
	t.Helper()
	a := api.Get(t, key, "/projects/pr_1/entries")
	switch {
	case a.Status == http.StatusOK && bytes.Contains(a.Body, []byte("en_1")):
		return true
	case a.Status == http.StatusUnauthorized:
		return false
	}
	t.Fatalf("%d %s", a.Status, a.Body)
	return false
}

// A key of an APIKey reads entries. After a rotation both keys read during the overlap, then only the new one. After
// the deletion neither does.
func TestAPIKeyLife(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	redis := redistest.Start(t)
	keys := authtest.New(t, redis.URL)
	api := entries(t, redis, keys, nil)
	start(t, c, keyEnviron(keys), nil)

	k := newKey("reports")
	c.Create(t, k)
	c.AwaitReady(t, k, v1alpha1.ReasonIssued)
	first := keyIn(t, c, k)
	if !reads(t, api, first) {
		t.Fatal("the minted key does not read")
	}
	kubetest.Change(t, c, k, annotated(v1alpha1.AnnotationRotate, "1"))
	second := anotherKey(t, c, k, first)
	var ends time.Time
	eventually.True(t, "the old key has an end", func() bool {
		all, err := keys.List(t.Context(), "pr_1")
		if err != nil || len(all) != 2 {
			t.Fatalf("%+v, %v", all, err)
		}
		ends = all[0].ExpiresAt
		return !ends.IsZero()
	})
	for both := true; both; {
		began := time.Now()
		both = reads(t, api, first)
		if both && began.After(ends.Add(time.Second)) || !both && time.Now().Before(ends) {
			t.Fatalf("the old key reads: %v, in a request that began %v after its end", both, began.Sub(ends))
		}
		if !reads(t, api, second) {
			t.Fatal("the new key does not read")
		}
	}
	eventually.True(t, "the status tells of the end of the overlap", func() bool {
		c.AwaitReady(t, k, v1alpha1.ReasonIssued)
		return k.Status.PreviousKeyIDs == nil
	})

	// In the database, keys of the operator look like all other keys.
	all, err := keys.List(t.Context(), "pr_1")
	if err != nil || len(all) != 2 || all[1].ID != k.Status.KeyID || all[1].Owner.Name != "APIKey "+c.Namespace+"/reports" {
		t.Errorf("%+v, %v", all, err)
	}
	kubetest.Change(t, c, k, annotated(v1alpha1.AnnotationRotate, "2"))
	third := anotherKey(t, c, k, second)
	if !reads(t, api, second) || !reads(t, api, third) {
		t.Error("the key of before, or the new one, does not read")
	}

	c.Delete(t, k)
	deleted := time.Now()
	for _, key := range []string{third, second} {
		eventually.True(t, "the key of a deleted object does not read", func() bool { return !reads(t, api, key) })
	}
	t.Logf("no key reads %v after the deletion", time.Since(deleted))
	c.Gone(t, k)
}

// A token of a ServiceAccount reads entries while an APIKey grants its identity, and no Secret is written. The tokens of a
// deleted account do not read, also after a new account has its name.
func TestAPIKeyIdentity(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	redis := redistest.Start(t)
	keys := authtest.New(t, redis.URL)
	issuer := issuertest.Start(t)
	api := entries(t, redis, keys, map[string]string{"TOKEN_ISSUERS": issuer.Setting()})
	environ := keyEnviron(keys)
	environ["CLUSTER_ISSUER"] = issuer.URL
	start(t, c, environ, nil)
	status := func(namespace string, uid types.UID) int {
		token := issuer.Token("system:serviceaccount:"+namespace+":reports", map[string]any{
			"kubernetes.io": map[string]any{"namespace": namespace, "serviceaccount": map[string]any{"name": "reports", "uid": uid}},
		})
		return api.Do(t, servicetest.Request{Path: "/projects/pr_1/entries", Headers: map[string]string{"Authorization": "Bearer " + token}}).Status
	}
	k := newKey("reports", func(k *v1alpha1.APIKey) {
		k.Spec.Rotation = nil
		k.Spec.Identity = &v1alpha1.APIKeyIdentity{ServiceAccountRef: &v1alpha1.APIKeyServiceAccountRef{Name: "reports"}}
	})
	c.Create(t, k)
	c.AwaitReady(t, k, v1alpha1.ReasonServiceAccountNotFound)
	var before types.UID
	for _, which := range []string{"the account", "a new account"} {
		account := &corev1.ServiceAccount{ObjectMeta: in(c.Namespace, "reports")}
		c.Create(t, account)
		eventually.True(t, which+" reads", func() bool { return status(c.Namespace, account.UID) == http.StatusOK })
		if got := status(c.Namespace, before); got != http.StatusUnauthorized {
			t.Errorf("beside %s, a token of another uid gets %d", which, got)
		}
		if before = account.UID; which == "the account" {
			c.Delete(t, account)
			deleted := time.Now()
			eventually.True(t, "the deleted account does not read", func() bool { return status(c.Namespace, before) == http.StatusUnauthorized })
			t.Logf("the deleted account does not read after %v", time.Since(deleted))
			c.AwaitReady(t, k, v1alpha1.ReasonServiceAccountNotFound)
		}
	}
	if got := status("shop", before); got != http.StatusUnauthorized {
		t.Errorf("the account of another namespace gets %d", got)
	}
	if key := keyIn(t, c, k); key != "" {
		t.Error("a Secret was written")
	}
	c.Delete(t, k)
	c.Gone(t, k)
	eventually.True(t, "the account of a deleted object does not read", func() bool { return status(c.Namespace, before) == http.StatusUnauthorized })
}

// No log, event, condition, metric, trace or annotation contains a key.
func TestNoKeyIsTold(t *testing.T) {
	var (
		mu    sync.Mutex
		spans bytes.Buffer
	)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.Copy(&spans, r.Body)
	}))
	t.Cleanup(collector.Close)
	// The exporter reads these from the process's environment.
	t.Setenv("OTEL_TRACES_EXPORTER", "otlp")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	c := kubetest.Start(t)
	redis := redistest.Start(t)
	keys := authtest.New(t, redis.URL)
	environ := keyEnviron(keys)
	environ["OTEL_TRACES_EXPORTER"], environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = "otlp", collector.URL
	o := start(t, c, environ, nil)

	k := newKey("reports", annotated(corev1.LastAppliedConfigAnnotation, `{"kind":"APIKey"}`))
	c.Create(t, k)
	c.AwaitReady(t, k, v1alpha1.ReasonIssued)
	secret := &corev1.Secret{ObjectMeta: in(c.Namespace, "reports")}
	delivered := []string{keyIn(t, c, k)}
	kubetest.Change(t, c, k, annotated(v1alpha1.AnnotationRotate, "1"))
	delivered = append(delivered, anotherKey(t, c, k, delivered[0]))
	c.Delete(t, secret)
	delivered = append(delivered, anotherKey(t, c, k, delivered[1]))
	// Failures are reported as events.
	kubetest.Change(t, c, secret, func(s *corev1.Secret) { yes := true; s.Immutable = &yes })
	kubetest.Change(t, c, k, annotated(v1alpha1.AnnotationRotate, "2"))
	c.AwaitEvent(t, k, "Warning SecretRefused")
	redis.Kill()
	eventually.True(t, "the status names the key that is good, and it is revoked", func() bool {
		if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(k), k); err != nil {
			t.Fatal(err)
		}
		_, err := keys.Revoke(t.Context(), "pr_1", k.Status.KeyID)
		return err == nil
	})
	c.Delete(t, secret)
	delivered = append(delivered, anotherKey(t, c, k, delivered[2]))
	blocked := newKey("blocked")
	c.Create(t, newSecret(named("blocked"), map[string]string{"api-key": delivered[3]}), blocked)
	c.AwaitReady(t, blocked, v1alpha1.ReasonSecretNotOwned)

	metrics := metricsOf(t, o.URL)
	if !strings.Contains(metrics, `lectern_apikey_minted_total{cause="asked"`) {
		t.Errorf("no metric tells of a rotation that was asked for:\n%.3000s", metrics)
	}
	_, ready := get(t, o.URL+"/readyz")
	asJSON := func(v any) string {
		t.Helper()
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	var (
		objects v1alpha1.APIKeyList
		events  corev1.EventList
		newer   eventsv1.EventList
		secrets corev1.SecretList
	)
	for _, list := range []client.ObjectList{&objects, &events, &newer, &secrets} {
		if err := c.Client.List(t.Context(), list, inNamespace(c.Namespace)); err != nil {
			t.Fatal(err)
		}
	}
	var metadata []metav1.ObjectMeta
	for _, s := range secrets.Items {
		metadata = append(metadata, s.ObjectMeta)
	}
	if err := o.Stop(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	places := map[string]string{
		"the log": o.log.String(), "metrics": metrics, "readiness": ready, "APIKeys": asJSON(objects), "events": asJSON(events),
		"newer events": asJSON(newer), "metadata of Secrets": asJSON(metadata), "traces": spans.String(),
	}
	for place, text := range places {
		if len(text) < 50 {
			t.Errorf("%s: %q: there is nothing to look at", place, text)
		}
		for i, key := range delivered {
			if _, err := auth.ParseKey(key); err != nil {
				t.Fatalf("key %d: %v", i, err)
			}
			// Neither whole nor in a form that one can make it of.
			for _, form := range []string{key, key[3:35], auth.HashKey(key).String()} {
				if strings.Contains(text, form) {
					t.Errorf("key %d is in %s", i, place)
				}
			}
		}
	}
}

// For a project of another namespace, its Project grants keys and takes them back.
func TestAPIKeyGrant(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	theirs, elsewhere := c.NewNamespace(t), c.NewNamespace(t)
	keys := authtest.New(t, redistest.Start(t).URL)
	environ := keyEnviron(keys)
	environ["WATCH_NAMESPACES"] = c.Namespace + "," + theirs + "," + elsewhere
	start(t, c, environ, nil)
	k := newKey("reports", func(k *v1alpha1.APIKey) { k.Spec.ProjectID = "pr_granted" })
	c.Create(t, k)
	c.AwaitReady(t, k, v1alpha1.ReasonNotDeclared)
	declared := newProject(in(theirs, "one"), "pr_granted")
	c.Create(t, declared)
	c.AwaitReady(t, k, v1alpha1.ReasonNotGranted)
	working := func() (n int) {
		all, err := keys.List(t.Context(), "pr_granted")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range all {
			if r.Active(time.Now()) {
				n++
			}
		}
		return n
	}
	if n := working(); n != 0 {
		t.Errorf("%d keys work that are not granted", n)
	}
	kubetest.Change(t, c, declared, func(p *v1alpha1.Project) { p.Spec.AllowedNamespaces = []string{c.Namespace} })
	c.AwaitReady(t, k, v1alpha1.ReasonIssued)
	if n := working(); n != 1 {
		t.Errorf("%d keys work, want 1", n)
	}
	// The Project is another namespace's alone, and goes: the key that waits for it is not issued.
	waiting := newKey("waiting", func(k *v1alpha1.APIKey) { k.Namespace, k.Spec.ProjectID = elsewhere, "pr_granted" })
	c.Create(t, waiting)
	c.AwaitReady(t, waiting, v1alpha1.ReasonNotGranted)
	c.Delete(t, declared)
	c.Gone(t, declared)
	late := newKey("late", func(k *v1alpha1.APIKey) { k.Spec.ProjectID = "pr_granted" })
	c.Create(t, late)
	c.AwaitReady(t, late, v1alpha1.ReasonNotDeclared)
	c.AwaitReady(t, waiting, v1alpha1.ReasonNotDeclared)
	eventually.True(t, "it is said that nothing new is issued", func() bool {
		return strings.Contains(c.AwaitReady(t, k, v1alpha1.ReasonIssued).Message, "issues no other key")
	})
	if n := working(); n != 1 {
		t.Errorf("%d keys work, want the one that was issued", n)
	}
}
