package apikey

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lectern-dev/lectern/k8s/api/v1alpha1"
	"github.com/lectern-dev/lectern/k8s/internal/controller"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/config"
)

// annotationKeyID on a Secret contains the id of the key that the Secret holds. The id is not secret, so a tool that
// restarts workloads after a change of the Secret can show it.
const annotationKeyID = v1alpha1.Group + "/key-id"

// contents is the desired content of an APIKey's Secret: three values and their names, the name of the Secret, and the
// id of the key.
type contents struct {
	key, project, url                   config.Secret // url may be empty: then there is none
	keyName, projectName, urlName, name string
	keyID                               string
}

func (r *reconciler) contentsOf(object *v1alpha1.APIKey) contents {
	names := object.Spec.Secret.Keys
	return contents{
		project: config.NewSecret(object.Spec.ProjectID), url: config.NewSecret(cmp.Or(object.Spec.URL, r.PublicURL)),
		keyName: cmp.Or(names.APIKey, "api-key"), projectName: cmp.Or(names.ProjectID, "project-id"), urlName: cmp.Or(names.URL, "url"),
		name: secretNameOf(object),
	}
}

// data returns the values of the Secret by name: the key, the project's id and, if it is set, the API's address.
func (c contents) data() map[string][]byte {
	data := map[string][]byte{c.keyName: []byte(c.key.Reveal()), c.projectName: []byte(c.project.Reveal())}
	if !c.url.IsZero() {
		data[c.urlName] = []byte(c.url.Reveal())
	}
	return data
}

// judge compares live, the Secret that was read, with the desired content c. It returns the observed state of the
// Secret. live is nil if no Secret exists.
func judge(live *corev1.Secret, object *v1alpha1.APIKey, c contents) secret {
	if live == nil {
		return secret{}
	}
	controller := metav1.GetControllerOf(live)
	s := secret{exists: true, owned: controller != nil && controller.UID == object.UID}
	if !s.owned {
		return s
	}
	// spec.secret.keys may have changed, so the key can be under its old name.
	for _, name := range append([]string{c.keyName}, slices.Sorted(maps.Keys(live.Data))...) {
		if value, ok := live.Data[name]; ok {
			s.holds = append(s.holds, auth.HashKey(string(value)))
		}
	}
	s.keyID = live.Annotations[annotationKeyID]
	c.key = config.NewSecret(string(live.Data[c.keyName]))
	data := c.data()
	names := sets.KeySet(data)
	s.tidy = live.Labels[v1alpha1.LabelManaged] == "true" && fieldsOf(live).Equal(names)
	for name, value := range data {
		s.tidy = s.tidy && string(live.Data[name]) == string(value)
	}
	return s
}

// textOf returns the value of the Secret that is the key with the hash h. The result is false if no value has this
// hash.
func textOf(live *corev1.Secret, h auth.Hash) (config.Secret, bool) {
	for _, value := range live.Data {
		if auth.HashKey(string(value)) == h {
			return config.NewSecret(string(value)), true
		}
	}
	return config.Secret{}, false
}

// fieldsOf returns the names of the values that the operator owns in a Secret, from its managed fields.
func fieldsOf(live *corev1.Secret) sets.Set[string] {
	names := sets.New[string]()
	for _, entry := range live.ManagedFields {
		if entry.Manager != string(controller.FieldOwner) || entry.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Data map[string]json.RawMessage `json:"f:data"`
		}
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		for field := range fields.Data {
			if name, ok := strings.CutPrefix(field, "f:"); ok {
				names.Insert(name)
			}
		}
	}
	return names
}

