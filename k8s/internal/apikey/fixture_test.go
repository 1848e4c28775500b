package apikey

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	nooptrace "go.opentelemetry.io/otel/trace/noop"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/internal/controller"
	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
	"github.com/lectern-dev/lectern/proxy/resource"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/testing/logtest"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

// clock is a clock that tests advance.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// eventRecorder is a recorder that collects events.
type eventRecorder struct {
	mu  sync.Mutex
	all []string
}

func (e *eventRecorder) Eventf(_, _ runtime.Object, kind, reason, _, note string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, kind+" "+reason+": "+fmt.Sprintf(note, args...))
}

func (e *eventRecorder) has(text string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.all, func(s string) bool { return strings.Contains(s, text) })
}

// bench is a controller without a manager, with a real API server and a real key database. It runs when a test calls
// it, on the test's clock.
type bench struct {
	*kubetest.Cluster
	t        testing.TB
	client   client.WithWatch
	declared *v1alpha1.Project // declares project
	admin    *pgkeys.Admin
	pool     *pgdb.Pool
	db       *pgxpool.Pool
	clock    *clock
	events   *eventRecorder
	log      *logtest.Buffer
	realm    string
	project  string
}

func setup(t testing.TB) *bench {
	t.Helper()
	b := &bench{
		Cluster: kubetest.Start(t), t: t, events: &eventRecorder{}, log: &logtest.Buffer{}, realm: "test/cluster",
		clock: &clock{at: time.Now().UTC().Truncate(time.Second)},
	}
	b.project = "pr_" + b.Namespace // b's clients see the Projects of all tests
	b.declared = &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Name: "declared"}, Spec: resource.ProjectSpec{ProjectID: b.project, Title: "One"}}
	b.Create(t, b.declared)
	var err error
	if b.client, err = client.NewWithWatch(b.Config(), client.Options{Scheme: b.Scheme}); err != nil {
		t.Fatal(err)
	}
	db := pgtest.Database(t, pgkeys.Schema())
	b.pool = pgtest.Pool(t, db.AdminURL, pgdb.Options{MaxConns: 8})
	b.admin = b.adminAt(b.clock)
	if b.db, err = pgxpool.New(t.Context(), db.OwnerURL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.db.Close)
	return b
}

// adminAt returns an administration of the keys with another clock.
func (b *bench) adminAt(c *clock) *pgkeys.Admin {
	return pgkeys.NewAdmin(b.pool, nil, c.now, slog.New(slog.DiscardHandler))
}

// fork returns a bench for t over the servers of b, with a realm, a clock, events and a log of its own.
func (b *bench) fork(t testing.TB, realm string) *bench {
	f := *b
	f.t, f.realm, f.log, f.events, f.clock = t, "test/"+realm, &logtest.Buffer{}, &eventRecorder{}, &clock{at: b.clock.now()}
	f.admin = b.adminAt(f.clock)
	return &f
}

// options returns a controller's options with the clients of b.
func (b *bench) options() Options {
	return Options{
		Common: controller.Common{
			Log:    slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			Tracer: nooptrace.NewTracerProvider(), Meter: noopmetric.NewMeterProvider(), Now: b.clock.now, Workers: 1,
		},
		Keys: b.admin, Accounts: accounts{b.client}, Realm: b.realm, Namespaces: []string{b.Namespace}, PublicURL: "https://api.example.com",
		SweepEvery: 5 * time.Minute, UseEvery: 6 * time.Hour, Settle: 10 * time.Second,
		Client: b.client, Reader: b.client,
	}
}

// accounts reads the uids of ServiceAccounts from the API server.
type accounts struct{ client client.Client }

func (a accounts) UID(ctx context.Context, name types.NamespacedName) (types.UID, error) {
	var account corev1.ServiceAccount
	err := a.client.Get(ctx, name, &account)
	return account.UID, client.IgnoreNotFound(err)
}

func (accounts) Source(func(context.Context, types.NamespacedName) []reconcile.Request) source.Source {
	return nil
}

// controller is one process of the operator.
func (b *bench) controller(o Options) *reconciler {
	b.t.Helper()
	m, err := newMeters(o.Meter)
	if err != nil {
		b.t.Fatal(err)
	}
	return &reconciler{Options: o, events: b.events, meters: m, sweep: func() {}, saw: func(types.UID) {}}
}

// sweeper is the sweeper of one process of the operator, which has seen all objects.
func (b *bench) sweeper(o Options) *sweeper {
	m, err := newMeters(o.Meter)
	if err != nil {
		b.t.Fatal(err)
	}
	s := &sweeper{Options: o, meters: m, nudged: make(chan struct{}, 1), look: make(chan event.GenericEvent, 100), seen: map[types.UID]bool{}}
	for _, one := range b.rows() {
		s.saw(types.UID(one.Owner.ID))
	}
	return s
}

// sweep sweeps once, and returns the names of the objects to reconcile.
func (b *bench) sweep(o Options) ([]string, error) {
	s := b.sweeper(o)
	err := s.once(context.Background())
	var names []string
	for len(s.look) > 0 {
		names = append(names, (<-s.look).Object.GetName())
	}
	return names, err
}

