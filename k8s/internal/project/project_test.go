package project

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/internal/controller"
	"github.com/lectern-dev/lectern/k8s/internal/ownership"
	"github.com/lectern-dev/lectern/k8s/testing/kubetest"
	"github.com/lectern-dev/lectern/proxy/resource"
	regionclient "github.com/lectern-dev/lectern/services/region/client"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

// memory is a region service in memory, with the test's clock. A second passes after each of its answers.
type memory struct {
	mu    sync.Mutex
	known map[string]regionclient.Project
	asked int
	clock time.Time
}

func (m *memory) now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clock
}

func (m *memory) Get(_ context.Context, id string) (regionclient.StoredProject, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	p, ok := m.known[id]
	if !ok {
		return regionclient.StoredProject{}, regionclient.ErrNotFound
	}
	location, err := time.LoadLocation(p.Region)
	if err != nil {
		return regionclient.StoredProject{}, err
	}
	_, offset := m.clock.In(location).Zone()
	m.clock = m.clock.Add(time.Second)
	return regionclient.StoredProject{Project: p, Zone: p.Region, OffsetMinutes: offset / 60}, nil
}

func (m *memory) Put(_ context.Context, p regionclient.Project) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known[p.ID] = p
	return nil
}

// The offset in the status changes at the moment of the zone's change, even if the zone changes just after the region
// service's answer.
func TestOffsetFollowsTheZone(t *testing.T) {
	c := kubetest.Start(t)
	// Half a second before summer begins in Berlin.
	region := &memory{known: map[string]regionclient.Project{}, clock: time.Date(2026, 3, 29, 0, 59, 59, 500_000_000, time.UTC)}
	yes := true
	mgr, err := ctrl.NewManager(c.Config(), ctrl.Options{
		Scheme: c.Scheme, Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{c.Namespace: {}}},
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: ctrlconfig.Controller{SkipNameValidation: &yes},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := ownership.Index(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	err = Setup(mgr, Options{Region: region, Common: controller.Common{
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Tracer: tracenoop.NewTracerProvider(), Meter: metricnoop.NewMeterProvider(), Now: region.now, Workers: 1,
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	p := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: resource.ProjectSpec{ProjectID: "pr_1", Title: "One", Region: "Europe/Berlin"}}
	c.Create(t, p)
	eventually.True(t, "the offset is that of summer", func() bool {
		c.AwaitReady(t, p, v1alpha1.ReasonSynced)
		return p.Status.UTCOffset == "+02:00" && *p.Status.OffsetInMinutes == 120
	})
	region.mu.Lock()
	defer region.mu.Unlock()
	if region.asked > 6 {
		t.Errorf("the region service was asked %d times", region.asked)
	}
}

func TestUntilNextLook(t *testing.T) {
	for _, tt := range []struct {
		name, zone, now string
		want            time.Duration
	}{
		{"far from a change", "Europe/Berlin", "2026-07-01T00:00:00Z", time.Hour},
		{"near to one", "Europe/Berlin", "2026-03-29T00:50:00Z", 10*time.Minute + time.Second},
		{"at one", "Europe/Berlin", "2026-03-29T01:00:00Z", time.Hour},
		{"just before one", "Europe/Berlin", "2026-03-29T00:59:59.9Z", 1100 * time.Millisecond},
		{"a zone without changes", "Asia/Kathmandu", "2026-07-01T00:00:00Z", time.Hour},
		{"a zone that is not known here", "Mars/Olympus_Mons", "2026-07-01T00:00:00Z", time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now, err := time.Parse(time.RFC3339, tt.now)
			if err != nil {
				t.Fatal(err)
			}
			if got := untilNextLook(tt.zone, now, time.Hour); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

func TestUTCOffset(t *testing.T) {
	for minutes, want := range map[int]string{0: "+00:00", 345: "+05:45", -480: "-08:00", -210: "-03:30", -7: "-00:07", 840: "+14:00"} {
		if got := utcOffset(minutes); got != want {
			t.Errorf("%d: %s, want %s", minutes, got, want)
		}
	}
}