// write puts c into the object's Secret. It updates live, or creates a Secret if live is nil. It fails if the Secret
// has changed since the operator read it.
func (r *reconciler) write(ctx context.Context, object *v1alpha1.APIKey, live *corev1.Secret, c contents, options ...option) error {
	if live == nil {
		return r.create(ctx, object, c, options...)
	}
	resourceVersion, err := r.takeOver(ctx, live, options...)
	if err != nil {
		return err
	}
	applied := corev1ac.Secret(c.name, object.Namespace).
		WithResourceVersion(resourceVersion).
		WithLabels(map[string]string{v1alpha1.LabelManaged: "true"}).
		WithAnnotations(map[string]string{annotationKeyID: c.keyID}).
		WithOwnerReferences(metav1ac.OwnerReference().
			WithAPIVersion(v1alpha1.SchemeGroupVersion.String()).WithKind("APIKey").
			WithName(object.Name).WithUID(object.UID).WithController(true)).
		WithType(live.Type).
		WithData(c.data())
	all := []client.ApplyOption{controller.FieldOwner, client.ForceOwnership}
	for _, o := range options {
		all = append(all, o)
	}
	if err := r.Client.Apply(ctx, applied, all...); err != nil {
		return fmt.Errorf("apply the Secret: %w", err)
	}
	return nil
}

// option is an option that every kind of write accepts: an apply, a create and a patch. The only option in use is a dry
// run.
type option interface {
	client.ApplyOption
	client.CreateOption
	client.PatchOption
}

// create creates the Secret, and fails if a Secret of that name exists. An apply would merge into a Secret that another
// program created in the meantime.
func (r *reconciler) create(ctx context.Context, object *v1alpha1.APIKey, c contents, options ...option) error {
	yes := true
	made := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: object.Namespace, Name: c.name,
			Labels:      map[string]string{v1alpha1.LabelManaged: "true"},
			Annotations: map[string]string{annotationKeyID: c.keyID},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "APIKey",
				Name: object.Name, UID: object.UID, Controller: &yes,
			}},
		},
		Type: corev1.SecretTypeOpaque,
		Data: c.data(),
	}
	all := []client.CreateOption{controller.FieldOwner}
	for _, o := range options {
		all = append(all, o)
	}
	if err := r.Client.Create(ctx, made, all...); err != nil {
		return fmt.Errorf("create the Secret: %w", err)
	}
	return nil
}

// takeOver converts the managed fields that create left to the managed fields of an apply. So a later apply can also
// remove fields. It changes no value, and returns the resourceVersion for that apply. With options, such as a dry run,
// it converts nothing.
func (r *reconciler) takeOver(ctx context.Context, live *corev1.Secret, options ...option) (string, error) {
	created := func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == string(controller.FieldOwner) && e.Operation == metav1.ManagedFieldsOperationUpdate
	}
	if len(options) > 0 || !slices.ContainsFunc(live.ManagedFields, created) {
		return live.ResourceVersion, nil
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, sets.New(string(controller.FieldOwner)), string(controller.FieldOwner))
	if err != nil || patch == nil {
		return live.ResourceVersion, err
	}
	upgraded := live.DeepCopy()
	if err := r.Client.Patch(ctx, upgraded, client.RawPatch(types.JSONPatchType, patch), controller.FieldOwner); err != nil {
		return "", fmt.Errorf("take the Secret over: %w", err)
	}
	return upgraded.ResourceVersion, nil
}

// liveSecret reads the object's Secret from the API server, because no cache holds keys. It returns nil if no Secret
// exists, and a [fault] if the operator may not read the Secret.
func (r *reconciler) liveSecret(ctx context.Context, object *v1alpha1.APIKey) (*corev1.Secret, error) {
	var live corev1.Secret
	err := r.Reader.Get(ctx, types.NamespacedName{Namespace: object.Namespace, Name: secretNameOf(object)}, &live)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case apierrors.IsForbidden(err):
		return nil, &fault{v1alpha1.ReasonSecretRefused, "The operator may not read Secrets in this namespace: its role is missing here. Run helm upgrade, which makes the role. The operator retries.", err}
	case err != nil:
		return nil, fmt.Errorf("read the Secret: %w", err)
	}
	return &live, nil
}
