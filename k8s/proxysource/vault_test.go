package proxysource

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// server is an API server with one Secret. It can delay or refuse reads.
type server struct {
	mu    sync.Mutex
	now   *corev1.Secret // nil: there is none
	err   error
	reads int
	hold  chan struct{} // reads end when it is closed; nil: at once
	began chan struct{} // a read that is held has begun
}

func (s *server) ask(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	s.mu.Lock()
	now, err, hold := s.now, s.err, s.hold
	s.reads++
	s.mu.Unlock()
	if hold != nil {
		s.began <- struct{}{}
		select {
		case <-hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if err == nil && now == nil {
		err = apierrors.NewNotFound(corev1.Resource(secrets), key.Name)
	}
	if err != nil {
		return nil, err
	}
	return now.DeepCopy(), nil
}

func (s *server) set(now *corev1.Secret, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now, s.err = now, err
}

func secretOf(uid, revision string, data map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "s", UID: types.UID(uid), ResourceVersion: revision}, Data: map[string][]byte{}}
	for k, v := range data {
		s.Data[k] = []byte(v)
	}
	return s
}

var key = types.NamespacedName{Namespace: "a", Name: "s"}

// fixture is a vault with its server, and the values of the vault as text.
type fixture struct {
	*testing.T
	server *server
	vault  *vault
	ctx    context.Context
}

func newFixture(t *testing.T) *fixture {
	s := &server{began: make(chan struct{}, 100)}
	nothing := func() {}
	f := &fixture{T: t, server: s, vault: newVault(s.ask, nothing, nothing, nothing)}
	ctx, stop := context.WithCancel(t.Context())
	f.ctx = ctx
	t.Cleanup(func() {
		stop()
		f.vault.close()
		if secrets, _ := f.vault.copies(); len(secrets) != 0 {
			t.Error("a closed vault holds values")
		}
	})
	return f
}

// want refers to keys and waits until they are read.
func (f *fixture) want(keys ...string) {
	f.Helper()
	f.vault.want(f.ctx, map[types.NamespacedName][]string{key: keys})
	f.await()
}

func (f *fixture) await() {
	f.Helper()
	f.until("the vault has settled", func() bool { settled, _ := f.vault.settled(); return settled })
}

func (f *fixture) until(what string, ok func() bool) {
	f.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			f.Fatalf("never: %s", what)
		}
	}
}

// holds compares the values in the vault.
func (f *fixture) holds(want map[string]string) {
	f.Helper()
	var got map[string]string
	secrets, _ := f.vault.copies()
	for _, s := range secrets {
		got = map[string]string{}
		for k, v := range s.Data {
			got[k] = string(v)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("the vault holds (-want +got):\n%s", diff)
	}
}

func TestVaultHoldsWhatIsReferredTo(t *testing.T) {
	f := newFixture(t)
	f.server.set(secretOf("1", "10", map[string]string{"x": "one", "y": "two", "z": "three"}), nil)
	f.want("x")
	f.holds(map[string]string{"x": "one"})
	f.want("x", "y")
	f.holds(map[string]string{"x": "one", "y": "two"})
	f.vault.mu.Lock()
	dropped := f.vault.secrets[key].data["x"]
	f.vault.mu.Unlock()
	f.want("y")
	f.holds(map[string]string{"y": "two"})
	if string(dropped) != "\x00\x00\x00" {
		t.Errorf("a value that was dropped is still %q", dropped)
	}
	reads := f.server.reads
	f.vault.secretChanged(f.ctx, key, "1", "10") // what is known already
	f.vault.secretChanged(f.ctx, types.NamespacedName{Namespace: "a", Name: "other"}, "9", "9")
	f.await()
	if f.server.reads != reads {
		t.Errorf("it was read again for nothing")
	}
	f.vault.want(f.ctx, nil)
	f.holds(nil)
}

func TestVaultFollowsChanges(t *testing.T) {
	f := newFixture(t)
	f.want("x")
	f.holds(nil)
	f.server.set(secretOf("1", "10", map[string]string{"x": "one"}), nil)
	f.vault.secretChanged(f.ctx, key, "1", "10")
	f.await()
	f.holds(map[string]string{"x": "one"})
	f.vault.secretChanged(f.ctx, key, "0", "") // an earlier one of that name
	f.holds(map[string]string{"x": "one"})
	f.server.set(secretOf("1", "11", nil), nil)
	f.vault.secretsListed(f.ctx, "", map[types.NamespacedName]version{key: {"1", "11"}})
	f.await()
	f.holds(map[string]string{})
	f.server.set(secretOf("1", "12", map[string]string{"x": "two"}), nil)
	f.vault.secretsListed(f.ctx, "a", map[types.NamespacedName]version{key: {"1", "12"}})
	f.await()
	f.vault.secretsListed(f.ctx, "b", nil) // says nothing of a
	f.holds(map[string]string{"x": "two"})
	f.server.set(nil, nil)
	f.vault.secretsListed(f.ctx, "", nil)
	f.await()
	f.holds(nil)
}

// A value that cannot be read now stays unchanged, and the vault retries. A first read without an answer of the server
// does not count as answered.
func TestVaultKeepsWhatItCanNotRead(t *testing.T) {
	for _, tt := range []struct {
		name     string
		in       error
		answered bool
	}{
		{"forbidden", apierrors.NewForbidden(corev1.Resource(secrets), "s", errors.New("no role")), true},
		{"a fault of the server", apierrors.NewInternalError(errors.New("no key to decrypt it")), true},
		{"overload", apierrors.NewTooManyRequests("later", 1), false},
		{"out of reach", errors.New("connection refused"), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			f.server.set(nil, tt.in)
			f.want("x")
			if _, answered := f.vault.settled(); answered != tt.answered {
				t.Errorf("answered is %v", answered)
			}
			if err := f.vault.failing(); !errors.Is(err, tt.in) {
				t.Errorf("failing says %v", err)
			}
			f.server.set(secretOf("1", "10", map[string]string{"x": "one"}), nil)
			f.until("it is read again", func() bool { return f.vault.failing() == nil })
			f.holds(map[string]string{"x": "one"})
			f.server.set(nil, tt.in)
			f.vault.secretChanged(f.ctx, key, "1", "11")
			f.until("it fails", func() bool { return f.vault.failing() != nil })
			f.holds(map[string]string{"x": "one"})
			f.vault.secretChanged(f.ctx, key, "1", "") // what is deleted needs no reading
			f.holds(nil)
		})
	}
}

