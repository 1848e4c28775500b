package charttest

import (
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/lectern-dev/lectern/shared/testing/golden"
)

// peer is an end of a connection: a pod with its namespace, or an address outside the cluster.
type peer struct {
	name      string
	namespace string
	labels    map[string]string
	address   netip.Addr
	ports     map[string]int32 // by name; none for a peer whose ports are not known
}

func (p peer) ofRelease() bool {
	return len(p.ports) > 0 || p.labels["app.kubernetes.io/instance"] != ""
}

// pod is a pod of the release.
func pod(t *testing.T, r rendered, name string) peer {
	t.Helper()
	p := peer{name: name, namespace: "lectern", ports: map[string]int32{}}
	template := core.PodTemplateSpec{}
	if d, ok := of[*apps.Deployment](r)["lectern-"+name]; ok {
		template = d.Spec.Template
	} else if c, ok := of[*batch.CronJob](r)["lectern-"+name]; ok {
		template = c.Spec.JobTemplate.Spec.Template
	} else {
		test := one[*core.Pod](t, r, "lectern-"+name)
		template = core.PodTemplateSpec{ObjectMeta: test.ObjectMeta, Spec: test.Spec}
	}
	p.labels = template.Labels
	for _, c := range template.Spec.Containers {
		for _, port := range c.Ports {
			p.ports[port.Name] = port.ContainerPort
		}
	}
	return p
}

// stranger is a pod of another namespace.
func stranger(namespace string) peer {
	return peer{name: "a pod in " + namespace, namespace: namespace, labels: map[string]string{"app": "other"}}
}

func outside(address string) peer {
	return peer{name: address, address: netip.MustParseAddr(address)}
}

// allows reports whether the policies let from connect to a TCP port of to, as Kubernetes defines it. A pod that no
// policy selects for a direction is open in it. A selected pod allows the connections that any of its policies allows.
func allows(t *testing.T, r rendered, from, to peer, port int32) bool {
	t.Helper()
	outgoing, incoming := true, true
	var selectsFrom, selectsTo, passesFrom, passesTo bool
	for _, p := range of[*networking.NetworkPolicy](r) {
		if selected(t, &p.Spec.PodSelector, from) {
			selectsFrom = true
			for _, rule := range p.Spec.Egress {
				passesFrom = passesFrom || portMatches(rule.Ports, to, port) && peerMatches(t, rule.To, to)
			}
		}
		if selected(t, &p.Spec.PodSelector, to) {
			selectsTo = true
			for _, rule := range p.Spec.Ingress {
				passesTo = passesTo || portMatches(rule.Ports, to, port) && peerMatches(t, rule.From, from)
			}
		}
	}
	if selectsFrom {
		outgoing = passesFrom
	}
	if selectsTo {
		incoming = passesTo
	}
	return outgoing && incoming
}

func selected(t *testing.T, selector *meta.LabelSelector, p peer) bool {
	t.Helper()
	s, err := meta.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return p.namespace == "lectern" && s.Matches(labels.Set(p.labels))
}

func portMatches(ports []networking.NetworkPolicyPort, to peer, port int32) bool {
	if len(ports) == 0 {
		return true
	}
	for _, p := range ports {
		if p.Protocol != nil && *p.Protocol != core.ProtocolTCP {
			continue
		}
		if number, named := to.ports[p.Port.StrVal]; p.Port.IntVal == port || named && number == port {
			return true
		}
	}
	return false
}

func peerMatches(t *testing.T, peers []networking.NetworkPolicyPeer, p peer) bool {
	t.Helper()
	if len(peers) == 0 {
		return true
	}
	matches := func(selector *meta.LabelSelector, set map[string]string) bool {
		s, err := meta.LabelSelectorAsSelector(selector)
		if err != nil {
			t.Fatal(err)
		}
		return s.Matches(labels.Set(set))
	}
	for _, peer := range peers {
		switch {
		case peer.IPBlock != nil:
			if !p.address.IsValid() || !netip.MustParsePrefix(peer.IPBlock.CIDR).Contains(p.address) {
				continue
			}
			excepted := false
			for _, except := range peer.IPBlock.Except {
				excepted = excepted || netip.MustParsePrefix(except).Contains(p.address)
			}
			if !excepted {
				return true
			}
		case p.address.IsValid():
		case peer.NamespaceSelector != nil:
			if matches(peer.NamespaceSelector, map[string]string{"kubernetes.io/metadata.name": p.namespace}) &&
				(peer.PodSelector == nil || matches(peer.PodSelector, p.labels)) {
				return true
			}
		case p.namespace == "lectern" && matches(peer.PodSelector, p.labels):
			return true
		}
	}
	return false
}

// TestGoldenConnections compares files with all connections that the policies allow between the pods of the release and their
// surroundings. The files are for the default values, and for named clients in each mode of routing. Everything else is refused.
func TestGoldenConnections(t *testing.T) {
	const pods = `
dev: {enabled: true, collector: {enabled: true}}
retention: {enabled: true}
sync:
  copies:
    warehouse: {project: pr_1}
    lake: {project: pr_1, networkPolicy: {ports: [443], to: [{ipBlock: {cidr: 0.0.0.0/0, except: [10.0.0.0/8]}}]}}
    foreign: {project: pr_1, url: "https://api.example.com", networkPolicy: {extraEgress: [{ports: [{protocol: TCP, port: 443}]}]}}
`
	const named = pods + `
networkPolicy:
  publicFrom: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ingress}}}]
  internalFrom: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]
`
	for name, values := range map[string]string{
		"default":    pods,
		"edge":       named,
		"proxy-host": named + "operator: {fetchCredentials: true}\nrouting: {proxy: {hosts: [proxy.example.com]}}",
		"gateway":    named + "routing: {mode: gateway}",
		"tokens": named + `
tokens:
  issuers:
    - {url: "https://id.example.com", audiences: [lectern]}
    - {url: "https://dex.example.com", audiences: [lectern], egress: [{ports: [{protocol: TCP, port: 8080}], to: [{ipBlock: {cidr: 10.1.2.3/32}}]}]}
  cluster: {enabled: true, issuer: "https://kubernetes.default.svc"}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := render(t, values)
			peers := []peer{
				stranger("ingress"), stranger("monitoring"), stranger("databases"), {name: "a pod in lectern", namespace: "lectern", labels: map[string]string{"app": "other"}},
				outside("93.184.216.34"), outside("2606:2800:220:1::1"), outside("169.254.169.254"), outside("10.1.2.3"), outside("fd00::1"),
				outside("127.0.0.1"), outside("168.63.129.16"), outside("10.96.0.1"), outside("172.20.0.2"),
			}
			for object := range podSpecs(r) {
				peers = append(peers, pod(t, r, strings.TrimPrefix(object, "lectern-")))
			}
			var lines []string
			for _, from := range peers {
				for _, to := range peers {
					if from.name == to.name || !from.ofRelease() && !to.ofRelease() {
						continue
					}
					var ports []string
					for _, port := range []int32{80, 443, 4318, 5432, 6379, 6443, 8080, 9090} {
						if (len(to.ports) == 0 || slices.Contains(slices.Collect(maps.Values(to.ports)), port)) && allows(t, r, from, to, port) {
							ports = append(ports, strconv.Itoa(int(port)))
						}
					}
					if len(ports) > 0 {
						lines = append(lines, fmt.Sprintf("%s -> %s: %s", from.name, to.name, strings.Join(ports, " ")))
					}
				}
			}
			slices.Sort(lines)
			golden.Check(t, filepath.Join("testdata", "connections-"+name+".txt"), strings.Join(lines, "\n")+"\n")
		})
	}
}
