package credential

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/internal/ownership"
	"github.com/lectern-dev/lectern/k8s/manifests"
	"github.com/lectern-dev/lectern/proxy/manifest"
	"github.com/lectern-dev/lectern/proxy/policy"
)

// unknown is the share of the Secret of Credentials that were deleted while no operator ran.
const unknown = "?"

// origin says where a value is from that may become a former one.
type origin struct {
	namespace string
	ends      time.Time // the end of a fetched token
}

// usesOf returns the Credentials that each endpoint may use. The list has all Credentials, the oldest first.
func (p *proxy) usesOf(ctx context.Context, list []v1alpha1.Credential) (map[string][]types.UID, error) {
	objects := manifest.Objects{RequireProject: !p.AllowUndeclared}
	uids, projects := map[manifest.ObjectKey]types.UID{}, map[string]bool{}
	for i := range list {
		if c := &list[i]; c.DeletionTimestamp.IsZero() {
			objects.Credentials = append(objects.Credentials, manifests.Credential(c))
			uids[manifest.ObjectKey{Kind: "Credential", Namespace: c.Namespace, Name: c.Name}] = c.UID
			projects[c.Spec.ProjectID] = true
		}
	}
	var endpoints v1alpha1.ProxyEndpointList
	if err := p.client.List(ctx, &endpoints, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ProxyEndpoints: %w", err)
	}
	for i := range endpoints.Items {
		if e := &endpoints.Items[i]; e.DeletionTimestamp.IsZero() {
			objects.Endpoints = append(objects.Endpoints, manifests.Endpoint(e))
		}
	}
	for project := range projects {
		declaring, err := ownership.Declaring(ctx, p.client, project)
		if err != nil {
			return nil, err
		}
		if declaring != nil {
			objects.Projects = append(objects.Projects, manifests.Project(declaring))
		}
	}
	uses := map[string][]types.UID{}
	for endpoint, credentials := range manifest.Uses(objects) {
		for _, c := range credentials {
			name := endpoint.Namespace + "/" + endpoint.Name
			uses[name] = append(uses[name], uids[c])
		}
	}
	return uses, nil
}

// former returns the list of [manifests.Former], as JSON, for the Secret for the proxy, or nil if the list is empty. The
// argument before is the Secret's present data. The argument data is its next data without the list, and has the given
// sizes. The new list has the entries of before that have not ended, and the values of before that are not in data. The new
// list also has the uses of the last run that have ended. If the list exceeds a limit of size, former leaves out the entries
// that end first.
func (p *proxy) former(before, data map[string][]byte, uses map[string][]types.UID, sizes map[string]int) ([]byte, error) {
	now := p.Now()
	list := manifests.FormerOf(before)
	add := func(f manifests.Former) {
		list = slices.DeleteFunc(list, func(o manifests.Former) bool {
			return o.Credential == f.Credential && o.Endpoint == f.Endpoint && bytes.Equal(o.Value, f.Value)
		})
		list = append(list, f)
	}
	for name, value := range before {
		if name == manifests.FormerKey || bytes.Equal(value, data[name]) {
			continue
		}
		id, _, _ := strings.Cut(name, "_")
		known := p.seen[types.UID(id)]
		if known.ends.IsZero() {
			known.ends = now.Add(policy.FormerLife)
		}
		add(manifests.Former{Namespace: cmp.Or(known.namespace, unknown), Credential: types.UID(id), Value: value, Until: known.ends})
	}
	for endpoint, credentials := range p.uses {
		for _, id := range credentials {
			if slices.Contains(uses[endpoint], id) {
				continue
			}
			until := now.Add(policy.FormerLife)
			if ends := p.seen[id].ends; ends.After(until) {
				until = ends
			}
			namespace, _, _ := strings.Cut(endpoint, "/")
			add(manifests.Former{Namespace: namespace, Credential: id, Endpoint: endpoint, Until: until})
		}
	}
	slices.SortStableFunc(list, func(a, b manifests.Former) int { return b.Until.Compare(a.Until) })
	var kept []json.RawMessage
	counts := map[types.UID]int{}
	for _, f := range list {
		text, err := json.Marshal(f)
		if err != nil {
			return nil, err
		}
		size := len(text) + 1 // a comma
		many := f.Endpoint == "" && counts[f.Credential] == policy.MaxFormer
		if !now.Before(f.Until) || many || sizes[f.Namespace]+size > namespaceBytes || sizes[""]+size > corev1.MaxSecretSize {
			continue
		}
		sizes[f.Namespace] += size
		sizes[""] += size
		kept = append(kept, text)
		if f.Endpoint == "" {
			counts[f.Credential]++
		}
	}
	if kept == nil {
		return nil, nil
	}
	return json.Marshal(kept)
}