// newKey creates an APIKey as a user does.
func (b *bench) newKey(name string, change ...func(*v1alpha1.APIKey)) *v1alpha1.APIKey {
	b.t.Helper()
	k := &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.APIKeySpec{ProjectID: b.project}}
	for _, c := range change {
		c(k)
	}
	b.Create(b.t, k)
	return k
}

func every(d, overlap time.Duration) func(*v1alpha1.APIKey) {
	return func(k *v1alpha1.APIKey) {
		k.Spec.Rotation = &v1alpha1.APIKeyRotation{Every: metav1.Duration{Duration: d}, Overlap: metav1.Duration{Duration: overlap}}
	}
}

func annotate(name, value string) func(*v1alpha1.APIKey) {
	return func(k *v1alpha1.APIKey) {
		metav1.SetMetaDataAnnotation(&k.ObjectMeta, name, value)
	}
}

// once lets r reconcile the object once.
func once(r *reconciler, k *v1alpha1.APIKey) (reconcile.Result, error) {
	return r.Reconcile(context.Background(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(k)})
}

// settle lets r reconcile the object until it has nothing to do within a minute, and sweeps if the object is gone. The
// clock advances by the time that r waits for, and by a second for each fault.
func (b *bench) settle(r *reconciler, k *v1alpha1.APIKey) {
	b.t.Helper()
	var last error
	for range 40 {
		result, err := once(r, k)
		switch {
		case err != nil:
			last = err
			b.clock.advance(time.Second)
		case result.RequeueAfter > 0 && result.RequeueAfter < time.Minute:
			b.clock.advance(result.RequeueAfter)
		default:
			err := b.client.Get(b.t.Context(), client.ObjectKeyFromObject(k), k)
			if apierrors.IsNotFound(err) {
				_, err = b.sweep(r.Options)
			}
			if err != nil {
				b.t.Fatal(err)
			}
			return
		}
	}
	b.t.Fatalf("%s does not come to rest; last error: %v\n%s", k.Name, last, b.log)
}

// secretOf reads the object's Secret, or nil if there is none.
func (b *bench) secretOf(k *v1alpha1.APIKey) *corev1.Secret {
	b.t.Helper()
	var s corev1.Secret
	err := b.client.Get(context.Background(), types.NamespacedName{Namespace: k.Namespace, Name: secretNameOf(k)}, &s)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return &s
}

// held returns the key in the object's Secret.
func (b *bench) held(k *v1alpha1.APIKey) string {
	b.t.Helper()
	s := b.secretOf(k)
	if s == nil {
		b.t.Fatal("there is no Secret")
	}
	return string(s.Data["api-key"])
}

// works reports whether a key is accepted now.
func (b *bench) works(key string) bool {
	b.t.Helper()
	r, ok := b.row(auth.HashKey(key))
	return ok && r.Active(b.clock.now())
}

// row is a key in the database.
type row struct {
	auth.Record
	number    int64
	delivered bool
}

// rows returns all keys of the realm, of all objects, by number.
func (b *bench) rows() []row {
	b.t.Helper()
	all, err := b.db.Query(context.Background(), `SELECT key_id, owner_id, owner_number, delivered_at IS NOT NULL,
		coalesce(expires_at, '0001-01-01Z'), coalesce(revoked_at, '0001-01-01Z'), scopes FROM api_keys WHERE owner_realm = $1 ORDER BY owner_id, owner_number`, b.realm)
	if err != nil {
		b.t.Fatal(err)
	}
	list, err := pgx.CollectRows(all, func(r pgx.CollectableRow) (row, error) {
		var (
			one    row
			scopes []string
		)
		err := r.Scan(&one.ID, &one.Owner.ID, &one.number, &one.delivered, &one.ExpiresAt, &one.RevokedAt, &scopes)
		one.ExpiresAt, one.RevokedAt = zeroed(one.ExpiresAt), zeroed(one.RevokedAt)
		one.Scopes, _ = auth.KnownScopes(scopes...)
		return one, err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return list
}

func (b *bench) row(h auth.Hash) (row, bool) {
	b.t.Helper()
	var one row
	err := b.db.QueryRow(context.Background(), `SELECT key_id, coalesce(expires_at, '0001-01-01Z'), coalesce(revoked_at, '0001-01-01Z'), delivered_at IS NOT NULL
		FROM api_keys WHERE key_hash = $1`, h[:]).Scan(&one.ID, &one.ExpiresAt, &one.RevokedAt, &one.delivered)
	if errors.Is(err, pgx.ErrNoRows) {
		return row{}, false
	}
	if err != nil {
		b.t.Fatal(err)
	}
	one.ExpiresAt, one.RevokedAt = zeroed(one.ExpiresAt), zeroed(one.RevokedAt)
	return one, true
}

func zeroed(t time.Time) time.Time {
	if t.Year() <= 1 {
		return time.Time{}
	}
	return t.UTC()
}

// active returns the object's keys that are accepted now.
func (b *bench) active(k *v1alpha1.APIKey) []row {
	b.t.Helper()
	return slices.DeleteFunc(b.rows(), func(r row) bool { return r.Owner.ID != string(k.UID) || !r.Active(b.clock.now()) })
}
