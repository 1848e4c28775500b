package charttest

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// peer is an end of a connection: a pod with its namespace, or an address outside the cluster.
type peer struct {
	name      string
	namespace string
	labels    map[string]string
	address   netip.Addr
	ports     map[string]int32 // by name
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

// TestWhoTalksToWhom compares the policies with a table of the connections that each component needs, in both modes of routing.
func TestWhoTalksToWhom(t *testing.T) {
	for _, tt := range []struct {
		name, routing string
		edge          bool            // installed
		direct        map[string]bool // components that the gateway itself reaches
	}{
		{"edge", "{}", true, map[string]bool{}},
		{"edge, the proxy on its own host", "{proxy: {hosts: [proxy.example.com]}}", true, map[string]bool{"proxy": true}},
		{"gateway", "{mode: gateway}", false, map[string]bool{"entries": true, "embeddables": true, "experiments": true, "region": true, "proxy": true, "console": true}},
	} {
		t.Run(tt.name, func(t *testing.T) { testWhoTalksToWhom(t, tt.routing, tt.edge, tt.direct) })
	}
}

func testWhoTalksToWhom(t *testing.T, routing string, edge bool, direct map[string]bool) {
	r := render(t, "routing: "+routing+`
dev: {enabled: true, collector: {enabled: true}}
retention: {enabled: true}
sync:
  copies:
    warehouse: {project: pr_1}
    lake: {project: pr_1, networkPolicy: {ports: [443], to: [{ipBlock: {cidr: 0.0.0.0/0, except: [10.0.0.0/8]}}]}}
    foreign: {project: pr_1, url: "https://api.example.com", networkPolicy: {extraEgress: [{ports: [{protocol: TCP, port: 443}]}]}}
networkPolicy:
  publicFrom: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ingress}}}]
  internalFrom: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]
`)
	named := map[string]peer{
		"ingress": stranger("ingress"), "monitoring": stranger("monitoring"), "another": stranger("another"),
		"internet": outside("93.184.216.34"), "internet6": outside("2606:2800:220:1::1"),
		"metadata": outside("169.254.169.254"), "private": outside("10.1.2.3"), "private6": outside("fd00::1"),
		"loopback": outside("127.0.0.1"), "wire": outside("168.63.129.16"), "apiserver": outside("10.96.0.1"),
		"private-postgres": outside("10.1.2.3"), "database": stranger("databases"), "node": outside("10.0.0.7"),
	}
	for _, name := range []string{"entries", "embeddables", "experiments", "region", "proxy", "console", "internal", "operator", "retention", "test", "sync-warehouse", "sync-lake", "sync-foreign", "dev-postgres", "dev-redis", "dev-collector"} {
		named[name] = pod(t, r, name)
	}
	if edge {
		named["edge"] = pod(t, r, "edge")
	}
	services := []string{"entries", "embeddables", "experiments", "region", "proxy", "console"}
	type link struct {
		from, to string
		port     int32
		want     bool
	}
	var table []link
	add := func(want bool, from, to string, port int32) { table = append(table, link{from, to, port, want}) }
	for _, s := range services {
		add(direct[s], "ingress", s, 8080)
		add(true, "test", s, 8080)
		add(false, "another", s, 8080)
		add(false, "internet", s, 8080)
		add(true, "monitoring", s, 9090)
		add(false, "ingress", s, 9090)
		add(false, "test", s, 9090)
		add(false, "another", s, 9090)
		add(s != "console", s, "dev-postgres", 5432)
		add(s != "console", s, "dev-redis", 6379)
		add(true, s, "dev-collector", 4318)
		add(s == "region", "operator", s, 9090)
		add(s != "proxy" && s != "console", "internal", s, 9090)
		add(false, "internal", s, 8080)
		add(false, s, "internal", 8080)
		add(s == "entries", "retention", s, 9090)
		add(false, "retention", s, 8080)
		add(s == "proxy", s, "internet", 443)
		add(s == "proxy", s, "internet6", 8443)
		add(s == "proxy", s, "apiserver", 443)
		for _, secret := range []string{"metadata", "private", "private6", "loopback", "wire"} {
			add(false, s, secret, 80)
		}
		for _, other := range services {
			if other != s {
				add(false, s, other, 8080)
				add(false, s, other, 9090)
			}
		}
	}
	add(true, "monitoring", "internal", 8080) // a client of internalFrom
	add(true, "monitoring", "internal", 9090)
	for _, stranger := range []string{"ingress", "another", "internet", "test", "sync-warehouse"} {
		add(false, stranger, "internal", 8080)
	}
	add(false, "internal", "dev-postgres", 5432)
	add(false, "internal", "dev-redis", 6379)
	add(false, "internal", "internet", 443)
	add(false, "internal", "apiserver", 443)
	callers := append(slices.Clone(services), "operator", "internal")
	if edge {
		callers = append(callers, "edge")
		add(true, "ingress", "edge", 8080)
		add(true, "test", "edge", 8080)
		add(false, "another", "edge", 8080)
		add(false, "internet", "edge", 8080)
		add(true, "monitoring", "edge", 9090)
		add(false, "ingress", "edge", 9090)
		add(true, "sync-warehouse", "edge", 8080)
		add(true, "sync-lake", "edge", 8080)
		add(true, "edge", "dev-collector", 4318)
		add(false, "edge", "dev-postgres", 5432)
		add(false, "edge", "dev-redis", 6379)
		add(false, "edge", "internet", 443)
		add(false, "edge", "apiserver", 443)
		add(false, "edge", "operator", 9090)
		add(false, "edge", "internal", 8080)
		add(false, "edge", "internal", 9090)
		for _, s := range services {
			add(true, "edge", s, 8080)
			add(false, "edge", s, 9090)
			add(false, s, "edge", 8080)
		}
	}
	// No port is open to addresses that are not named.
	for _, from := range callers {
		for _, port := range []int32{443, 5432, 6379, 6443, 4318} {
			add(false, from, "private-postgres", port)
			add(false, from, "database", port)
			add(false, from, "node", port)
			add(false, from, "metadata", port)
		}
	}
	for _, port := range []int32{5432, 6379, 6443, 4318} {
		add(false, "entries", "internet", port)
		add(false, "operator", "internet", port)
	}
	for _, s := range services {
		add(s == "entries" && !edge, "sync-warehouse", s, 8080)
		add(false, "sync-warehouse", s, 9090)
		add(false, "sync-foreign", s, 8080)
	}
	add(true, "sync-warehouse", "dev-postgres", 5432)
	add(false, "sync-warehouse", "database", 5432)
	add(false, "sync-warehouse", "internet", 443)
	add(false, "sync-warehouse", "apiserver", 443)
	add(!edge, "sync-lake", "entries", 8080)
	add(true, "sync-lake", "internet", 443)
	add(false, "sync-lake", "internet", 80)
	add(false, "sync-lake", "private", 443)
	add(false, "sync-lake", "dev-postgres", 5432)
	add(true, "sync-foreign", "internet", 443)
	add(true, "monitoring", "sync-lake", 9090)
	add(false, "another", "sync-lake", 9090)
	add(true, "retention", "apiserver", 443)
	add(false, "retention", "dev-postgres", 5432)
	add(false, "retention", "internet", 443)
	add(false, "retention", "operator", 9090)
	add(true, "monitoring", "operator", 9090)
	add(false, "another", "operator", 9090)
	add(true, "operator", "dev-postgres", 5432)
	add(true, "operator", "dev-redis", 6379)
	add(true, "operator", "apiserver", 443)
	add(true, "operator", "apiserver", 6443)
	add(false, "operator", "internet", 80)
	add(false, "operator", "internet", 443)
	add(false, "another", "dev-postgres", 5432)
	add(false, "another", "dev-redis", 6379)
	add(false, "dev-postgres", "internet", 443)
	add(false, "dev-redis", "entries", 8080)
	add(false, "test", "dev-postgres", 5432)
	add(false, "test", "internet", 443)
	for _, l := range table {
		t.Run(fmt.Sprintf("%s to %s:%d", l.from, l.to, l.port), func(t *testing.T) {
			if got := allows(t, r, named[l.from], named[l.to], l.port); got != l.want {
				t.Errorf("allowed: %v; want %v", got, l.want)
			}
		})
	}
}

// TestPoliciesByDefault checks that all clients reach the documented paths, at the edge and at a service. Only the
// namespace reaches internal ports.
func TestPoliciesByDefault(t *testing.T) {
	r := render(t, "")
	for _, to := range []string{"entries", "edge"} {
		t.Run(to, func(t *testing.T) { testPoliciesByDefault(t, r, pod(t, r, to)) })
	}
}

func testPoliciesByDefault(t *testing.T, r rendered, entries peer) {
	neighbour := peer{namespace: "lectern", labels: map[string]string{"app": "pipeline"}}
	for _, tt := range []struct {
		name string
		from peer
		port int32
		want bool
	}{
		{"from outside to the documented paths", outside("93.184.216.34"), 8080, true},
		{"from another namespace to the documented paths", stranger("another"), 8080, true},
		{"from another namespace to what is internal", stranger("another"), 9090, false},
		{"from outside to what is internal", outside("93.184.216.34"), 9090, false},
		{"from the namespace to what is internal", neighbour, 9090, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := allows(t, r, tt.from, entries, tt.port); got != tt.want {
				t.Errorf("allowed: %v; want %v", got, tt.want)
			}
		})
	}
}

// TestExceptionsAreTaken checks that the API server accepts only exceptions within their block, and refuses IPv4
// written as IPv6.
func TestExceptionsAreTaken(t *testing.T) {
	checked := 0
	for name, p := range of[*networking.NetworkPolicy](render(t, "")) {
		for _, rule := range p.Spec.Egress {
			for _, to := range rule.To {
				if to.IPBlock == nil {
					continue
				}
				block := netip.MustParsePrefix(to.IPBlock.CIDR)
				for _, text := range to.IPBlock.Except {
					checked++
					except, err := netip.ParsePrefix(text)
					if err != nil || except != except.Masked() || except.Addr().Is4In6() || except.Bits() <= block.Bits() || !block.Contains(except.Addr()) {
						t.Errorf("%s: %s is no exception of %s (%v)", name, text, block, err)
					}
				}
			}
		}
	}
	if checked == 0 {
		t.Error("no exceptions")
	}
}
