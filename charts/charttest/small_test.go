package charttest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestSmallExample checks that the requests of all pods of the small installation fit 1 CPU and 1 GiB. They also fit
// while an upgrade runs each pod twice. Their memory fits 1 GiB even if each takes its limit, and their pools fit the
// usual max_connections.
func TestSmallExample(t *testing.T) {
	values, err := os.ReadFile(filepath.Join(chartFolder, "examples", "values-small.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var cpu, memory, most resource.Quantity
	connections := 0
	deployments := of[*apps.Deployment](render(t, string(values)))
	if len(deployments) != len(components()) {
		t.Fatalf("%d Deployments; want one for each of %d components", len(deployments), len(components()))
	}
	for name, d := range deployments {
		if *d.Spec.Replicas != 1 || len(d.Spec.Template.Spec.Containers) != 1 {
			t.Errorf("%s has %d pods of %d containers; want one of one", name, *d.Spec.Replicas, len(d.Spec.Template.Spec.Containers))
		}
		c := d.Spec.Template.Spec.Containers[0]
		for _, init := range d.Spec.Template.Spec.InitContainers {
			if init.Resources.Requests.Memory().Cmp(*c.Resources.Requests.Memory()) > 0 || init.Resources.Limits.Memory().Cmp(*c.Resources.Limits.Memory()) > 0 {
				t.Errorf("%s/%s has more memory than its service", name, init.Name)
			}
		}
		cpu.Add(*c.Resources.Requests.Cpu())
		memory.Add(*c.Resources.Requests.Memory())
		most.Add(*c.Resources.Limits.Memory())
		if _, ok := variable(c, "GOMEMLIMIT"); !ok || c.Resources.Limits.Cpu().IsZero() || c.Resources.Requests.Cpu().IsZero() {
			t.Errorf("%s has the resources %+v", name, c.Resources)
		}
		connections += poolsOf(c) * poolSizeOf(t, name, c)
	}
	cpu.Mul(2)
	memory.Mul(2)
	for what, sum := range map[string]struct{ got, want resource.Quantity }{
		"the CPU requests, twice":    {cpu, resource.MustParse("1")},
		"the memory requests, twice": {memory, resource.MustParse("1Gi")},
		"the memory limits":          {most, resource.MustParse("1Gi")},
	} {
		if sum.got.IsZero() || sum.got.Cmp(sum.want) > 0 {
			t.Errorf("%s are %s; want at most %s", what, &sum.got, &sum.want)
		}
	}
	const usual, reserved = 100, 3 // Postgres' defaults
	if connections == 0 || 2*connections > usual-reserved {
		t.Errorf("the pools open %d connections; want at most half of %d", connections, usual-reserved)
	}
	t.Logf("requests, twice: %s CPU, %s; limits: %s; connections: %d", &cpu, &memory, &most, connections)
}

// poolsOf returns how many pools of Postgres a container has: one for each URL. Standbys are other servers.
func poolsOf(c core.Container) (n int) {
	for _, e := range c.Env {
		if strings.HasSuffix(e.Name, "DATABASE_URL") && e.Name != "READ_DATABASE_URL" {
			n++
		}
	}
	return n
}

func poolSizeOf(t *testing.T, name string, c core.Container) int {
	t.Helper()
	if poolsOf(c) == 0 {
		return 0
	}
	v, _ := variable(c, "DATABASE_MAX_CONNS")
	size, err := strconv.Atoi(v.Value)
	if err != nil {
		t.Errorf("%s has no size of its pools: %v", name, err)
	}
	return size
}