// The vault reads a value again if the Secret changed during the read.
func TestVaultReadsAgainWhatChangedMeanwhile(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   func(f *fixture) // happens during the first read
		want map[string]string
	}{
		{"changed", func(f *fixture) {
			f.server.set(secretOf("1", "11", map[string]string{"x": "two"}), nil)
			f.vault.secretChanged(f.ctx, key, "1", "11")
		}, map[string]string{"x": "two"}},
		{"deleted", func(f *fixture) {
			f.server.set(nil, nil)
			f.vault.secretChanged(f.ctx, key, "1", "")
		}, nil},
		{"made anew", func(f *fixture) {
			f.server.set(secretOf("2", "12", map[string]string{"x": "three"}), nil)
			f.vault.secretChanged(f.ctx, key, "1", "")
			f.vault.secretChanged(f.ctx, key, "2", "12")
		}, map[string]string{"x": "three"}},
		{"not wanted any more", func(f *fixture) { f.vault.want(f.ctx, nil) }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			f.server.set(secretOf("1", "10", map[string]string{"x": "one"}), nil)
			f.server.hold = make(chan struct{})
			f.vault.want(f.ctx, map[types.NamespacedName][]string{key: {"x"}})
			<-f.server.began
			tt.in(f)
			f.server.mu.Lock()
			close(f.server.hold)
			f.server.hold = nil
			f.server.mu.Unlock()
			f.await()
			f.holds(tt.want)
		})
	}
}

// A malformed object does not fail a list, and a malformed Project still declares its project.
func TestMirrorOfUnreadableObjects(t *testing.T) {
	object := func(kind, name string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "lectern.dev/v1alpha1", "kind": kind,
			"metadata": map[string]any{"namespace": "a", "name": name, "uid": name, "generation": int64(1)}, "spec": spec,
		}}
	}
	changes := 0
	change := func() { changes++ }
	s := &Source{}
	endpoints := newMirror("proxyendpoints", readEndpoint, change, change)
	owners := newMirror("projects", readProject, change, change)
	s.endpoints, s.projects = append(s.endpoints, endpoints), append(s.projects, owners)
	good := map[string]any{"projectId": "pr_1", "environment": "prod"}
	if err := endpoints.Replace([]any{
		object("ProxyEndpoint", "good", good),
		object("ProxyEndpoint", "bad", map[string]any{"projectId": "pr_1", "timeouts": "soon"}),
		object("ProxyEndpoint", "worse", map[string]any{"projectId": []any{"pr_1"}}),
	}, "1"); err != nil {
		t.Fatal(err)
	}
	if err := owners.Replace([]any{object("Project", "one", map[string]any{"projectId": "pr_1", "allowedNamespaces": "*"})}, "1"); err != nil {
		t.Fatal(err)
	}
	seen := s.collect()
	var got []string
	for _, f := range seen.unreadable {
		got = append(got, f.Object)
	}
	if diff := cmp.Diff([]string{"Project/one", "ProxyEndpoint/bad", "ProxyEndpoint/worse"}, got); diff != "" {
		t.Errorf("unreadable (-want +got):\n%s", diff)
	}
	if o := seen.objects; len(o.Endpoints) != 1 || o.Endpoints[0].Metadata.Name != "good" ||
		len(o.Projects) != 1 || o.Projects[0].Spec.ProjectID != "pr_1" || len(o.Projects[0].Spec.AllowedNamespaces) != 0 {
		t.Errorf("read: %+v", o)
	}
	before := changes
	again := object("ProxyEndpoint", "good", good)
	if err := endpoints.Update(again); err != nil || changes != before {
		t.Errorf("the same object is a change: %v", err)
	}
	again.SetGeneration(2)
	if err := endpoints.Update(again); err != nil || changes != before+1 {
		t.Errorf("another generation is none: %v", err)
	}
	if err := endpoints.Delete(again); err != nil || changes != before+2 || len(endpoints.all()) != 2 {
		t.Errorf("a deleted object stays: %v", err)
	}
}
